package run

import (
	"time"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/plan"
	"deployer/track"
)

// jsonRenderer writes a run as events, one JSON document per line of standard output.
type jsonRenderer struct {
	display *display
	runs    *runs
	outputs *outputs
}

// A jsonEvent is any event. Which fields it has follows from its name; they are
// described in docs/json.md.
type jsonEvent struct {
	Format int    `json:"format"`
	Event  string `json:"event"`
	Time   string `json:"time"`

	Verb      deploy.Verb `json:"verb,omitempty"`
	Release   string      `json:"release,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	deploy.Place
	Chart    string        `json:"chart,omitempty"`
	Revision int           `json:"revision,omitempty"`
	Target   int           `json:"target_revision,omitempty"`
	Plan     *plan.Summary `json:"plan,omitempty"`

	Step    deploy.Step `json:"step,omitempty"`
	Objects *int        `json:"objects,omitempty"`
	Seconds *float64    `json:"seconds,omitempty"`

	Object    string          `json:"object,omitempty"`
	Group     string          `json:"group,omitempty"`
	Action    apply.Action    `json:"action,omitempty"`
	Source    string          `json:"source,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Conflicts []plan.Conflict `json:"conflicts,omitempty"`
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

func (n *jsonRenderer) warn(text string) { n.write(jsonEvent{Event: "warned", Text: text}) }

func (n *jsonRenderer) stopping(text string) { n.write(jsonEvent{Event: "stopping", Text: text}) }

func (n *jsonRenderer) write(e jsonEvent) {
	e.Format = output.JSONVersion
	if e.Time == "" {
		e.Time = n.display.now().UTC().Format(time.RFC3339Nano)
	}
	n.outputs.writeJSON(rewriteTagged(e, n.display.hideText, n.display.streams.WithProgramName))
}

func (n *jsonRenderer) handle(event deploy.Event) {
	switch e := event.(type) {
	case deploy.Began:
		n.began(e.Operation)
	case deploy.StepBegan:
		n.write(jsonEvent{Event: "step_began", Step: e.Step, Objects: &e.Objects})
	case deploy.Applied:
		n.applied(e)
	case deploy.HookRan:
		names, _ := n.runs.current.namesOfHook(e.Hook)
		for _, name := range names {
			out := jsonEvent{Event: "hook_ran", Object: name, Source: e.Hook.Path, Seconds: new(roundedSeconds(e.Took)), Status: "succeeded"}
			if e.Err != nil {
				out.Status, out.Error = "failed", e.Err.Error()
			}
			n.write(out)
		}
	case deploy.Tracked:
		n.writeTracked(e.Report)
	case deploy.StepEnded:
		out := jsonEvent{Event: "step_ended", Step: e.Step, Objects: &e.Objects, Seconds: new(roundedSeconds(e.Took))}
		if e.Err != nil {
			out.Error = e.Err.Error()
		}
		n.write(out)
	case deploy.Warned:
		n.warn(e.Text)
	case deploy.Recorded:
		if r := e.Record; r != nil {
			out := jsonEvent{Event: "recorded", Revision: r.Version}
			if r.Info != nil {
				out.Status = r.Info.Status.String()
			}
			n.write(out)
		}
	}
}

func (n *jsonRenderer) began(op *deploy.Operation) {
	if len(n.runs.failed) > 0 { // the failed run is over; its report comes at the end
		last := n.runs.failed[len(n.runs.failed)-1]
		n.write(jsonEvent{Event: "undo_began", Verb: op.Verb, Error: last.ended.Err.Error()})
	}
	d := plan.Outline(op)
	n.write(jsonEvent{
		Event: "began", Verb: d.Verb, Release: d.Release, Namespace: d.Namespace, Place: d.Place, Chart: d.Chart, Revision: d.Revision,
		Target: d.TargetRevision, Plan: &d.Summary,
	})
	for _, w := range d.Warnings {
		n.warn(w.String())
	}
}

func (n *jsonRenderer) applied(e deploy.Applied) {
	c := e.Change
	out := jsonEvent{Event: "applied", Step: e.Step, Object: c.ID.String(), Group: c.ID.Group, Action: c.Action, Source: c.Source, Reason: c.Reason}
	for _, f := range c.Conflicts {
		out.Conflicts = append(out.Conflicts, plan.ConflictOf(c, f))
	}
	n.write(out)
}

func (n *jsonRenderer) writeTracked(r track.Report) {
	out := jsonEvent{Event: string(r.Kind)}
	if !r.Time.IsZero() {
		out.Time = r.Time.UTC().Format(time.RFC3339Nano)
	}
	if r.Status.ID.Kind != "" {
		out.Object, out.Group = r.Status.ID.String(), r.Status.ID.Group
	}
	switch r.Kind {
	case track.StatusChanged, track.ProblemSeen, track.Recovered:
		out.StatusFields = StatusFieldsOf(r.Status)
	case track.LogWritten:
		if r.Log == nil {
			return
		}
		out.Object, out.Group = r.Log.Object.String(), r.Log.Object.Group
		out.Pod, out.Container, out.Line, out.Dropped = r.Log.Pod, r.Log.Container, r.Log.Text, r.Log.Dropped
	case track.EventSeen:
		if r.Event == nil {
			return
		}
		out.Reason, out.Message, out.Count, out.Text = r.Event.Reason, r.Event.Message, r.Event.Count, r.Event.Object
	case track.Warned, track.APILost:
		out.Text = r.Text
	case track.APIRegained:
		out.Seconds = new(roundedSeconds(r.Lost))
	default:
		return
	}
	n.write(out)
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
