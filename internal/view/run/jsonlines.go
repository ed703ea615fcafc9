package run

import (
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
	"deployer/internal/view/textfmt"
	"deployer/track"
)

// jsonRenderer writes a run as events, one JSON document per line of standard output.
type jsonRenderer struct{ view *View }

// A jsonEvent is any event. Which fields it has follows from its name; they are
// described in docs/json.md.
type jsonEvent struct {
	Format int             `json:"format"`
	Event  track.EventKind `json:"event"`
	Time   string          `json:"time"`

	page.Subject
	Target int           `json:"target_revision,omitempty"`
	Plan   *plan.Summary `json:"plan,omitempty"`

	Step    deploy.Step `json:"step,omitempty"`
	Objects *int        `json:"objects,omitempty"`
	Seconds *float64    `json:"seconds,omitempty"`

	Object    string                `json:"object,omitempty"`
	Group     string                `json:"group,omitempty"`
	Action    decide.Action         `json:"action,omitempty"`
	Source    string                `json:"source,omitempty"`
	Reason    string                `json:"reason,omitempty"`
	Conflicts []apply.FieldConflict `json:"conflicts,omitempty"`
	StatusFields

	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Line      string `json:"line,omitempty" text:"free"`
	Dropped   int    `json:"dropped,omitempty"`
	Count     int    `json:"count,omitempty"`

	Text   string `json:"text,omitempty"`
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty" text:"free"`
}

// StatusFields say how an object is.
type StatusFields struct {
	State      string         `json:"state,omitempty"`
	Done       *int           `json:"done,omitempty"`
	Total      *int           `json:"total,omitempty"`
	Message    string         `json:"message,omitempty" text:"free"`
	Unverified bool           `json:"unverified,omitempty"`
	Notes      []string       `json:"notes,omitempty" text:"free"`
	Problem    *track.Finding `json:"problem,omitempty"`
}

func (n *jsonRenderer) tick()  {}
func (n *jsonRenderer) close() {}

func (n *jsonRenderer) write(e jsonEvent) {
	e.Format = output.JSONVersion
	if e.Time == "" {
		e.Time = n.view.now().UTC().Format(time.RFC3339Nano)
	}
	n.view.outputs.writeJSON(textfmt.RewriteTagged(e, n.view.hideText, n.view.streams.WithCall))
}

func (n *jsonRenderer) handle(e deploy.Event) {
	out := jsonEvent{Event: e.Kind, Step: e.Step, Text: e.Text}
	if !e.Time.IsZero() {
		out.Time = e.Time.UTC().Format(time.RFC3339Nano)
	}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	if id := e.Status.ID; id.Kind != "" {
		out.Object, out.Group = id.String(), id.Group
	}
	switch e.Kind {
	case deploy.Began:
		n.began(e.Operation)
		return
	case deploy.StepBegan:
		out.Objects = &e.Objects
	case deploy.StepEnded:
		out.Objects, out.Seconds = &e.Objects, new(roundedSeconds(e.Took))
	case deploy.Applied:
		out.applied(*e.Change)
	case deploy.HookRan:
		out.Source, out.Seconds, out.Status = e.Hook.Path, new(roundedSeconds(e.Took)), "succeeded"
		if e.Err != nil {
			out.Status = "failed"
		}
		names, _ := n.view.current.namesOfHook(e.Hook)
		for _, out.Object = range names {
			n.write(out)
		}
		return
	case deploy.Recorded:
		out.Revision, out.Status = e.Record.Version, e.Record.Info.Status.String()
	case track.StatusChanged, track.ProblemSeen, track.Recovered:
		out.StatusFields = StatusFieldsOf(e.Status)
	case track.LogWritten:
		out.Pod, out.Container, out.Line, out.Dropped = e.Log.Pod, e.Log.Container, e.Log.Text, e.Log.Dropped
	case track.EventSeen:
		out.Reason, out.Message, out.Count, out.Text = e.Seen.Reason, e.Seen.Message, e.Seen.Count, e.Seen.Object
	case track.APIRegained:
		out.Seconds = new(roundedSeconds(e.Lost))
	case track.Warned, track.APILost, stopping:
	default: // not for programs
		return
	}
	n.write(out)
}

func (n *jsonRenderer) began(op *deploy.Operation) {
	if failed := n.view.failed; failed != nil { // it is over; its report comes at the end
		n.write(jsonEvent{Event: "undo_began", Subject: page.Subject{Verb: op.Verb}, Error: failed.ended.Err.Error()})
	}
	d := plan.Outline(op)
	n.write(jsonEvent{Event: deploy.Began, Subject: d.Subject, Target: d.TargetRevision, Plan: &d.Summary})
}

func (e *jsonEvent) applied(c apply.Change) {
	e.Object, e.Group, e.Action, e.Source, e.Reason, e.Conflicts = c.ID.String(), c.ID.Group, c.Action, c.Source, c.Reason, c.Conflicts
}

// StatusFieldsOf gives the fields of a status.
func StatusFieldsOf(s track.Status) StatusFields {
	out := StatusFields{State: string(s.State), Message: s.Message, Unverified: s.Unverified, Notes: s.Notes}
	if s.Total > 0 {
		out.Done, out.Total = &s.Done, &s.Total
	}
	if s.Finding != nil {
		out.Problem = new(inUTC(*s.Finding))
	}
	return out
}

// An ended event is the result with the head of an event.
type ended struct {
	Format int    `json:"format"`
	Event  string `json:"event"`
	Time   string `json:"time"`
	Result
}
