package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
)

// TestStoredObjectThatDoesNotFitItsDefinition fails if a custom resource that was stored before its definition was narrowed can't be
// mended by the chart: the API server applies nothing to it, but it can be replaced.
func TestStoredObjectThatDoesNotFitItsDefinition(t *testing.T) {
	s := begin(t)
	define := func(size string) {
		s.t.Helper()
		crd := s.manifests(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, singular: widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: SIZE}, color: {type: string}}}}}}}]
`, "SIZE", size))[0].Object
		s.patch(crd.GetAPIVersion(), crd.GetKind(), crd.GetName(), types.ApplyPatchType, string(marshal(t, crd)), "somebody")
	}
	crds := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	t.Cleanup(func() { _ = crds.Delete(bg, "widgets."+s.ns+".example.com", deleteNow) })
	define("string")
	widget := func(size, rest string) string {
		return "apiVersion: NS.example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: " + size + rest + "}\n"
	}
	apiVersion := s.ns + ".example.com/v1"
	s.eventually("the kind to be served", func() error {
		s.cluster.ForgetKinds()
		_, err := s.tryPlan(s.request(widget(`"1"`, ", color: red")))
		return err
	})
	s.deploy(widget(`"1"`, ", color: red"))
	define("integer")
	s.eventually("the API server to refuse a text", func() error {
		probe := s.manifests(widget(`"1"`, ""))[0].Object
		probe.SetName("probe")
		_, err := s.client(apiVersion, "Widget").Create(bg, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it is accepted")
		}
		return nil
	})
	s.eventually("the schema to be published", func() error { // the cluster may remember the former one
		s.cluster.ForgetKinds()
		_, err := s.tryPlan(s.request(widget("1", "")))
		return err
	})
	p := s.deploy(widget("1", ""))
	if c := change(t, p, "Widget", "w"); c.Action != decide.Update || !strings.Contains(c.Reason, "replaced as a whole") {
		t.Errorf("%s: %s", c.Action, c.Reason)
	}
	w := s.get(apiVersion, "Widget", "w")
	if at(w, "spec.size") != int64(1) || at(w, "spec.color") != nil {
		t.Errorf("spec: %v", at(w, "spec"))
	}
	s.expect(s.plan(widget("1", "")))
}

// TestRecreationThatTakesClaimsAlong fails if the claims of a StatefulSet go, by its own policy, because somebody has agreed that it is made anew.
func TestRecreationThatTakesClaimsAlong(t *testing.T) {
	s := begin(t)
	const chart = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {deployer.io/recreate: "true"}}
spec:
  serviceName: db
  replicas: 0
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: c, image: "c:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	s.deploy(chart)
	renamed := strings.ReplaceAll(chart, "app: a", "app: b")
	if err := s.refuse(renamed); !strings.Contains(hint(err), "its claims") || !strings.Contains(hint(err), "and use --allow-recreate") {
		t.Errorf("%v\nhint: %s", err, hint(err))
	}
	if p := s.plan(strings.Replace(chart, "serviceName: db", "serviceName: other", 1)); change(t, p, "StatefulSet", "db").Action != decide.Recreate {
		t.Errorf("whose pods the new one selects: %s", summary(p)) // it takes over the claims, too
	}
	s.opts.AllowRecreate = true
	if c := change(t, s.plan(renamed), "StatefulSet", "db"); c.Action != decide.Recreate || !strings.Contains(c.Reason, "it may destroy its claims") {
		t.Errorf("%s: %s", c.Action, c.Reason)
	}
}
