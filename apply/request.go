package apply

import (
	"iter"
	"slices"
	"strings"

	"deployer/internal/kube"
)

// Revision is one earlier revision of the release.
type Revision struct {
	Revision int
	Status   string // Helm's word: deployed, superseded, failed, pending-upgrade, ...
	Objects  []kube.Manifest
	Hooks    []kube.Manifest
	// Provenance is where the objects came from, by Key, as its run has noted it;
	// nil when its record has no such notes.
	Provenance map[string]Provenance
}

// A Request is what the cluster should look like, and what was there before.
type Request struct {
	// CRDs are the objects of the chart's crds/ directory. They carry no
	// ownership and are never pruned.
	CRDs []kube.Manifest
	// Objects are the chart's objects in any order.
	Objects []kube.Manifest
	// Uninstall says that the release goes, and not only objects of it: what its
	// hooks have made goes too.
	Uninstall bool
	// Undo says that a run which failed is undone.
	Undo bool
	// BackTo is the revision that is gone back to; 0 for what isn't a rollback. What
	// only unsuccessful runs have adopted since is given back, also if that revision
	// has it.
	BackTo int
	// Hooks are the hooks of this operation that will run. Plan asks the server
	// whether it would accept them, and never prunes an object of their name.
	Hooks []kube.Manifest
	// Resting are hooks of the chart that need not run now. What they have made
	// stays.
	Resting []kube.Manifest
	// Revisions are the revisions that may have left something: the last successful
	// one and everything since, oldest first; all there are when none was
	// successful or the last one was made by another tool.
	Revisions []Revision
	// Revisit are the Keys of objects that an earlier release kept and that are
	// to be looked at again: those of its changes with RevisitNextRelease set.
	Revisit []string
	// Fingerprints are those of the last record, by Key; nil when it has none.
	Fingerprints map[string]Fingerprint
	// Contributions are what earlier revisions remember of the definitions in crds/, by
	// Key: see Change.Contribution. What isn't in it counts as brought by others.
	Contributions map[string]Contribution
	// NewNamespaces are namespaces that the caller creates before the first Run.
	NewNamespaces []string
}

// Key names an object in what a release remembers.
func Key(id kube.ID) string {
	return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name
}

// IDOf reads a Key; false when it is none.
func IDOf(key string) (kube.ID, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return kube.ID{}, false
	}
	return kube.ID{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, true
}

// A Plan is a decision not yet carried out. Carry it out by passing CRDs, then
// the changes of each wave, then Prune to Run, in this order. Before a wave the
// caller sees to it that what the wave awaits is so; else it runs hooks and
// waits for objects between them as it likes.
type Plan struct {
	CRDs  []Change // of the crds/ directory
	Waves []Wave   // all main objects, unchanged ones too
	Prune []Change // Delete or Keep, with the reason, in the order of deletion
	Hooks []Change // Create, with the server's verdict; Run doesn't take these

	Warnings  []Warning
	Conflicts []Conflict // all contested fields of all changes
}

// A Conflict is a contested field and the object it is in.
type Conflict struct {
	ID     kube.ID
	Source string
	FieldConflict
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

// States reports whether the object is one of the release, and not one that goes or is left
// behind: of the chart, of its crds/ or of a hook that runs.
func (p *Plan) States(id kube.ID) bool {
	isIt := func(c Change) bool { return c.ID == id }
	return slices.ContainsFunc(p.CRDs, isIt) || slices.ContainsFunc(p.Hooks, isIt) ||
		slices.ContainsFunc(p.Waves, func(w Wave) bool { return slices.ContainsFunc(w.Changes, isIt) })
}

// lists are the changes as Run takes them.
func (p *Plan) lists() [][]Change {
	lists := [][]Change{p.CRDs}
	for _, wave := range p.Waves {
		lists = append(lists, wave.Changes)
	}
	return append(lists, p.Prune)
}
