package page

import (
	"deployer/apply/ownership"
	"deployer/internal/view/textfmt"
)

// A FieldManager is a field manager and how it has written.
type FieldManager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Since       string `json:"since,omitempty"`
}

// String names who has written, as people know them.
func (w FieldManager) String() string { return w.Described(w.Manager) }

// Described adds to a name of the writer how and since when.
func (w FieldManager) Described(name string) string {
	since := ""
	if w.Since != "" {
		since = "since " + w.Since
	}
	return textfmt.WithNotes(name, w.Operation, w.Subresource, since)
}

// FieldManagerOf is the writer of a managedFields entry.
func FieldManagerOf(w ownership.FieldManager) FieldManager {
	return FieldManager{Manager: w.Manager, Operation: string(w.Operation), Subresource: w.Subresource, Since: Timestamp(w.Time)}
}
