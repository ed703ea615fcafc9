package run

import (
	"deployer/internal/deploy"
	"deployer/track"
)

// text is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (e *View) text(s string) string { return e.opts.Hidden.Hide(e.named(s)) }

// named is a text of ours, such as a command line, with the program's name in it.
func (e *View) named(s string) string { return e.streams.Named(s) }

// withoutHidden gives an event whose text from elsewhere has nothing in it that
// is hidden. Errors are left: what is said of them is asked of text.
func (e *View) withoutHidden(event deploy.Event) deploy.Event {
	switch event := event.(type) {
	case deploy.Warned:
		event.Text = e.text(event.Text)
		return event
	case deploy.Applied:
		event.Change.Reason = e.text(event.Change.Reason)
		return event
	case deploy.Tracked:
		event.Report = e.reportWithoutHidden(event.Report)
		return event
	}
	return event
}

func (e *View) reportWithoutHidden(r track.Report) track.Report {
	r.Text = e.text(r.Text)
	if r.Log != nil {
		log := *r.Log
		log.Text = e.text(log.Text)
		r.Log = &log
	}
	if r.Event != nil {
		event := e.eventWithoutHidden(*r.Event)
		r.Event = &event
	}
	r.Status = e.statusWithoutHidden(r.Status)
	return r
}

func (e *View) statusWithoutHidden(s track.Status) track.Status {
	s.Message, s.Notes = e.text(s.Message), e.texts(s.Notes)
	if s.Problem == nil {
		return s
	}
	p := *s.Problem
	p.Title, p.Message, p.Advice = e.text(p.Title), e.text(p.Message), e.text(p.Advice)
	p.Events = append([]track.Event{}, p.Events...)
	for i := range p.Events {
		p.Events[i] = e.eventWithoutHidden(p.Events[i])
	}
	p.Logs = append([]track.LogTail{}, p.Logs...)
	for i := range p.Logs {
		p.Logs[i].Lines, p.Logs[i].UnavailableReason = e.texts(p.Logs[i].Lines), e.text(p.Logs[i].UnavailableReason)
	}
	s.Problem = &p
	return s
}

func (e *View) eventWithoutHidden(event track.Event) track.Event {
	event.Message = e.text(event.Message)
	return event
}

func (e *View) texts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = e.text(s)
	}
	return out
}
