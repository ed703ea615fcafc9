package track

import (
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/annotation"
	"deployer/track/rules"
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

// settingsOf reads the annotations of an object.
func settingsOf(obj *unstructured.Unstructured) settings {
	var s settings
	if obj == nil {
		return s
	}
	stated := obj.GetAnnotations()
	s.Unknown = annotation.WithoutEffect(stated, obj.GroupVersionKind().GroupKind())

	track := read(&s, annotation.Track, stated)
	s.Skip, s.Background = track == "none" || track == "apply", track == "background"
	trackAs := read(&s, annotation.TrackAs, stated)
	s.AsJob, s.AsService = trackAs == "job", trackAs == "service"
	s.Timeout = read(&s, annotation.Timeout, stated)
	s.NoProgress = read(&s, annotation.NoProgressTimeout, stated)
	s.Required = read(&s, annotation.RolloutRequired, stated)
	if n, ok := readStated(&s, annotation.FailuresAllowed, stated); ok {
		s.Allowed = &n
	}
	s.Mode = failModes[read(&s, annotation.FailMode, stated)]
	s.readLogs(stated)
	s.ShowEvents = read(&s, annotation.Events, stated)
	s.Sensitive = read(&s, annotation.Sensitive, stated)

	ready, failed := annotation.Ready.Name, annotation.Failed.Name
	override, err := rules.NewOverride(stated[ready], stated[failed])
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("annotation %s or %s: %v", ready, failed, err))
	}
	s.Override = override
	return s
}

// failModes are the words of the annotation; none is failRelease.
var failModes = map[string]failMode{"fail": failRelease, "warn": failWarn, "ignore": failIgnore, "late": failLate}

// logModes are the words of the annotation.
var logModes = map[string]LogMode{"none": LogsNone, "failed": LogsFailed, "all": LogsLive, "live": LogsLive}

func (s *settings) readLogs(stated map[string]string) {
	pods, ok := readStated(s, annotation.LogsPods, stated)
	s.LogPods = pods
	if ok && pods == 0 {
		s.Logs = new(LogsNone)
	}
	if mode, ok := logModes[read(s, annotation.Logs, stated)]; ok {
		s.Logs = &mode
	}
	s.Only = read(s, annotation.LogsContainers, stated)
	s.Not = read(s, annotation.LogsSkipContainers, stated)
	s.Match = readForContainers(s, annotation.LogsRegex, annotation.LogsRegexFor, stated)
	s.Drop = readForContainers(s, annotation.LogsSkipRegex, annotation.LogsSkipRegexFor, stated)
}

// read gives the value of an annotation; the zero value when there is none.
func read[T any](s *settings, key *annotation.Key[T], stated map[string]string) T {
	value, _ := readStated(s, key, stated)
	return value
}

// readStated also says whether there is a value.
func readStated[T any](s *settings, key *annotation.Key[T], stated map[string]string) (T, bool) {
	value, ok, errs := key.Read(stated)
	s.unread(errs)
	return value, ok
}

// readForContainers gives the values of an annotation for all containers, by "", and
// for single ones.
func readForContainers[T any](s *settings, forAll, forOne *annotation.Key[T], stated map[string]string) map[string]T {
	values, errs := forOne.ReadEach(stated)
	s.unread(errs)
	if value, ok := readStated(s, forAll, stated); ok {
		values[""] = value
	}
	return values
}

func (s *settings) unread(errs []*annotation.ValueError) {
	for _, err := range errs {
		s.Unread = append(s.Unread, "annotation "+err.Error())
	}
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
