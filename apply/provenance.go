package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

type (
	// Owner is the release on whose behalf objects are applied: see provenance.Owner.
	Owner = provenance.Owner
	// A Provenance says whether the release created or adopted an object.
	Provenance = provenance.Provenance
	// An Adoption describes how an object that the release didn't create became part of it.
	Adoption = provenance.Adoption
	// A Prior is what an adopted object was before anything of it was written.
	Prior = provenance.Prior
)

// rememberPrior records what an update overwrites in an object that may have to be given
// back.
func (u *updateDecision) rememberPrior(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	if !c.Provenance.MustBeGivenBack() {
		return
	}
	over := diff.Modified.Union(diff.Removed)
	if dropsLastApplied(*c) {
		over.Insert(fieldpath.MakePathOrDie("metadata", "annotations", kube.LastAppliedAnnotation))
	}
	c.Provenance.Adopted.Prior.Remember(u.prediction.Live, over, result)
}

// recordPriorState calls OnAdoption for an object that is about to be written and may have to be
// given back: its former state must be on record first.
func (r *changeRun) recordPriorState(ctx context.Context, c Change) error {
	if c.Deferral != nil || c.Action == GiveBack || !c.Provenance.MustBeGivenBack() {
		return nil
	}
	if r.t != nil {
		r.t.progress.provenance = c.Provenance
	}
	if r.a.OnAdoption == nil {
		return nil
	}
	if err := r.a.OnAdoption(ctx, c); err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "recording the former state of", Err: err}
	}
	return nil
}
