package run

import (
	"deployer/internal/deploy"
	"deployer/track"
)

// hideText is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (sc *display) hideText(s string) string { return sc.opts.Hidden.Hide(sc.withProgramName(s)) }

// withProgramName is a text of ours, such as a command line, with the program's name in it.
func (sc *display) withProgramName(s string) string { return sc.streams.WithProgramName(s) }

// withoutHidden returns an event without confidential text. Errors aren't changed: their
// messages are filtered when they are written.
func (sc *display) withoutHidden(event deploy.Event) deploy.Event {
	switch event := event.(type) {
	case deploy.Warned:
		event.Text = sc.hideText(event.Text)
		return event
	case deploy.Applied:
		event.Change.Reason = sc.hideText(event.Change.Reason)
		return event
	case deploy.Tracked:
		event.Report = sc.reportWithoutHidden(event.Report)
		return event
	}
	return event
}

func (sc *display) reportWithoutHidden(r track.Report) track.Report {
	r.Text = sc.hideText(r.Text)
	if r.Log != nil {
		log := *r.Log
		log.Text = sc.hideText(log.Text)
		r.Log = &log
	}
	if r.Event != nil {
		event := sc.eventWithoutHidden(*r.Event)
		r.Event = &event
	}
	r.Status = sc.statusWithoutHidden(r.Status)
	return r
}

func (sc *display) statusWithoutHidden(s track.Status) track.Status {
	s.Message, s.Notes = sc.hideText(s.Message), sc.hideTexts(s.Notes)
	if s.Problem == nil {
		return s
	}
	p := *s.Problem
	p.Title, p.Message, p.Advice = sc.hideText(p.Title), sc.hideText(p.Message), sc.hideText(p.Advice)
	p.Events = append([]track.Event{}, p.Events...)
	for i := range p.Events {
		p.Events[i] = sc.eventWithoutHidden(p.Events[i])
	}
	p.Logs = append([]track.LogTail{}, p.Logs...)
	for i := range p.Logs {
		p.Logs[i].Lines, p.Logs[i].UnavailableReason = sc.hideTexts(p.Logs[i].Lines), sc.hideText(p.Logs[i].UnavailableReason)
	}
	s.Problem = &p
	return s
}

func (sc *display) eventWithoutHidden(event track.Event) track.Event {
	event.Message = sc.hideText(event.Message)
	return event
}

func (sc *display) hideTexts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = sc.hideText(s)
	}
	return out
}
