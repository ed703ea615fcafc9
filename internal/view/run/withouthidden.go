package run

import (
	"deployer/internal/deploy"
	"deployer/track"
)

// text is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (sc *screen) text(s string) string { return sc.opts.Hidden.Hide(sc.named(s)) }

// named is a text of ours, such as a command line, with the program's name in it.
func (sc *screen) named(s string) string { return sc.streams.Named(s) }

// withoutHidden gives an event whose text from elsewhere has nothing in it that
// is hidden. Errors are left: what is said of them is asked of text.
func (sc *screen) withoutHidden(event deploy.Event) deploy.Event {
	switch event := event.(type) {
	case deploy.Warned:
		event.Text = sc.text(event.Text)
		return event
	case deploy.Applied:
		event.Change.Reason = sc.text(event.Change.Reason)
		return event
	case deploy.Tracked:
		event.Report = sc.reportWithoutHidden(event.Report)
		return event
	}
	return event
}

func (sc *screen) reportWithoutHidden(r track.Report) track.Report {
	r.Text = sc.text(r.Text)
	if r.Log != nil {
		log := *r.Log
		log.Text = sc.text(log.Text)
		r.Log = &log
	}
	if r.Event != nil {
		event := sc.eventWithoutHidden(*r.Event)
		r.Event = &event
	}
	r.Status = sc.statusWithoutHidden(r.Status)
	return r
}

func (sc *screen) statusWithoutHidden(s track.Status) track.Status {
	s.Message, s.Notes = sc.text(s.Message), sc.texts(s.Notes)
	if s.Problem == nil {
		return s
	}
	p := *s.Problem
	p.Title, p.Message, p.Advice = sc.text(p.Title), sc.text(p.Message), sc.text(p.Advice)
	p.Events = append([]track.Event{}, p.Events...)
	for i := range p.Events {
		p.Events[i] = sc.eventWithoutHidden(p.Events[i])
	}
	p.Logs = append([]track.LogTail{}, p.Logs...)
	for i := range p.Logs {
		p.Logs[i].Lines, p.Logs[i].UnavailableReason = sc.texts(p.Logs[i].Lines), sc.text(p.Logs[i].UnavailableReason)
	}
	s.Problem = &p
	return s
}

func (sc *screen) eventWithoutHidden(event track.Event) track.Event {
	event.Message = sc.text(event.Message)
	return event
}

func (sc *screen) texts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = sc.text(s)
	}
	return out
}
