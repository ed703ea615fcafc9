package apply

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/ordering"
	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A Change is the decision about one object: its live and its desired state, why they
// differ, and what is written.
type Change struct {
	ID     kube.ID
	Source string // template; empty when unknown
	Action decide.Action

	// Live is the object as Plan found it; nil when it was absent, or couldn't be read yet.
	// For an object that is deleted or was recognised by its fingerprint, it has only
	// metadata, without managedFields.
	Live *unstructured.Unstructured
	// Desired is the object as it will be applied; nil when it is deleted, for an object
	// recognised by its fingerprint, and for a definition that --crds create leaves as it is.
	Desired *unstructured.Unstructured
	// Predicted is the object as the server, or without it a local estimate, says that it
	// will be. It is nil for deletions, when neither could tell, and after Run.
	Predicted *unstructured.Unstructured
	// Applied is the object as the server has it after Run; nil before, and for what was
	// deleted, given back or kept.
	Applied *unstructured.Unstructured

	Reason    string          // "removed from the chart", "spec.selector is immutable", "left by failed revision 7"
	Conflicts []FieldConflict // fields that another manager set to other values
	// Fields lists the changed fields. For an Update, it comes from the server's dry run,
	// or from a local estimate. For a Recreate, it lists where the desired object differs
	// from the live one. For a Create, it lists the values that the server changes. For a
	// GiveBack, it lists what is restored.
	Fields    []compare.FieldChange
	TakenFrom []string // managers whose fields become ours, metadata only: "helm (Update)"

	// DependsOn is what the object says it waits for: others to be ready or there, or,
	// where it is deleted, to be gone.
	DependsOn []ordering.Dependency
	// Weight is the one that the object states; nil when it states none.
	Weight *int

	// Stays says why an object doesn't go back with the others in a rollback; nil for all that do.
	Stays *decide.Stay

	// Unverified says why the server was not, or could not be, asked beforehand.
	Unverified string
	// Deferral says what the decision waits for, if that is why the change is Unverified;
	// nil for a change that is decided.
	Deferral *Deferral

	// IsDone says that the change was carried out, or that there was nothing to do. Run and Prune set it.
	IsDone bool
	// Warning is about how the change was carried out; Run sets it, and Plan where an object stays ahead.
	Warning string

	// Provenance says where the live object came from. If the object may have to be given
	// back, it also records what Run is about to overwrite. Nil for an absent object, and
	// when no record tells.
	Provenance *provenance.Provenance

	// RevisitNextRelease says that the reason to keep an object may be temporary, or that it is deleted when the release is
	// recorded already: the next release decides about it again if its Key is in Request.Revisit.
	RevisitNextRelease bool

	// Contribution is what the release has contributed to a definition of crds/: before the
	// change, and after Run what it has to record. Nil when no part of the definition is its own.
	Contribution *definition.Contribution

	fingerprint  Fingerprint             // by which it was recognised
	manifestHash string                  // hash of the manifest; empty for what gets no fingerprint
	writes       []write                 // that carry it out, in order; none when there is nothing to do, or it has to be decided first
	orphan       *orphan                 // what the chart no longer has, or what is given back; nil for other changes, and when it is carried out
	makes        bool                    // what is there afterwards is this run's own
	takesAccess  bool                    // from the account that deployer runs as: it comes last
	needs        []string                // verbs that it needs and of which no dry run tells; see permissions.check
	denied       *verify.PermissionError // the permission that the account lacks for it; nil when none is known to be missing
}

// A FieldConflict is a field of the chart that another manager set to
// something else. Confidential values are hidden. Its JSON is a promise, see docs/json.md.
type FieldConflict struct {
	Path                   string              `json:"path"`
	ownership.FieldManager                     // the other manager
	Before                 string              `json:"before" text:"free"` // the live value, as JSON on one line
	After                  string              `json:"after" text:"free"`  // the chart's value
	Outcome                decide.FieldOutcome `json:"outcome"`
	// CollidesWith is an item of the chart that can't coexist with this item of another
	// manager although their keys differ, such as a port with another number but the same
	// name. Empty for a field with two values.
	CollidesWith string         `json:"collides_with,omitempty"`
	FieldPath    fieldpath.Path `json:"-"` // Path as structured-merge-diff has it; nil if the chart's API version has no such field
	Contest      decide.Contest `json:"-"`
}

func (c FieldConflict) String() string {
	if c.CollidesWith != "" {
		return fmt.Sprintf("%s: %s -> %s for %s (%s by %s)", c.Path, c.Before, c.After, c.CollidesWith, c.Outcome, c.Manager)
	}
	return fmt.Sprintf("%s: %s -> %s (%s by %s)", c.Path, c.Before, c.After, c.Outcome, c.Manager)
}

// A Fingerprint is what a release record remembers of an object so that the next
// release can tell, from the object's metadata alone, that it still is exactly
// what was applied. It is opaque and a few dozen bytes.
type Fingerprint struct {
	UID  string `json:"uid"`
	Hash string `json:"print"`
}

// object returns the desired object, or the live one when there is no desired one.
func (c Change) object() *unstructured.Unstructured {
	return cmp.Or(c.Desired, c.Live)
}

// After returns the object after the change: as applied, or else as predicted; nil when
// neither is known.
func (c Change) After() *unstructured.Unstructured { return cmp.Or(c.Applied, c.Predicted) }

// MayWrite reports whether carrying the change out may write the object.
func (c Change) MayWrite() bool { return len(c.writes) > 0 || c.Deferral != nil }

// keep makes of a change one that leaves its object as it is, so that nothing is proved about it.
func (c *Change) keep(reason string) {
	c.Action, c.Reason = decide.Keep, reason
	c.Deferral, c.Predicted, c.writes, c.needs, c.denied, c.manifestHash = nil, nil, nil, nil, nil, ""
}

// isAdmission reports whether the change is about what the API server asks before it admits others: a policy or a webhook.
func (c Change) isAdmission() bool { return c.ID.Group == admissionGroup }

// IsUnreadable reports whether an orphan stays only because it couldn't be read.
func (c Change) IsUnreadable() bool { return c.Action == decide.Keep && c.Live == nil }

// WasNotCompared reports whether the object was recognised by its fingerprint, so that only
// its metadata is known. It is true of definitions that --crds create leaves as they are, too.
func (c Change) WasNotCompared() bool { return c.Action == decide.Unchanged && c.Desired == nil }
