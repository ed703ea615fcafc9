package apply

import (
	"context"
	"strings"

	"deployer/internal/kube"
)

// Revision is one earlier revision of the release.
type Revision struct {
	Revision int
	Status   string // Helm's word: deployed, superseded, failed, pending-upgrade, ...
	// Succeeded says that it was deployed completely, now or once: Helm also calls failed ones superseded.
	Succeeded bool
	Objects   []kube.Manifest
	Hooks     []kube.Manifest
	// Provenance says where the objects came from, by Key, as the revision's run has
	// recorded it; nil when the record has none.
	Provenance map[string]Provenance
}

// A Request is the desired state of the cluster, and the history of the release. Objects that name no
// namespace get that of the release, if their kind has namespaces.
type Request struct {
	// CRDs are the objects of the chart's crds/ directory. They carry no
	// ownership and are never pruned.
	CRDs []kube.Manifest
	// Objects are the chart's objects in any order.
	Objects []kube.Manifest
	// Uninstall says that the whole release is removed, also the objects of its hooks.
	Uninstall bool
	// Undo says that a failed run is undone.
	Undo bool
	// BackTo is the revision to roll back to; 0 when it isn't a rollback. Objects that
	// only failed runs have adopted since are given back, even if that revision has them.
	BackTo int
	// MovedToCRDs are the definitions that revisions after BackTo have in crds/, where they carry no
	// ownership. They are the release's if BackTo has them among its objects.
	MovedToCRDs []kube.ID
	// Hooks are the hooks of this operation that will run. Plan asks the server
	// whether it would accept them, and never prunes an object of their name.
	Hooks []kube.Manifest
	// PreHooks is how many of Hooks run before the first change of an object. What the server refuses now may then
	// be different: see Applier.PlanAgain.
	PreHooks int
	// OtherHooks are hooks of the chart that don't run now. Their objects are never pruned.
	OtherHooks []kube.Manifest
	// Revisions are the revisions that may have left objects, oldest first: the last
	// successful one and all later ones. These are all revisions if none was successful,
	// or if the last one was made by another tool.
	Revisions []Revision
	// Older reads the stored revisions before Revisions, of which objects have only what others have brought back since. It
	// may be nil.
	Older func(context.Context) ([]Revision, error)
	// Revisit are the Keys of objects that an earlier release kept and that are decided
	// again: those of its changes with RevisitNextRelease set.
	Revisit []string
	// Fingerprints are those of the last record, by Key; nil when it has none.
	Fingerprints map[string]Fingerprint
	// Contributions are the recorded contributions of earlier revisions to the
	// definitions in crds/, by Key: see Change.Contribution. A definition without one
	// counts as added by others.
	Contributions map[string]Contribution
	// NewNamespaces are namespaces that the caller creates before the first Run.
	NewNamespaces []string
}

// Key is the name of an object in a release record.
func Key(id kube.ID) string {
	return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name
}

// ParseKey parses a Key; false when it isn't one.
func ParseKey(key string) (kube.ID, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return kube.ID{}, false
	}
	return kube.ID{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, true
}
