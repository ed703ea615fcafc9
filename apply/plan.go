package apply

import (
	"context"
	"iter"
	"slices"
	"strings"

	"deployer/apply/definition"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// A Plan is a decision that hasn't been carried out. To carry it out, pass CRDs and then
// the changes of each wave to Run, and what is pruned to Applier.Prune: PruneFirst before the first wave,
// that of a wave before the wave, and Prune at the end. Last and PruneLast come when the run is recorded. Before each wave the
// caller waits until the objects in its Await are ready. Between them it may run hooks and wait
// for objects.
type Plan struct {
	CRDs       []Change // of the crds/ directory
	PruneFirst []Change // what would act on the changes, see decide.WhyBefore: Delete, in the order of deletion
	Waves      []Wave   // all main objects, unchanged ones too
	Prune      []Change // the other orphans: Delete, Keep or GiveBack, with the reason, in the order of deletion
	PruneLast  []Change // the permissions by which the run acts: Delete, when all else is done and recorded
	Hooks      []Change // Create, with the server's verdict; Run doesn't take these

	Warnings []Warning
}

// Changes are all changes but those of hooks, in the order they are made.
func (p *Plan) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, list := range p.lists() {
			for _, c := range list {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Declares reports whether an object is part of the release after the plan: in the chart, in
// crds/, or the object of a hook that runs. Orphans aren't.
func (p *Plan) Declares(id kube.ID) bool {
	isIt := func(c Change) bool { return c.ID == id }
	return slices.ContainsFunc(p.CRDs, isIt) || slices.ContainsFunc(p.Hooks, isIt) ||
		slices.ContainsFunc(p.Waves, func(w Wave) bool { return slices.ContainsFunc(w.Changes, isIt) })
}

// Last are the changes of the last wave if that comes when all else is done and recorded; none if there is no such wave.
func (p *Plan) Last() []Change {
	if n := len(p.Waves); n > 0 && p.Waves[n-1].Last {
		return p.Waves[n-1].Changes
	}
	return nil
}

// lists returns the lists of changes in the order in which they are made.
func (p *Plan) lists() [][]Change {
	lists := [][]Change{p.CRDs, p.PruneFirst}
	for _, wave := range p.Waves {
		lists = append(lists, wave.PruneFirst, wave.Changes)
	}
	return append(lists, p.Prune, p.PruneLast)
}

// Orphans are the changes of objects that the chart no longer has, in the order they are made.
func (p *Plan) Orphans() [][]Change {
	lists := [][]Change{p.PruneFirst}
	for _, wave := range p.Waves {
		lists = append(lists, wave.PruneFirst)
	}
	return append(lists, p.Prune, p.PruneLast)
}

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
	Provenance map[string]provenance.Provenance
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
	Contributions map[string]definition.Contribution
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
