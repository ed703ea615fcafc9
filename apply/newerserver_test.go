package apply

import (
	"errors"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/builtin"
	"deployer/apply/provenance"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// An older converter is built in that lacks a field of the API server's, as soon as that server is of a newer Kubernetes.
type older struct{ managedfields.TypeConverter }

func (o older) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	v, err := o.TypeConverter.ObjectToTyped(obj, opts...)
	if err == nil {
		if _, has := v.AsValue().AsMap().Get("status"); has {
			return nil, errors.New(".status: field not declared in schema")
		}
	}
	return v, err
}

// TestNewerServer fails if an object can't be updated, or its drift be seen, because the API server has a field that this program's
// own schemas don't know yet.
func TestNewerServer(t *testing.T) {
	c := kubetest.Start(t)
	ns := c.Namespace(t)
	chart := func(image string) Request {
		return Request{Objects: []kube.Manifest{{Source: "x/templates/x.yaml", Object: kubetest.Object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: `+ns+`}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "`+image+`"}]}}}
`)}}}
	}
	plan := func(image string) (*Applier, *Plan) {
		a := New(kube.New(c.Config(), ns), provenance.Owner{Release: "x", Namespace: ns}, Options{})
		a.builtin = sync.OnceValues(func() (managedfields.TypeConverter, error) {
			conv, err := builtin.TypeConverter()
			return older{conv}, err
		})
		p, err := a.Plan(t.Context(), chart(image))
		if err != nil {
			t.Fatal(err)
		}
		return a, p
	}
	for _, image := range []string{"a:1", "a:2"} {
		a, p := plan(image)
		for i := range p.Waves {
			if err := a.Run(t.Context(), p.Waves[i].Changes, func(*Change) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, p := plan("a:3")
	for change := range p.Changes() {
		if len(change.Fields) != 1 || change.Fields[0].Path.String() != `.spec.template.spec.containers[name="c"].image` {
			t.Errorf("fields: %v", change.Fields)
		}
	}
}
