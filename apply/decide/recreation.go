package decide

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// neverRecreated are kinds that are never recreated: deleting them loses data that can't
// be restored.
var neverRecreated = map[schema.GroupKind]bool{
	kube.CRDKind:               true,
	kube.NamespaceKind:         true,
	{Kind: "PersistentVolume"}: true,
}

// A Recreation is an object that can be updated only by deleting and creating it again, because
// a field of it is immutable.
type Recreation struct {
	ID            kube.ID
	Live, Desired map[string]string // annotations
	Allowed       bool              // by the operation
	// Adopted says that this run adopts the object, or that only failed runs have adopted it:
	// once it is deleted, it can't be given back.
	Adopted bool
	// Derived says that a controller makes its content, which nobody can keep.
	Derived bool
	// HoldsData says that data may go with it: what stands behind a custom resource, or the claims of a StatefulSet.
	HoldsData bool
}

// A RecreationPermission says whether something may be done.
type RecreationPermission int

// The permissions.
const (
	Permitted       RecreationPermission = iota
	NeedsPermission                      // the user may permit it
	NeverPermitted
)

// Permission says whether the object may be recreated.
func (r Recreation) Permission() RecreationPermission {
	gk := r.ID.GroupKind()
	for _, annotations := range []map[string]string{r.Live, r.Desired} {
		if neverRecreated[gk] || IsKept(annotations) || HasUnknownPolicy(annotations) {
			return NeverPermitted
		}
	}
	annotated, _, _ := annotation.Recreate.Read(r.Desired)
	permitted := r.Allowed || annotated || r.Derived || gk == kube.JobKind
	switch {
	case gk == kube.PersistentVolumeClaimKind, r.HoldsData:
		permitted = r.Allowed && annotated
	case r.Adopted:
		permitted = r.Allowed
	}
	if permitted {
		return Permitted
	}
	return NeedsPermission
}
