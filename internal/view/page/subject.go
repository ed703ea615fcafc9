package page

import (
	"time"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/view/textfmt"
	"deployer/release"
)

// A Subject is the release that a document or an event is about, and what is done with it.
type Subject struct {
	Verb      deploy.Verb `json:"verb,omitempty"`
	Release   string      `json:"release,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	deploy.Place
	Chart    string `json:"chart,omitempty"`
	Revision int    `json:"revision,omitempty"`
}

// SubjectOf is the subject of an operation.
func SubjectOf(op *deploy.Operation) Subject {
	out := SubjectAt(op.Release, op.Namespace, op.Place, op.Next)
	out.Verb = op.Verb
	return out
}

// SubjectAt is a revision as a subject; its record is nil when it has none.
func SubjectAt(name, namespace string, place deploy.Place, record *release.Record) Subject {
	out := Subject{Release: name, Namespace: namespace, Place: place}
	if record != nil {
		out.Chart, out.Revision = (&chart.Chart{Helm: record.Chart}).Name(), record.Version
	}
	return out
}

// Where is the namespace, and the context of the kubeconfig where there is one.
func (s Subject) Where() string { return textfmt.WithNotes(s.Namespace, s.Context) }

// Timestamp is a time in RFC 3339; empty when it isn't known.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
