package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// Where the objects of a release came from, and how that is recorded.
type (
	Owner      = provenance.Owner
	Provenance = provenance.Provenance
	Adoption   = provenance.Adoption
	Prior      = provenance.Prior
)

// provenanceOf returns the provenance of a live object of the release; nil when no record
// tells. An object with our ownership that no revision had was labelled by hand, so it is
// adopted too.
func (p *planning) provenanceOf(t *target, live metav1.Object, adopting bool) *Provenance {
	if t.fromCRDs {
		return nil
	}
	uid := string(live.GetUID())
	known := p.history.provenance[t.id]
	switch {
	case t.progress.provenance != nil && t.progress.provenance.UID == uid:
		return t.progress.provenance.Clone() // we have written it since, so its first provenance counts
	case adopting:
	case known != nil && known.UID == uid:
		return known.Clone()
	case t.progress.wasAbsent || p.history.hadObject(t.id):
		return nil
	}
	return provenance.NewAdoption(live, p.a.owner)
}

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

// WithOnAdoption returns an Applier whose Run calls onAdoption, from any goroutine, before the
// first write to an object that may have to be given back. onAdoption has to record
// Change.Provenance; if it fails, the object isn't written.
func (a *Applier) WithOnAdoption(onAdoption func(ctx context.Context, c Change) error) *Applier {
	out := *a
	out.onAdoption = onAdoption
	return &out
}

// announce calls onAdoption for an object that is about to be written and may have to be
// given back: its former state must be on record first.
func (a *Applier) announce(ctx context.Context, c Change) error {
	if c.Deferral != nil || c.Action == GiveBack || !c.Provenance.MustBeGivenBack() {
		return nil
	}
	if t := c.execution.t; t != nil {
		t.progress.provenance = c.Provenance
	}
	if a.onAdoption == nil {
		return nil
	}
	if err := a.onAdoption(ctx, c); err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "recording the former state of", Err: err}
	}
	return nil
}
