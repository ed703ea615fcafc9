package decide

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// An Orphan is an object that is there, that a revision had, and that the chart no longer has.
type Orphan struct {
	ID       kube.ID
	Live     metav1.Object
	Origin   Origin
	Declared *unstructured.Unstructured // as Revision had it; nil when it is KeptEarlier
	Revision int                        // the latest that had it
	Status   string                     // of that revision, in Helm's words

	// Provenance is what the records say of the object of its name; nil when none tells.
	Provenance *provenance.Provenance
	// OnRecord says that the latest successful revision has it.
	OnRecord bool
	// OursBefore says that it was the release's when this run began: a hook may have taken its ownership away, or made it anew.
	OursBefore bool
	// NeededBy is an object of the chart that would be deleted with it: one in this namespace, or of the kind that it
	// defines; the zero ID when there is none.
	NeededBy kube.ID
}

// An Origin says how the records of a release know of an orphan.
type Origin int

// The origins.
const (
	FromTemplate Origin = iota
	FromHook            // a hook had it whose objects are deleted when the chart drops it
	FromKeptHook        // a hook had it whose objects stay: it is only deleted if a template made it
	KeptEarlier         // only that an earlier release kept it is known
)

// Pruning says which orphans of a release are deleted.
type Pruning struct {
	Owner                 provenance.Owner // the release
	Uninstall             bool             // all of the release is removed
	Undo                  bool             // a failed run is rolled back
	Kinds                 []string         // protected kinds that are deleted all the same
	UnlistedGroupVersions []string         // API groups and versions that the server can't list and without which nothing is deleted
}

// DecideOrphan decides whether an orphan is deleted, kept or given back. An object that only failed
// runs have adopted is never deleted, because its owner may have data in it.
func (p Pruning) DecideOrphan(o Orphan) Decision {
	if p.LeftByHook(o) {
		return keep("a hook of the release made it")
	}
	if d, ok := p.adopted(o); ok {
		return d
	}
	owner, kind := p.Owner.OwnerOf(o.Live), o.ID.GroupKind()
	isTakenFromUs := provenance.IsNobodys(o.Live) || p.Owner.IsHalfOn(o.Live)
	if o.remadeByAggregator() || o.OursBefore && isTakenFromUs || o.OnRecord && o.Origin == FromTemplate && provenance.IsRemade(o.Live) {
		owner = p.Owner
	}
	annotations := []map[string]string{o.Live.GetAnnotations(), o.DeclaredAnnotations()}
	switch controller := metav1.GetControllerOf(o.Live); {
	case owner == (provenance.Owner{}) && o.Origin == FromHook:
		return keep("a hook that deployer didn't run created it, and no release owns it")
	case owner == (provenance.Owner{}):
		return keep("no longer belongs to a release")
	case owner != p.Owner:
		return keep("belongs to release " + owner.String() + " now")
	case slices.ContainsFunc(annotations, IsKept):
		return keep(KeepAnnotation + ": keep")
	case slices.ContainsFunc(annotations, HasUnknownPolicy):
		return keep(KeepAnnotation + " has an unknown value: not deleted")
	case o.ID.IsNamespace() && o.ID.Name == p.Owner.Namespace:
		return keep("it holds the release records")
	case protectedKinds[kind] && p.Uninstall && o.Origin == KeptEarlier:
		return keep("was kept when the chart dropped it")
	case protectedKinds[kind] && !slices.Contains(p.Kinds, o.ID.Kind) && p.Undo:
		return keepForNow("objects of this kind are kept when a failed run is rolled back: delete it yourself if it isn't needed")
	case protectedKinds[kind] && !slices.Contains(p.Kinds, o.ID.Kind):
		return keepForNow("objects of this kind are kept unless --prune-kind names the kind")
	case o.NeededBy != (kube.ID{}):
		return keepForNow(o.NeededBy.String() + " of the chart needs it")
	case controller != nil:
		return keepForNow(fmt.Sprintf("is controlled by %s/%s", controller.Kind, controller.Name))
	case len(p.UnlistedGroupVersions) > 0:
		return keepForNow(p.mayBeRendered() + "; to delete it anyway: --allow-partial-discovery")
	}
	return Decision{Action: Delete, Reason: p.whyDelete(o)}
}

// LeftByHook reports whether an orphan is one that its hook leaves, because no template of this release has made it.
func (p Pruning) LeftByHook(o Orphan) bool {
	return o.Origin == FromKeptHook && (provenance.OwnerOf(o.Live) != p.Owner || IsHook(o.Live))
}

// adopted decides about an orphan that only failed runs have adopted; false for other orphans.
func (p Pruning) adopted(o Orphan) (Decision, bool) {
	from, ours := o.Provenance, provenance.OwnerOf(o.Live) == p.Owner
	switch {
	case !from.MustBeGivenBack():
		return Decision{}, false
	case !from.Describes(o.Live):
		return keep("was recreated by another client since " + from.AdoptedBy() + ", had adopted the one before"), ours
	case !ours && (o.Live.GetDeletionTimestamp() != nil || !provenance.IsHalfAdopted(from, o.Live)):
		return Decision{}, false // the owner that it names has it already
	case o.Live.GetDeletionTimestamp() != nil:
		return keep("is being deleted already: only " + from.AdoptedBy() + ", had adopted it"), true
	case len(p.UnlistedGroupVersions) > 0:
		return keepForNow(p.mayBeRendered()), true
	}
	return Decision{Action: GiveBack, Reason: from.WhyGivenBack()}, true
}

func keep(reason string) Decision { return Decision{Action: Keep, Reason: reason} }

func keepForNow(reason string) Decision {
	return Decision{Action: Keep, Reason: reason, Revisit: true}
}

func (p Pruning) mayBeRendered() string {
	return "the API server can't list " + strings.Join(p.UnlistedGroupVersions, ", ") + ", so the chart may have rendered less than it should"
}

func (p Pruning) whyDelete(o Orphan) string {
	switch {
	case p.Uninstall:
		return "the release is uninstalled"
	case o.Origin == KeptEarlier:
		return "kept by an earlier revision for a reason that no longer applies"
	case o.Origin == FromHook:
		return fmt.Sprintf("left by a hook of revision %d that the chart no longer has", o.Revision)
	case o.Status == "deployed" || o.Status == "superseded":
		return "removed from the chart"
	}
	return fmt.Sprintf("left by %s revision %d", o.Status, o.Revision)
}

// DeclaredAnnotations are those that Revision states.
func (o Orphan) DeclaredAnnotations() map[string]string {
	if o.Declared == nil {
		return nil
	}
	return o.Declared.GetAnnotations()
}

// aggregator is the controller that fills aggregated ClusterRoles, by server-side
// apply. k8s.io/kubernetes/pkg/controller/clusterroleaggregation
const aggregator = "clusterrole-aggregation-controller"

// remadeByAggregator reports whether an aggregated ClusterRole has only been recreated by
// its controller after it was deleted.
func (o Orphan) remadeByAggregator() bool {
	managers := o.Live.GetManagedFields()
	return kube.IsAggregated(o.Declared) && len(managers) > 0 &&
		!slices.ContainsFunc(managers, func(e metav1.ManagedFieldsEntry) bool { return e.Manager != aggregator })
}

// ProtectedKinds are the kinds that are kept when the chart drops them, unless Pruning.Kinds
// names them: deleting them loses data that a chart can't restore.
func ProtectedKinds() []string {
	var out []string
	for gk := range protectedKinds {
		out = append(out, gk.Kind)
	}
	slices.Sort(out)
	return out
}

var protectedKinds = map[schema.GroupKind]bool{
	kube.CRDKind:                   true,
	kube.NamespaceKind:             true,
	{Kind: "PersistentVolume"}:     true,
	kube.PersistentVolumeClaimKind: true,
}
