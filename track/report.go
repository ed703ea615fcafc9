package track

import (
	"time"

	"deployer/internal/kube"
)

// ReportKind says what a Report is about.
type ReportKind string

// The kinds of report, by the names of their events in JSON. Which fields of a Report are set follows from its kind.
const (
	StatusChanged ReportKind = "status_changed" // Status: state, counts or message changed
	ProblemSeen   ReportKind = "problem_seen"   // Status: a problem appeared or became another one; it may heal
	Recovered     ReportKind = "recovered"      // Status: the problem is over
	LogWritten    ReportKind = "log_written"    // Log: a line of a hook, a Job, or what was asked for
	EventSeen     ReportKind = "event_seen"     // Event: a warning about a tracked object or its new pods
	Warned        ReportKind = "warned"         // Text: once per Wait, such as a missing permission
	APILost       ReportKind = "api_lost"       // Text: the API server is unreachable; timers pause
	APIRegained   ReportKind = "api_regained"   // Lost: how long it was
)

// A Report is one thing that happened during Wait.
type Report struct {
	Kind      ReportKind
	Time      time.Time
	Status    Status        // of the object concerned; only its ID is set for log lines and events; zero for warnings
	Log       *LogLine      // for LogWritten
	Event     *Event        // for EventSeen
	ShowEvent bool          // for EventSeen: an annotation of the object asks for it to be shown
	Text      string        `text:"free"` // for Warned and APILost
	Lost      time.Duration // for APIRegained
}

// A LogLine is one line of a container's log.
type LogLine struct {
	Object         kube.ID // the tracked object whose pod wrote it
	Pod, Container string
	Time           time.Time // by the node's clock; zero when unknown
	Text           string    `text:"free"` // without line end; lines over 8 KiB are cut and say so
	Dropped        int       // lines lost before this one because they came too fast
}
