package deploy

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/kube"
)

// Nondeterminism are what a chart whose templates make values up, or look at the
// clock, says about one object.
type Nondeterminism struct {
	Rendered *unstructured.Unstructured // as it is to be deployed; nil for what such an object of an earlier revision was
	Others   []*unstructured.Unstructured
	// NameDiffers says that the object's name is made up: it never comes again.
	NameDiffers bool
}

// FindNondeterminism finds out which objects of the operation come out otherwise each time,
// by rendering the chart again. It reads what rendering reads. It costs nothing
// when no object would be changed, no template makes anything up, or nothing was
// there before.
func (o *Operation) FindNondeterminism(ctx context.Context) error {
	o.Rendered.Nondeterminism = map[kube.ID]Nondeterminism{}
	if o.Rendered.again == nil || o.Verb != Upgrade || !o.HasChanges() {
		return nil
	}
	again, err := o.Rendered.again(ctx)
	if err != nil || len(again) == 0 {
		return labelled("rendering the chart again to find generated values:", err)
	}
	first, err := objectsByID(o.Next.Manifest)
	if err != nil {
		return err
	}
	var others []map[kube.ID]kube.Manifest
	for _, r := range again {
		objects, err := objectsByID(r.Manifest)
		if err != nil {
			return labelled("reading the chart rendered again:", err)
		}
		others = append(others, objects)
	}
	for c := range o.Plan.Changes() {
		if m, ok := findObject(first, c.ID, o.Namespace); ok {
			o.compareRenderings(c.ID, m, others)
		}
	}
	o.findRenamed()
	return nil
}

func labelled(label string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", label, err)
}

// objectsByID are the objects of a manifest, by the names that it gives them.
func objectsByID(manifest string) (map[kube.ID]kube.Manifest, error) {
	objects, err := chart.Parse(manifest)
	if err != nil {
		return nil, err
	}
	out := map[kube.ID]kube.Manifest{}
	for _, m := range objects {
		out[kube.IDOf(m.Object)] = m
	}
	return out, nil
}

// findObject finds an object of the plan among those of a manifest, which need not
// say the namespace.
func findObject(objects map[kube.ID]kube.Manifest, id kube.ID, namespace string) (kube.Manifest, bool) {
	m, ok := objects[id]
	if !ok && id.Namespace == namespace {
		id.Namespace = ""
		m, ok = objects[id]
	}
	return m, ok
}

func (o *Operation) compareRenderings(id kube.ID, first kube.Manifest, others []map[kube.ID]kube.Manifest) {
	v := Nondeterminism{Rendered: first.Object, NameDiffers: true}
	differs := false
	for _, objects := range others {
		m, ok := findObject(objects, id, o.Namespace)
		if ok {
			v.Others, v.NameDiffers = append(v.Others, m.Object), false
		}
		differs = differs || !ok || !reflect.DeepEqual(first.Object.Object, m.Object.Object)
	}
	if differs {
		o.Rendered.Nondeterminism[id] = v
	}
}

// findRenamed finds what goes only because it had such a name too: what the same
// template made before.
func (o *Operation) findRenamed() {
	type origin struct{ kind, source string }
	made := map[origin]bool{}
	for c := range o.Plan.Changes() {
		if o.Rendered.Nondeterminism[c.ID].NameDiffers {
			made[origin{c.ID.Kind, c.Source}] = true
		}
	}
	for _, c := range o.Plan.Prune {
		if c.Action == apply.Delete && c.Source != "" && made[origin{c.ID.Kind, c.Source}] {
			o.Rendered.Nondeterminism[c.ID] = Nondeterminism{NameDiffers: true}
		}
	}
}
