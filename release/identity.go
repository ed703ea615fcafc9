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

// Identity is that of the history as it was listed, whatever was loaded since:
// a record that was written between its listing and its loading shows as a
// difference to any later history.
func (h *History) Identity() Identity { return h.identity }

func identify(heads []Summary) Identity {
	var b strings.Builder
	for _, s := range heads {
		fmt.Fprintf(&b, "%d %s %s %s\n", s.Revision, s.uid, s.resourceVersion, s.Status)
	}
	return Identity{known: true, records: b.String()}
}

// IsKnown says whether it is that of a history.
func (i Identity) IsKnown() bool { return i.known }

// IsLatest says whether the record, as it was stored, is the newest of a history:
// that of the same Secret, which no other run has written since.
func (r *Record) IsLatest(latest *Summary) bool {
	return latest != nil && latest.uid == string(r.stored.uid) && r.Journal != nil && latest.Run == r.Journal.Run
}
