// Package provenance knows which release an object belongs to, whether that release created or
// adopted it, what it was before, and what it becomes when it is given back to its former
// owner. It makes no requests.
package provenance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/ownership"
)

// A Provenance says whether the release created or adopted an object. It is about the
// object with this UID, not about others of its name.
type Provenance struct {
	UID     string
	Created bool
	Adopted *Adoption // nil when the release created it
}

// An Adoption describes how an object that the release didn't create became part of it.
type Adoption struct {
	Revision int    // that adopted it; 0 for the one that is being planned
	From     string // the release that had it, as "namespace/name"; empty for none
	// Final says that a revision with the object has succeeded since, so that it is the
	// release's like an object that it created. Until then the object is given back and
	// never deleted.
	Final bool
	Prior Prior
}

// NewAdoption returns the provenance of an object that the release us is about to adopt.
func NewAdoption(live metav1.Object, us Owner) *Provenance {
	adoption := &Adoption{Prior: Prior{OwnershipMetadata: ownershipMetadata(live), ManagedFields: live.GetManagedFields()}}
	if owner := OwnerOf(live); owner != us && owner.Release != "" && owner.Namespace != "" {
		adoption.From = owner.String()
	}
	adoption.Prior.shorten()
	return &Provenance{UID: string(live.GetUID()), Adopted: adoption}
}

// MustBeGivenBack reports whether an object has to be given back instead of deleted.
func (p *Provenance) MustBeGivenBack() bool { return p != nil && p.Adopted != nil && !p.Adopted.Final }

// Describes reports whether it was recorded for this very object.
func (p *Provenance) Describes(obj metav1.Object) bool {
	return p != nil && p.UID == string(obj.GetUID())
}

// AdoptedBy names the revision that adopted the object.
func (p *Provenance) AdoptedBy() string {
	if p.Adopted.Revision == 0 {
		return "a revision that failed"
	}
	return fmt.Sprintf("revision %d, which failed", p.Adopted.Revision)
}

// WhyGivenBack says to whom an object is given back, and why.
func (p *Provenance) WhyGivenBack() string {
	text := "given back to " + p.formerOwner() + ": only " + p.AdoptedBy() + ", had adopted it"
	if p.Adopted.Prior.FieldsOmitted {
		text += "; its former fields were too large to record, so its fields stay as they are"
	}
	return text
}

// formerOwner names the owner before the adoption: a release, or the managers of its
// fields.
func (p *Provenance) formerOwner() string {
	if p.Adopted.From != "" {
		return "release " + p.Adopted.From
	}
	var names []string
	for _, e := range p.Adopted.Prior.ManagedFields {
		if e.Subresource == "" && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	if len(names) == 0 || len(names) > 3 {
		return "its former owner"
	}
	return strings.Join(names, ", ") + ", as an object of no release"
}

// HadOwnerOf reports whether the object had the ownership metadata of obj before it was adopted.
func (p *Provenance) HadOwnerOf(obj metav1.Object) bool {
	return maps.Equal(ownershipMetadata(obj), p.Adopted.Prior.OwnershipMetadata)
}

// IsHalfAdopted reports whether an object that has its former ownership metadata
// has fields of ours all the same: a run died, or was refused, halfway.
func IsHalfAdopted(from *Provenance, meta metav1.Object) bool {
	if !from.HadOwnerOf(meta) {
		return false
	}
	return slices.ContainsFunc(meta.GetManagedFields(), ownership.IsOurs) && !slices.ContainsFunc(from.Adopted.Prior.ManagedFields, ownership.IsOurs) && !from.Adopted.Prior.FieldsOmitted
}

// Clone returns a copy that shares no Adoption.
func (p *Provenance) Clone() *Provenance {
	out := *p
	if p.Adopted != nil {
		adopted := *p.Adopted
		out.Adopted = &adopted
	}
	return &out
}

// PriorObject gives the former values as an object, for whoever has to hide
// confidential ones; nil when there are none, and for nil.
func (a *Adoption) PriorObject() *unstructured.Unstructured {
	if a == nil {
		return nil
	}
	values, err := a.Prior.Object()
	if err != nil {
		return nil // not shown either
	}
	return values
}
