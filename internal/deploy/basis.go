package deploy

import (
	"fmt"

	"deployer/release"
)

// A Basis is what a decision was based on. The decision holds as long as the basis is the
// same.
type Basis struct {
	// Records is the identity of all records of the release; unknown for an
	// operation that isn't decided yet.
	Records        release.Identity
	Verb           Verb
	Latest         *release.Summary  // the latest revision; nil before the first
	Revisions      []release.Summary // all there are, oldest first
	ReusedRevision int               // revision whose values are reused
}

// differsFrom reports whether the basis differs in a way that a user cares about.
func (b Basis) differsFrom(from Basis) bool {
	return b.Verb != from.Verb || b.describeLatest() != from.describeLatest() || b.ReusedRevision != from.ReusedRevision
}

func (b Basis) describeLatest() string {
	if b.Latest == nil {
		return "no revision"
	}
	return fmt.Sprintf("revision %d, which is %s", b.Latest.Revision, b.Latest.Status)
}

// String describes the basis.
func (b Basis) String() string {
	text := fmt.Sprintf("%s based on %s", b.Verb, b.describeLatest())
	if b.ReusedRevision != 0 {
		text += fmt.Sprintf(", with the values of revision %d", b.ReusedRevision)
	}
	return text
}
