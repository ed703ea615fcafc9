package release

import (
	"fmt"
	"strings"
)

// An Identity tells one state of a release from any other: which records there
// are, by the UIDs of their Secrets, and that none was written since, by
// resourceVersion and status. Two are equal by ==. The zero value is that of a
// history that nobody has read: it equals no other, and where an identity is
// asked for it means the state of now.
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
		fmt.Fprintf(&b, "%d %s %s %s\n", s.Revision, s.uid, s.version, s.Status)
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
