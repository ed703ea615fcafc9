package track

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/track/rules"
)

const (
	prefix     = "deployer.io/"
	werfPrefix = "werf.io/" // annotations of Nelm charts mean the same here
)

// failMode says what a failure of an object does to the release.
type failMode int

const (
	failRelease failMode = iota
	failWarn             // tell, and go on
	failIgnore           // go on
	failLate             // nothing fails before the deadline
)

// settings are what an object's annotations say about tracking it.
type settings struct {
	Skip        bool // ready as soon as it is applied
	Background  bool // watched while others are waited for
	AsJob       bool
	AsService   bool
	Timeout     time.Duration
	NoProgress  time.Duration
	Required    string
	Allowed     *int
	Mode        failMode
	Override    *rules.Override
	Logs        *LogMode
	LogPods     int                       // 0: all
	Only, Not   map[string]bool           // containers
	Match, Drop map[string]*regexp.Regexp // by container; "" is for each of them
	ShowEvents  bool
	Sensitive   bool
	Unread      []string // annotations that could not be read, and why
	Unknown     []string // annotations that mean nothing here, or not for this kind, and why
}

// annotation reads one annotation into the settings.
type annotation func(s *settings, value string) error

// annotations are those of deployer.io, without the prefix.
// docs/tracking.md lists them for users.
var annotations = map[string]annotation{
	"track":                setTrack,
	"track-as":             setTrackAs,
	"timeout":              func(s *settings, v string) error { return setDuration(&s.Timeout, v) },
	"no-progress-timeout":  func(s *settings, v string) error { return setDuration(&s.NoProgress, v) },
	"rollout-required":     setRequired,
	"failures-allowed":     setAllowed,
	"fail-mode":            setFailMode,
	"logs":                 setLogs,
	"logs-containers":      func(s *settings, v string) error { s.Only = names(v); return nil },
	"logs-skip-containers": func(s *settings, v string) error { s.Not = names(v); return nil },
	"logs-pods":            setLogPods,
	"logs-regex":           func(s *settings, v string) error { return setRegexp(&s.Match, "", v) },
	"logs-skip-regex":      func(s *settings, v string) error { return setRegexp(&s.Drop, "", v) },
	"events":               func(s *settings, v string) error { return setBool(&s.ShowEvents, v) },
	"sensitive":            func(s *settings, v string) error { return setBool(&s.Sensitive, v) },
}

// aliases are the tracking annotations of Nelm and werf, without the prefix.
// https://werf.io/docs/v2/reference/deploy_annotations.html
var aliases = map[string]annotation{
	"track-termination-mode": func(s *settings, v string) error {
		return choose(v, map[string]func(){"WaitUntilResourceReady": func() {}, "NonBlocking": func() { s.Background = true }})
	},
	"fail-mode": func(s *settings, v string) error {
		return choose(v, map[string]func(){
			"FailWholeDeployProcessImmediately": func() {},
			"HopeUntilEndOfDeployProcess":       func() { s.Mode = failLate },
			"IgnoreAndContinueDeployProcess":    func() { s.Mode = failIgnore },
		})
	},
	"failures-allowed-per-replica": setAllowed,
	"no-activity-timeout":          annotations["no-progress-timeout"],
	"log-regex":                    annotations["logs-regex"],
	"log-regex-skip":               annotations["logs-skip-regex"],
	"skip-logs": func(s *settings, v string) error {
		var skip bool
		err := setBool(&skip, v)
		if skip {
			none := LogsNone
			s.Logs = &none
		}
		return err
	},
	"skip-logs-for-containers":              annotations["logs-skip-containers"],
	"show-logs-only-for-containers":         annotations["logs-containers"],
	"show-logs-only-for-number-of-replicas": setLogPods,
	"show-service-messages":                 annotations["events"],
	"sensitive":                             annotations["sensitive"],
}

// elsewhere are annotations of other parts of deployer, which read them.
var elsewhere = map[string]bool{
	"ready": true, "failed": true, "instances-ready": true, "instances-failed": true, // rules.NewOverride
	"conflicts": true, "recreate": true, "hook-run": true,
	"weight": true, "depends-on": true, "external-dependencies": true,
	"sensitive-paths": true,
}

// without are annotations of Nelm and werf that have no effect, and what to use
// in their place.
var without = map[string]string{
	"replicas-on-creation": "leave spec.replicas out of the template, or have an autoscaler: its replicas are left alone",
	"ownership":            "objects belong to their release",
	"delete-policy":        "use helm.sh/hook-delete-policy, helm.sh/resource-policy or deployer.io/recreate",
	"deploy-on":            "use helm.sh/hook",
}

// silent are annotations of Nelm and werf that other parts of deployer read, or
// that ask for what is so in any case, or only inform. Probes never fail a
// release before its deadline.
var silent = []string{"ignore-readiness-probe-fails-for-", "version", "release-channel", "weight", "deploy-dependency-", "external-dependency-", "sensitive-paths"}

// perContainer are annotations that end with the name of a container.
var perContainer = []struct {
	prefix string
	set    func(s *settings, container, value string) error
}{
	{prefix + "logs-regex-for-", func(s *settings, c, v string) error { return setRegexp(&s.Match, c, v) }},
	{prefix + "logs-skip-regex-for-", func(s *settings, c, v string) error { return setRegexp(&s.Drop, c, v) }},
	{werfPrefix + "log-regex-for-", func(s *settings, c, v string) error { return setRegexp(&s.Match, c, v) }},
	{werfPrefix + "log-regex-skip-for-", func(s *settings, c, v string) error { return setRegexp(&s.Drop, c, v) }},
}

// settingsOf reads the annotations of an object. Our own go before aliases.
func settingsOf(obj *unstructured.Unstructured) settings {
	var s settings
	if obj == nil {
		return s
	}
	all := obj.GetAnnotations()
	keys := make([]string, 0, len(all))
	for key := range all {
		if strings.HasPrefix(key, prefix) || strings.HasPrefix(key, werfPrefix) {
			keys = append(keys, key)
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(keys))) // werf.io before deployer.io, which so has the last word
	for _, key := range keys {
		known, err := s.read(key, strings.TrimSpace(all[key]))
		if !known {
			s.Unknown = append(s.Unknown, meaningless(key))
		} else if why := unsupported(key, obj.GroupVersionKind().GroupKind()); why != "" {
			s.Unknown = append(s.Unknown, why)
		}
		if err != nil {
			s.Unread = append(s.Unread, fmt.Sprintf("annotation %s: %v", key, err))
		}
	}
	override, err := rules.NewOverride(all[prefix+"ready"], all[prefix+"failed"])
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("annotation %sready or %sfailed: %v", prefix, prefix, err))
	}
	s.Override = override
	return s
}

// read takes an annotation; known is false when it means nothing here.
func (s *settings) read(key, value string) (known bool, err error) {
	for _, p := range perContainer {
		if container, ok := strings.CutPrefix(key, p.prefix); ok {
			return true, p.set(s, container, value)
		}
	}
	if name, ok := strings.CutPrefix(key, prefix); ok {
		if set := annotations[name]; set != nil {
			return true, set(s, value)
		}
		return elsewhere[name], nil
	}
	name := strings.TrimPrefix(key, werfPrefix)
	if set := aliases[name]; set != nil {
		return true, set(s, value)
	}
	return slices.ContainsFunc(silent, func(p string) bool { return strings.HasPrefix(name, p) }), nil
}

// meaningless says that an annotation has no effect, and what to do instead.
func meaningless(key string) string {
	name, werf := strings.CutPrefix(key, werfPrefix)
	if instead := without[name]; werf && instead != "" {
		return "annotation " + key + " has no effect: " + instead
	}
	return "annotation " + key + " is not known and has no effect"
}

func choose(value string, choices map[string]func()) error {
	if do := choices[value]; do != nil {
		do()
		return nil
	}
	known := make([]string, 0, len(choices))
	for k := range choices {
		known = append(known, k)
	}
	sort.Strings(known)
	return fmt.Errorf("%q is none of %s", value, strings.Join(known, ", "))
}

func setTrack(s *settings, v string) error {
	return choose(v, map[string]func(){
		"full": func() {}, "none": func() { s.Skip = true }, "apply": func() { s.Skip = true },
		"background": func() { s.Background = true },
	})
}

func setTrackAs(s *settings, v string) error {
	return choose(v, map[string]func(){"job": func() { s.AsJob = true }, "service": func() { s.AsService = true }})
}

func setFailMode(s *settings, v string) error {
	return choose(v, map[string]func(){
		"fail": func() { s.Mode = failRelease }, "warn": func() { s.Mode = failWarn },
		"ignore": func() { s.Mode = failIgnore }, "late": func() { s.Mode = failLate },
	})
}

func setLogs(s *settings, v string) error {
	set := func(m LogMode) func() { return func() { s.Logs = &m } }
	return choose(v, map[string]func(){
		"none": set(LogsNone), "failed": set(LogsFailed), "all": set(LogsLive), "live": set(LogsLive),
	})
}

func setRequired(s *settings, v string) error {
	if percent, ok := strings.CutSuffix(v, "%"); ok {
		if n, err := strconv.Atoi(percent); err != nil || n < 0 || n > 100 {
			return fmt.Errorf("%q is no percentage", v)
		}
	} else if v != "full" && v != "max-unavailable" && v != "none" {
		return fmt.Errorf("%q is none of full, max-unavailable, none and N%%", v)
	}
	s.Required = v
	return nil
}

func setAllowed(s *settings, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number", v)
	}
	s.Allowed = &n
	return nil
}

func setLogPods(s *settings, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number", v)
	}
	s.LogPods = n
	if n == 0 {
		none := LogsNone
		s.Logs = &none
	}
	return nil
}

func setDuration(into *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration such as 90s", v)
	}
	*into = d
	return nil
}

func setBool(into *bool, v string) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", v)
	}
	*into = b
	return nil
}

func setRegexp(into *map[string]*regexp.Regexp, container, v string) error {
	re, err := regexp.Compile(v)
	if err != nil {
		return err
	}
	if *into == nil {
		*into = map[string]*regexp.Regexp{}
	}
	(*into)[container] = re
	return nil
}

func names(v string) map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Split(v, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out[name] = true
		}
	}
	return out
}

// wants reports whether a line of a container's log is to be shown.
func (s *settings) wants(container, line string) bool {
	match, drop := s.Match[container], s.Drop[container]
	if match == nil {
		match = s.Match[""]
	}
	if drop == nil {
		drop = s.Drop[""]
	}
	return (match == nil || match.MatchString(line)) && (drop == nil || !drop.MatchString(line))
}

// wantsContainer reports whether a container's log is to be shown at all.
func (s *settings) wantsContainer(container string) bool {
	return !s.Not[container] && (len(s.Only) == 0 || s.Only[container])
}
