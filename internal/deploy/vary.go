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

// Variants are what a chart whose templates make values up, or look at the
// clock, says about one object.
type Variants struct {
	Rendered *unstructured.Unstructured // as it is to be deployed; nil for what such an object of an earlier revision was
	Again    []*unstructured.Unstructured
	// Named says that the object's name is made up: it never comes again.
	Named bool
}

// Vary finds out which objects of the operation come out otherwise each time,
// by rendering the chart again. It reads what rendering reads. It costs nothing
// when no object would be changed, no template makes anything up, or nothing was
// there before.
func (o *Operation) Vary(ctx context.Context) error {
	o.Variants = map[kube.ID]Variants{}
	if o.variants == nil || o.Verb != Upgrade || !o.HasChanges() {
		return nil
	}
	again, err := o.variants(ctx)
	if err != nil || len(again) == 0 {
		return labelled("rendering the chart again, to tell what its templates make up:", err)
	}
	first, err := byID(o.Next.Manifest)
	if err != nil {
		return err
	}
	var others []map[kube.ID]kube.Manifest
	for _, r := range again {
		objects, err := byID(r.Manifest)
		if err != nil {
			return labelled("reading the chart rendered again:", err)
		}
		others = append(others, objects)
	}
	for c := range o.Plan.Changes() {
		if m, ok := rendered(first, c.ID, o.Namespace); ok {
			o.vary(c.ID, m, others)
		}
	}
	o.varyDropped()
	return nil
}

func labelled(label string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", label, err)
}

// byID are the objects of a manifest, by the names that it gives them.
func byID(manifest string) (map[kube.ID]kube.Manifest, error) {
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

// rendered finds an object of the plan among those of a manifest, which need not
// say the namespace.
func rendered(objects map[kube.ID]kube.Manifest, id kube.ID, namespace string) (kube.Manifest, bool) {
	m, ok := objects[id]
	if !ok && id.Namespace == namespace {
		id.Namespace = ""
		m, ok = objects[id]
	}
	return m, ok
}

func (o *Operation) vary(id kube.ID, first kube.Manifest, others []map[kube.ID]kube.Manifest) {
	v := Variants{Rendered: first.Object, Named: true}
	differs := false
	for _, objects := range others {
		m, ok := rendered(objects, id, o.Namespace)
		if ok {
			v.Again, v.Named = append(v.Again, m.Object), false
		}
		differs = differs || !ok || !reflect.DeepEqual(first.Object.Object, m.Object.Object)
	}
	if differs {
		o.Variants[id] = v
	}
}

// varyDropped finds what goes only because it had such a name too: what the same
// template made before.
func (o *Operation) varyDropped() {
	type origin struct{ kind, source string }
	made := map[origin]bool{}
	for c := range o.Plan.Changes() {
		if o.Variants[c.ID].Named {
			made[origin{c.ID.Kind, c.Source}] = true
		}
	}
	for _, c := range o.Plan.Prune {
		if c.Action == apply.Delete && c.Source != "" && made[origin{c.ID.Kind, c.Source}] {
			o.Variants[c.ID] = Variants{Named: true}
		}
	}
}
