package run

import (
	"deployer/internal/deploy"
	"deployer/track"
)

// hideText is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (d *display) hideText(s string) string { return d.opts.Hidden.Hide(d.withProgramName(s)) }

// withProgramName is a text of ours, such as a command line, with the program's name in it.
func (d *display) withProgramName(s string) string { return d.streams.WithProgramName(s) }

// withoutHidden returns an event without confidential text. Errors aren't changed: their
// messages are filtered when they are written.
func (d *display) withoutHidden(event deploy.Event) deploy.Event {
	switch event := event.(type) {
	case deploy.Warned:
		event.Text = d.hideText(event.Text)
		return event
	case deploy.Applied:
		event.Change.Reason = d.hideText(event.Change.Reason)
		return event
	case deploy.Tracked:
		event.Report = d.reportWithoutHidden(event.Report)
		return event
	}
	return event
}

func (d *display) reportWithoutHidden(r track.Report) track.Report {
	r.Text = d.hideText(r.Text)
	if r.Log != nil {
		log := *r.Log
		log.Text = d.hideText(log.Text)
		r.Log = &log
	}
	if r.Event != nil {
		event := d.eventWithoutHidden(*r.Event)
		r.Event = &event
	}
	r.Status = d.statusWithoutHidden(r.Status)
	return r
}

func (d *display) statusWithoutHidden(s track.Status) track.Status {
	s.Message, s.Notes = d.hideText(s.Message), d.hideTexts(s.Notes)
	if s.Problem == nil {
		return s
	}
	p := *s.Problem
	p.Title, p.Message, p.Advice = d.hideText(p.Title), d.hideText(p.Message), d.hideText(p.Advice)
	p.Events = append([]track.Event{}, p.Events...)
	for i := range p.Events {
		p.Events[i] = d.eventWithoutHidden(p.Events[i])
	}
	p.Logs = append([]track.LogTail{}, p.Logs...)
	for i := range p.Logs {
		p.Logs[i].Lines, p.Logs[i].UnavailableReason = d.hideTexts(p.Logs[i].Lines), d.hideText(p.Logs[i].UnavailableReason)
	}
	s.Problem = &p
	return s
}

func (d *display) eventWithoutHidden(event track.Event) track.Event {
	event.Message = d.hideText(event.Message)
	return event
}

func (d *display) hideTexts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = d.hideText(s)
	}
	return out
}
