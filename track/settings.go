package track

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/annotation"
	"deployer/track/rules"
)

// settings are what an object's annotations say about tracking it.
type settings struct {
	mode              string        // of annotation.Track; empty is "full"
	trackAs           string        // of annotation.TrackAs: "job", "service" or empty
	timeout           time.Duration // 0: none
	noProgressTimeout time.Duration // 0: as for the whole run
	rolloutRequired   string        // see rules.Input
	failuresAllowed   *int          // nil: as for the whole run
	failMode          failMode
	rule              *rules.Rule // of the readiness expressions; nil for none
	logs              logSettings
	showEvents        bool
	sensitive         bool
	warnings          annotationWarnings
}

// failMode is a value of annotation.FailMode: what happens when the object fails. Empty is "fail".
type failMode string

const (
	failModeWarn   failMode = "warn"   // the object is ready, unverified, with a warning
	failModeIgnore failMode = "ignore" // the same without the warning
	failModeLate   failMode = "late"   // failures that may heal fail it only when time is up
)

// annotationWarnings say which annotations of an object aren't followed, and why.
type annotationWarnings struct {
	unreadable  []string
	ineffective []string // here, or on this kind
}

// isSkipped reports whether the object counts as ready as soon as it is applied.
func (s *settings) isSkipped() bool { return s.mode == "none" || s.mode == "apply" }

// isBackground reports whether nobody waits for the object: it is watched while others are
// waited for.
func (s *settings) isBackground() bool { return s.mode == "background" }

// logSettings say which log lines of an object's pods are wanted.
type logSettings struct {
	mode             LogMode                   // empty: as for the whole run
	maxPods          int                       // 0: all
	only, except     map[string]bool           // containers
	include, exclude map[string]*regexp.Regexp // by container; "" is for each of them
}

// settingsOf reads the annotations of an object.
func settingsOf(obj *unstructured.Unstructured) settings {
	var s settings
	if obj == nil {
		return s
	}
	annotations := obj.GetAnnotations()
	s.warnings.ineffective = annotation.WithoutEffect(annotations, obj.GroupVersionKind().GroupKind())

	s.mode = read(&s, annotation.Track, annotations)
	s.trackAs = read(&s, annotation.TrackAs, annotations)
	s.timeout = read(&s, annotation.Timeout, annotations)
	s.noProgressTimeout = read(&s, annotation.NoProgressTimeout, annotations)
	s.rolloutRequired = read(&s, annotation.RolloutRequired, annotations)
	if n, ok := readIfSet(&s, annotation.FailuresAllowed, annotations); ok {
		s.failuresAllowed = &n
	}
	s.failMode = failMode(read(&s, annotation.FailMode, annotations))
	s.readLogs(annotations)
	s.showEvents = read(&s, annotation.Events, annotations)
	s.sensitive = read(&s, annotation.Sensitive, annotations)

	ready, failed := annotation.Ready.Name, annotation.Failed.Name
	rule, err := rules.NewRule(annotations[ready], annotations[failed])
	if err != nil {
		s.warnings.unreadable = append(s.warnings.unreadable, fmt.Sprintf("annotation %s or %s: %v", ready, failed, err))
	}
	s.rule = rule
	return s
}

// logModes are the words of the annotation.
var logModes = map[string]LogMode{"none": LogsNone, "failed": LogsFailed, "all": LogsLive, "live": LogsLive}

func (s *settings) readLogs(annotations map[string]string) {
	maxPods, ok := readIfSet(s, annotation.LogsPods, annotations)
	s.logs.maxPods = maxPods
	if ok && maxPods == 0 {
		s.logs.mode = LogsNone
	}
	if mode, ok := logModes[read(s, annotation.Logs, annotations)]; ok {
		s.logs.mode = mode
	}
	s.logs.only = read(s, annotation.LogsContainers, annotations)
	s.logs.except = read(s, annotation.LogsSkipContainers, annotations)
	s.logs.include = readForContainers(s, annotation.LogsRegex, annotation.LogsRegexFor, annotations)
	s.logs.exclude = readForContainers(s, annotation.LogsSkipRegex, annotation.LogsSkipRegexFor, annotations)
}

// read gives the value of an annotation; the zero value when there is none.
func read[T any](s *settings, key *annotation.Key[T], annotations map[string]string) T {
	value, _ := readIfSet(s, key, annotations)
	return value
}

// readIfSet also says whether there is a value.
func readIfSet[T any](s *settings, key *annotation.Key[T], annotations map[string]string) (T, bool) {
	value, ok, errs := key.Read(annotations)
	s.addUnreadable(errs)
	return value, ok
}

// readForContainers gives the values of an annotation for all containers, by "", and
// for single ones.
func readForContainers[T any](s *settings, forAll, forOne *annotation.Key[T], annotations map[string]string) map[string]T {
	values, errs := forOne.ReadEach(annotations)
	s.addUnreadable(errs)
	if value, ok := readIfSet(s, forAll, annotations); ok {
		values[""] = value
	}
	return values
}

func (s *settings) addUnreadable(errs []*annotation.ValueError) {
	for _, err := range errs {
		s.warnings.unreadable = append(s.warnings.unreadable, "annotation "+err.Error())
	}
}

// wantsLine reports whether a line of a container's log is to be shown.
func (s *logSettings) wantsLine(container, line string) bool {
	include, exclude := cmp.Or(s.include[container], s.include[""]), cmp.Or(s.exclude[container], s.exclude[""])
	return (include == nil || include.MatchString(line)) && (exclude == nil || !exclude.MatchString(line))
}

// wantsContainer reports whether a container's log is to be shown at all.
func (s *logSettings) wantsContainer(container string) bool {
	return !s.except[container] && (len(s.only) == 0 || s.only[container])
}
