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
	mode              string          // of annotation.Track; empty is "full"
	trackAs           string          // of annotation.TrackAs: "job", "service" or empty
	timeout           time.Duration   // 0: none
	noProgressTimeout time.Duration   // 0: as for the whole run
	rolloutRequired   string          // see rules.Input
	failuresAllowed   *int            // nil: as for the whole run
	failMode          string          // of annotation.FailMode: "warn", "ignore", "late"; empty is "fail"
	override          *rules.Override // the readiness expressions; nil for none
	logs              logSettings
	showEvents        bool
	sensitive         bool

	unreadable  []string // annotations that could not be read, and why
	ineffective []string // annotations that have no effect here or on this kind, and why
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
	stated := obj.GetAnnotations()
	s.ineffective = annotation.WithoutEffect(stated, obj.GroupVersionKind().GroupKind())

	s.mode = read(&s, annotation.Track, stated)
	s.trackAs = read(&s, annotation.TrackAs, stated)
	s.timeout = read(&s, annotation.Timeout, stated)
	s.noProgressTimeout = read(&s, annotation.NoProgressTimeout, stated)
	s.rolloutRequired = read(&s, annotation.RolloutRequired, stated)
	if n, ok := readStated(&s, annotation.FailuresAllowed, stated); ok {
		s.failuresAllowed = &n
	}
	s.failMode = read(&s, annotation.FailMode, stated)
	s.readLogs(stated)
	s.showEvents = read(&s, annotation.Events, stated)
	s.sensitive = read(&s, annotation.Sensitive, stated)

	ready, failed := annotation.Ready.Name, annotation.Failed.Name
	override, err := rules.NewOverride(stated[ready], stated[failed])
	if err != nil {
		s.unreadable = append(s.unreadable, fmt.Sprintf("annotation %s or %s: %v", ready, failed, err))
	}
	s.override = override
	return s
}

// logModes are the words of the annotation.
var logModes = map[string]LogMode{"none": LogsNone, "failed": LogsFailed, "all": LogsLive, "live": LogsLive}

func (s *settings) readLogs(stated map[string]string) {
	maxPods, ok := readStated(s, annotation.LogsPods, stated)
	s.logs.maxPods = maxPods
	if ok && maxPods == 0 {
		s.logs.mode = LogsNone
	}
	if mode, ok := logModes[read(s, annotation.Logs, stated)]; ok {
		s.logs.mode = mode
	}
	s.logs.only = read(s, annotation.LogsContainers, stated)
	s.logs.except = read(s, annotation.LogsSkipContainers, stated)
	s.logs.include = readForContainers(s, annotation.LogsRegex, annotation.LogsRegexFor, stated)
	s.logs.exclude = readForContainers(s, annotation.LogsSkipRegex, annotation.LogsSkipRegexFor, stated)
}

// read gives the value of an annotation; the zero value when there is none.
func read[T any](s *settings, key *annotation.Key[T], stated map[string]string) T {
	value, _ := readStated(s, key, stated)
	return value
}

// readStated also says whether there is a value.
func readStated[T any](s *settings, key *annotation.Key[T], stated map[string]string) (T, bool) {
	value, ok, errs := key.Read(stated)
	s.addUnreadable(errs)
	return value, ok
}

// readForContainers gives the values of an annotation for all containers, by "", and
// for single ones.
func readForContainers[T any](s *settings, forAll, forOne *annotation.Key[T], stated map[string]string) map[string]T {
	values, errs := forOne.ReadEach(stated)
	s.addUnreadable(errs)
	if value, ok := readStated(s, forAll, stated); ok {
		values[""] = value
	}
	return values
}

func (s *settings) addUnreadable(errs []*annotation.ValueError) {
	for _, err := range errs {
		s.unreadable = append(s.unreadable, "annotation "+err.Error())
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
