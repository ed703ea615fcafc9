package decide

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/provenance"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// An Existing is an object that the release should have and that is there.
type Existing struct {
	ID       kube.ID
	Live     metav1.Object
	Desired  map[string]string // annotations
	FromCRDs bool              // of the chart's crds/: it carries no ownership
	WasHook  bool              // a revision had an object of its name as a hook

	// OursUnowned says that the object is the release's although it may carry no ownership: a namespace that the run has
	// created, a definition that a revision after Claims.BackTo has in its crds/, or what the latest successful revision has,
	// or what the plan had before its hooks ran, or found absent, and nobody else owns: somebody has made it anew.
	OursUnowned bool
	WhyOurs     string // for people, where OursUnowned
	// Provenance is what the records say of the object of its name; nil when none tells.
	Provenance *provenance.Provenance
}

// Claims say which live objects a release may change.
type Claims struct {
	Owner provenance.Owner // the release

	Adopt             []string // objects that may be adopted from anybody, as "kind/name" or "kind/namespace/name"
	TakeOwnership     bool     // objects of no release may be adopted
	TakeOwnershipFrom []string // releases whose objects may be adopted, as "namespace/name"; "*" means any

	ReplaceInCRDs bool // objects of crds/ that belong to nobody are updated

	BackTo int  // the revision that is rolled back to; 0 for none
	Undo   bool // a failed run is rolled back to BackTo: nothing is adopted
}

// DecideExisting decides about an object that is there, before an update of it is predicted.
// The action is empty if the object isn't the release's and may not become so.
func (c Claims) DecideExisting(e Existing) Decision {
	adopts, permitted, why := c.claim(e)
	deleting := e.Live.GetDeletionTimestamp() != nil
	switch {
	case c.isOthersInCRDs(e) && !deleting:
		return keepOwned(e.Live)
	case e.FromCRDs && !e.ID.IsCRD() && !deleting && !c.ReplaceInCRDs && c.Owner.OwnerOf(e.Live) == (provenance.Owner{}):
		return keep("exists already and belongs to no release: what is in crds/ and defines no kind is only created")
	case c.AdoptedSince(e):
		return Decision{Action: GiveBack, Reason: e.Provenance.WhyGivenBack()}
	case !permitted && c.adoptedByFailedRunsSince(e) && e.Provenance.HadOwnerOf(e.Live): // an earlier try has given it back
		return keepOwned(e.Live)
	case c.Undo && c.BackTo != 0 && !e.FromCRDs && !deleting && (adopts || !permitted):
		return keepOwned(e.Live)
	case !permitted:
		return Decision{}
	case deleting:
		return Decision{Action: Create, Reason: "the existing one is being deleted"}
	}
	return Decision{Action: Update, Adopts: adopts, Reason: why}
}

// isOthersInCRDs reports whether an object of crds/ belongs to another release. Definitions, of which
// a release keeps only its own part, are shared.
func (c Claims) isOthersInCRDs(e Existing) bool {
	owner := c.Owner.OwnerOf(e.Live)
	return e.FromCRDs && !e.ID.IsCRD() && owner != (provenance.Owner{}) && owner != c.Owner
}

func keepOwned(live metav1.Object) Decision {
	return keep("stays as it is: it belongs to " + nameOf(provenance.OwnerOf(live)))
}

// AdoptedSince reports whether only failed runs after the revision that is rolled back to have
// adopted an object, and it still has to be given back.
func (c Claims) AdoptedSince(e Existing) bool {
	return c.adoptedByFailedRunsSince(e) && (provenance.OwnerOf(e.Live) == c.Owner || provenance.IsHalfAdopted(e.Provenance, e.Live))
}

func (c Claims) adoptedByFailedRunsSince(e Existing) bool {
	if c.BackTo == 0 || e.FromCRDs || e.Live.GetDeletionTimestamp() != nil {
		return false
	}
	return e.Provenance.MustBeGivenBack() && e.Provenance.Describes(e.Live) && e.Provenance.Adopted.Revision > c.BackTo
}

// claim reports whether the release may change an object, whether that adopts it, and why, unless the object says that it is the release's.
func (c Claims) claim(e Existing) (adopts, permitted bool, why string) {
	owner := c.Owner.OwnerOf(e.Live)
	switch {
	case e.FromCRDs, owner == c.Owner:
		return false, true, ""
	case owner == (provenance.Owner{}) && e.WasHook && IsHook(e.Live):
		return false, true, "" // Helm writes no ownership on the objects of hooks. (helm#8944)
	case owner == (provenance.Owner{}) && e.OursUnowned:
		return false, true, e.WhyOurs
	}
	taken, why := c.TakeOwnership, "adopted: it belonged to no release"
	if owner != (provenance.Owner{}) {
		taken = slices.Contains(c.TakeOwnershipFrom, "*") || slices.Contains(c.TakeOwnershipFrom, owner.String())
		why = "taken over from release " + owner.String()
	}
	taken = taken || slices.ContainsFunc(c.Adopt, func(entry string) bool { return isNamedBy(e.ID, entry) })
	return taken, taken, why
}

// UnusedAdoptions returns the entries of Adopt that name none of the objects, such as misspelt ones.
func (c Claims) UnusedAdoptions(ids []kube.ID) []string {
	return slices.DeleteFunc(slices.Clone(c.Adopt), func(entry string) bool {
		return slices.ContainsFunc(ids, func(id kube.ID) bool { return isNamedBy(id, entry) })
	})
}

// isNamedBy reports whether an object is the one of a kind/name or kind/namespace/name.
func isNamedBy(id kube.ID, entry string) bool {
	kind, name, _ := strings.Cut(entry, "/")
	return strings.EqualFold(kind, id.Kind) && (name == id.Name || name == id.Namespace+"/"+id.Name)
}

func nameOf(owner provenance.Owner) string {
	if owner == (provenance.Owner{}) {
		return "no release"
	}
	return "release " + owner.String()
}

// The annotations of hooks.
// https://helm.sh/docs/topics/charts_hooks/
const (
	hookAnnotation             = "helm.sh/hook"
	hookDeletePolicyAnnotation = "helm.sh/hook-delete-policy"
)

// IsHook reports whether an object says that it is a hook, by Helm's annotation or by the one that our
// runs write. An item of a List that earlier builds created has only the latter.
func IsHook(obj metav1.Object) bool {
	_, declared := obj.GetAnnotations()[hookAnnotation]
	_, ran := obj.GetAnnotations()[annotation.HookRun.Name]
	return declared || ran
}

// DeletePolicies are the delete policies that the annotations of a hook name.
func DeletePolicies(annotations map[string]string) []string {
	var out []string
	for name := range strings.SplitSeq(annotations[hookDeletePolicyAnnotation], ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// HasDeletePolicy reports whether a delete policy is one of those that a hook names. If it names
// none, it has before-hook-creation.
// https://helm.sh/docs/topics/charts_hooks/#hook-deletion-policies
func HasDeletePolicy[T ~string](named []T, policy T) bool {
	if len(named) == 0 {
		return policy == "before-hook-creation"
	}
	return slices.Contains(named, policy)
}

// WhyInTheWay says why the object that has the name of a hook must stay; empty when it may be
// deleted for the hook.
func (c Claims) WhyInTheWay(e Existing) string {
	owner := c.Owner.OwnerOf(e.Live)
	switch {
	case owner != (provenance.Owner{}) && owner != c.Owner:
		return "belongs to release " + owner.String()
	case owner == (provenance.Owner{}) && !(e.WasHook && IsHook(e.Live)):
		return "is not a hook of this release"
	case e.Provenance.Describes(e.Live) && e.Provenance.MustBeGivenBack():
		return "doesn't belong to this release: only " + e.Provenance.AdoptedBy() + ", had adopted it"
	case e.ID.IsCRD():
		return "CustomResourceDefinitions are never deleted for a hook"
	}
	return whyNotReplacedByHook(e)
}

// whyNotReplacedByHook says why an object of the release isn't deleted for a hook of its name; empty when it
// is. What may hold data is deleted only if it is a hook, and if the delete policy of the new hook deletes
// hooks before the next run or after success. What isn't a hook is deleted where Helm deletes it too.
// helm.sh/helm/v3/pkg/action/hooks.go
func whyNotReplacedByHook(e Existing) string {
	gk, annotations := e.ID.GroupKind(), e.Live.GetAnnotations()
	holdsData := protectedKinds[gk] || gk == kube.StatefulSetKind || IsKept(annotations) || HasUnknownPolicy(annotations)
	policies := DeletePolicies(e.Desired)
	deletesBefore := HasDeletePolicy(policies, "before-hook-creation")
	switch isHook := IsHook(e.Live); {
	case isHook && holdsData && !deletesBefore && !HasDeletePolicy(policies, "hook-succeeded"):
		return "may hold data, and the hook's delete policy keeps it"
	case !isHook && holdsData:
		return "is an object of this release and not a hook, and it may hold data: delete it yourself if it isn't needed, or give the hook another name"
	case !isHook && !deletesBefore && !kube.RunsToEnd(gk):
		return "is an object of this release and not a hook: delete it yourself, or use the delete policy before-hook-creation"
	}
	return ""
}
