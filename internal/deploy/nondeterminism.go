package deploy

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/chart"
	"deployer/internal/kube"
)

// Nondeterminism is what renderings of a chart with random or time-dependent values say
// about one object.
type Nondeterminism struct {
	Rendered *unstructured.Unstructured // as it will be deployed; nil for an object of an earlier revision
	Others   []*unstructured.Unstructured
	// NameDiffers says that the object's name is generated: no other rendering has it.
	NameDiffers bool
}

// PrepareToShow completes an operation for showing it: it finds out which changes are only due to templates
// that render something else each time, and makes known the confidential values of all stored revisions. It
// only reads.
func (d *Deployer) PrepareToShow(ctx context.Context, op *Operation) error {
	limited, done := LimitStep(ctx, StepDecide, d.Settings.Timeout)
	if err := done(op.findNondeterminism(limited)); err != nil {
		return err
	}
	if !op.HasChanges() {
		return nil
	}
	return d.hideStoredRevisions(ctx, op)
}

// findNondeterminism finds the objects of the operation that differ between renderings,
// by rendering the chart again. It reads the cluster as rendering does. It does nothing
// when no object would be changed, no template generates anything, or there was no
// release before.
func (o *Operation) findNondeterminism(ctx context.Context) error {
	o.Rendered.Nondeterminism = map[kube.ID]Nondeterminism{}
	if o.Rendered.rerender == nil || o.Verb != Upgrade || !o.HasChanges() {
		return nil
	}
	again, err := o.Rendered.rerender(ctx)
	if err != nil {
		return fmt.Errorf("rendering the chart again to find generated values: %w", err)
	}
	if len(again) == 0 {
		return nil
	}
	first, err := objectsByID(o.Next.Manifest)
	if err != nil {
		return err
	}
	var others []RenderedObjects
	for _, r := range again {
		objects, err := objectsByID(r.Manifest)
		if err != nil {
			return fmt.Errorf("reading the chart rendered again: %w", err)
		}
		others = append(others, objects)
	}
	for c := range o.Plan.Changes() {
		if obj := first.Find(c.ID, o.Namespace); obj != nil {
			o.compareRenderings(c.ID, obj, others)
		}
	}
	o.findRenamed()
	return nil
}

// RenderedObjects are the objects of a manifest, by the names that it gives them.
type RenderedObjects map[kube.ID]*unstructured.Unstructured

// Declared returns the objects of the operation's record, which is empty if they can't be read: then they can't be deployed either.
func (o *Operation) Declared() RenderedObjects {
	objects, _ := objectsByID(o.Next.Manifest)
	return objects
}

func objectsByID(manifest string) (RenderedObjects, error) {
	objects, err := chart.Parse(manifest)
	if err != nil {
		return nil, err
	}
	out := RenderedObjects{}
	for _, m := range objects {
		out[kube.IDOf(m.Object)] = m.Object
	}
	return out, nil
}

// Find finds an object of the plan, whose manifest may not state the namespace; nil if it
// isn't there.
func (r RenderedObjects) Find(id kube.ID, namespace string) *unstructured.Unstructured {
	if obj := r[id]; obj != nil || id.Namespace != namespace {
		return obj
	}
	id.Namespace = ""
	return r[id]
}

func (o *Operation) compareRenderings(id kube.ID, first *unstructured.Unstructured, others []RenderedObjects) {
	v := Nondeterminism{Rendered: first, NameDiffers: true}
	differs := false
	for _, objects := range others {
		obj := objects.Find(id, o.Namespace)
		if obj != nil {
			v.Others, v.NameDiffers = append(v.Others, obj), false
		}
		differs = differs || !reflect.DeepEqual(first, obj)
	}
	if differs {
		o.Rendered.Nondeterminism[id] = v
	}
}

// findRenamed finds deleted objects that only had a generated name: the same template
// creates others in their place.
func (o *Operation) findRenamed() {
	type origin struct{ kind, source string }
	made := map[origin]bool{}
	for c := range o.Plan.Changes() {
		if o.Rendered.Nondeterminism[c.ID].NameDiffers {
			made[origin{c.ID.Kind, c.Source}] = true
		}
	}
	for _, c := range slices.Concat(o.Plan.Orphans()...) {
		if c.Action == decide.Delete && c.Source != "" && made[origin{c.ID.Kind, c.Source}] {
			o.Rendered.Nondeterminism[c.ID] = Nondeterminism{NameDiffers: true}
		}
	}
}
