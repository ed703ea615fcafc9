package track

import (
	"time"

	"deployer/track/finding"
)

// EventKind says what an Event is about, by its name in JSON.
type EventKind string

// The kinds of event. Which fields of an Event are set follows from its kind.
const (
	StatusChanged EventKind = "status_changed" // Status: state, counts or message changed
	ProblemSeen   EventKind = "problem_seen"   // Status: a problem appeared or became another one; it may heal
	Recovered     EventKind = "recovered"      // Status: the problem is over
	LogWritten    EventKind = "log_written"    // Log: a line of a hook, a Job, or what was asked for
	EventSeen     EventKind = "event_seen"     // Seen: a warning about a tracked object or its new pods
	Warned        EventKind = "warned"         // Text: a problem that stops nothing, such as a missing permission; once per Wait
	APILost       EventKind = "api_lost"       // Text: the API server is unreachable; timers pause
	APIRegained   EventKind = "api_regained"   // Lost: how long it was
)

// IsStatus reports whether the kind tells of the status of an object.
func (k EventKind) IsStatus() bool { return k == StatusChanged || k == ProblemSeen || k == Recovered }

// An Event is one thing that happened during Wait.
type Event struct {
	Kind      EventKind
	Time      time.Time
	Status    Status         // of the object concerned; only its ID is set for lines of logs and warnings of Kubernetes
	Log       *LogLine       // for LogWritten
	Seen      *finding.Event // for EventSeen
	ShowEvent bool           // for EventSeen: an annotation of the object asks for it to be shown
	Text      string         `text:"free"` // for Warned and APILost
	Lost      time.Duration  // for APIRegained
}

// A LogLine is one line of a container's log.
type LogLine struct {
	Pod, Container string
	Time           time.Time // by the node's clock; zero when unknown
	Text           string    `text:"free"` // without line end; lines over 8 KiB are cut and say so
	Dropped        int       // lines lost before this one because they came too fast
}
