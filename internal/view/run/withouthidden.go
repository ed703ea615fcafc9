package run

import (
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
)

// hideText is text from elsewhere without what is hidden, and with the name that the
// program was called by. It is asked before the text becomes part of a line or a
// document: there, names and words of ours that are the same are not to be hidden.
func (d *display) hideText(s string) string { return d.opts.Hidden.Hide(d.streams.WithCall(s)) }

// withoutHidden returns an event without confidential text. Errors aren't changed: their
// messages are filtered when they are written.
func (d *display) withoutHidden(event deploy.Event) deploy.Event {
	event.Event = textfmt.RewriteTagged(event.Event, d.hideText, d.streams.WithCall)
	event.Text = output.WithoutPasswords(event.Text) // libraries quote the URLs of repositories
	if event.Change != nil {
		change := *event.Change
		change.Reason = d.hideText(change.Reason)
		event.Change = &change
	}
	return event
}
