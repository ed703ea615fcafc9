package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// decideRollback decides about objects of the rollback target that don't belong to the release
// now; false means that the normal decision applies. An object that only failed runs have
// adopted since then is given back. An undo adopts nothing.
func (p *planning) decideRollback(t *target, desired, live *unstructured.Unstructured) (Change, bool) {
	if p.req.BackTo == 0 || t.fromCRDs || live.GetDeletionTimestamp() != nil {
		return Change{}, false
	}
	if p.adoptedSince(t, live) {
		c := p.change(t, GiveBack)
		c.Live, c.Desired, c.Provenance, c.manifestHash = live, desired, p.history.provenance[t.id], ""
		c.Reason = c.Provenance.WhyGivenBack()
		c.execution = p.executionOf(t, write{verb: giveBackObject, precondition: precondition{uid: live.GetUID()}})
		c.execution.orphan = &orphan{id: t.id, mapping: t.mapping, lastDeclared: p.history.latestDeclared(t.id)}
		return c, true
	}
	if adopting, err := p.ownership.check(t, live); !p.req.Undo || !adopting && err == nil {
		return Change{}, false
	}
	c := p.change(t, Keep)
	c.Live, c.Desired, c.manifestHash = live, desired, ""
	c.Reason = "stays as it is: it belongs to no release"
	if owner := provenance.OwnerOf(live); owner != (Owner{}) {
		c.Reason = "stays as it is: it belongs to release " + owner.String()
	}
	return c, true
}

// adoptedSince reports whether only failed runs after the rollback's target revision have
// adopted an object, and it still has to be given back.
func (p *planning) adoptedSince(t *target, live metav1.Object) bool {
	from := p.history.provenance[t.id]
	if p.req.BackTo == 0 || !from.MustBeGivenBack() || !from.Describes(live) || from.Adopted.Revision <= p.req.BackTo {
		return false
	}
	return provenance.OwnerOf(live) == p.a.owner || provenance.IsHalfAdopted(from, live)
}

// latestDeclared returns an object as the latest revision declared it; zero when none
// did.
func (h *releaseHistory) latestDeclared(id kube.ID) declaredObject {
	if history := h.objects[id]; len(history) > 0 {
		return history[len(history)-1]
	}
	return declaredObject{}
}
