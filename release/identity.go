package release

import (
	"fmt"
	"strings"
)

// An Identity identifies one state of a release history: the UIDs, resourceVersions and
// statuses of its records. Compare identities with ==. The zero value stands for an unread
// history. It equals no other value; as an argument it means the current state.
type Identity struct {
	known   bool
	records string // a line each, oldest first
}

// Identity returns the identity of the history as it was listed, even if records were
// loaded later: a record written between listing and loading shows as a difference to a
// later history.
func (h *History) Identity() Identity { return h.identity }

func identify(heads []Summary) Identity {
	var b strings.Builder
	for _, s := range heads {
		fmt.Fprintf(&b, "%d %s %s %s\n", s.Revision, s.UID, s.resourceVersion, s.Status)
	}
	return Identity{known: true, records: b.String()}
}

// IsKnown reports whether the identity is that of a history that was read.
func (i Identity) IsKnown() bool { return i.known }

// IsLatest reports whether the record, as it was stored, is the newest of a history: the
// same Secret, not written by another run since.
func (rec *Record) IsLatest(latest *Summary) bool {
	return latest != nil && latest.UID == string(rec.stored.uid) && rec.Journal != nil && latest.Run == rec.Journal.Run
}
