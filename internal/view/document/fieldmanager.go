package document

import (
	"strings"
	"time"

	"deployer/apply/ownership"
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
	var more []string
	for _, s := range []string{w.Operation, w.Subresource} {
		if s != "" {
			more = append(more, s)
		}
	}
	if w.Since != "" {
		more = append(more, "since "+w.Since)
	}
	if len(more) == 0 {
		return name
	}
	return name + " (" + strings.Join(more, ", ") + ")"
}

// FieldManagerOf is the writer of a managedFields entry.
func FieldManagerOf(w ownership.FieldManager) FieldManager {
	return FieldManager{Manager: w.Manager, Operation: string(w.Operation), Subresource: w.Subresource, Since: Timestamp(w.Time)}
}

// Timestamp is a time as documents write it; empty when it isn't known.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
