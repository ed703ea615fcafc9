package apply_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kubetest"
)

// proven is a chart with one object that counts generations and one that
// doesn't.
const proven = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, labels: {tier: x}, annotations: {note: ours}}
data: {a: "1", b: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: x}, annotations: {note: ours}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: 'nginx:1', env: [{name: A, value: "1"}]}]}
`

const merge, jsonPatch = types.MergePatchType, types.JSONPatchType

// fooling is what somebody does between two releases of the same chart, hoping
// that the second one takes the objects for untouched.
var fooling = map[string]func(s *story){
	"values edited": func(s *story) {
		s.patch("v1", "ConfigMap", "conf", merge, `{"data":{"a":"9"}}`, "kubectl-edit")
		s.patch("apps/v1", "Deployment", "web", merge, `{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"app","image":"evil:1"}]}}}}`, "kubectl-edit")
		s.patch("apps/v1", "Deployment", "web", merge, `{"spec":{"paused":null}}`, "kubectl-edit")
	},
	"metadata edited": func(s *story) {
		s.patch("v1", "ConfigMap", "conf", merge, `{"metadata":{"annotations":{"note":"theirs"}}}`, "kubectl-annotate")
		s.patch("apps/v1", "Deployment", "web", merge, `{"metadata":{"labels":{"tier":"y"},"annotations":{"note":null}}}`, "kubectl-label")
	},
	"edited and restored": func(s *story) {
		for _, note := range []string{"theirs", "ours"} {
			s.patch("v1", "ConfigMap", "conf", merge, `{"metadata":{"annotations":{"note":"`+note+`"}}}`, "kubectl-edit")
			s.patch("apps/v1", "Deployment", "web", merge, `{"metadata":{"annotations":{"note":"`+note+`"}}}`, "kubectl-edit")
		}
	},
	"nobody manages anything": func(s *story) {
		for _, o := range [][2]string{{"v1", "ConfigMap"}, {"apps/v1", "Deployment"}} {
			name := map[string]string{"ConfigMap": "conf", "Deployment": "web"}[o[1]]
			s.patch(o[0], o[1], name, jsonPatch, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`, "x")
			s.patch(o[0], o[1], name, merge, `{"metadata":{"annotations":{"note":"theirs"}}}`, "x")
		}
	},
	"edited, and the entries put back as they were": func(s *story) {
		s.behindTheBack("v1", "ConfigMap", "conf", `{"data":{"a":"9"},"metadata":{"annotations":{"note":"theirs"}}}`)
		s.behindTheBack("apps/v1", "Deployment", "web", `{"metadata":{"labels":{"tier":"y"}}}`)
	},
	"a field taken out of our entry": func(s *story) {
		live := s.get("apps/v1", "Deployment", "web")
		entries := live.GetManagedFields()
		for i, e := range entries {
			if e.Manager == "helm" {
				entries[i].FieldsV1.SetRawString(strings.Replace(e.FieldsV1.GetRawString(), `"f:note":{},`, "", 1))
			}
		}
		s.entries("apps/v1", "Deployment", "web", entries)
		s.patch("apps/v1", "Deployment", "web", merge, `{"metadata":{"annotations":{"note":"theirs"}}}`, "x")
	},
	"applied by another tool of our name": func(s *story) {
		s.patch("v1", "ConfigMap", "conf", types.ApplyPatchType, s.again("v1", "ConfigMap", "conf"), "helm")
		s.patch("apps/v1", "Deployment", "web", types.ApplyPatchType, s.again("apps/v1", "Deployment", "web"), "helm")
	},
	"Helm 3 upgrades and rolls back": func(s *story) {
		other := strings.NewReplacer("note: ours", "note: theirs", `a: "1"`, `a: "9"`).Replace(proven)
		s.helm3Upgrade(proven, other)
		s.helm3Upgrade(other, proven)
	},
	"the record tampered with": func(s *story) {
		var keys []string
		for key := range s.marks {
			keys = append(keys, key)
		}
		s.marks[keys[0]], s.marks[keys[1]] = s.marks[keys[1]], s.marks[keys[0]]
		s.patch("v1", "ConfigMap", "conf", merge, `{"data":{"a":"9"}}`, "kubectl-edit")
		s.patch("apps/v1", "Deployment", "web", merge, `{"metadata":{"labels":{"tier":"y"}}}`, "kubectl-edit")
	},
	"deleted and made again": func(s *story) {
		live := s.get("v1", "ConfigMap", "conf")
		if err := s.client("v1", "ConfigMap").Delete(s.t.Context(), "conf", metav1.DeleteOptions{}); err != nil {
			s.t.Fatal(err)
		}
		live.SetResourceVersion("")
		live.SetUID("")
		live.Object["data"] = map[string]any{"a": "9"}
		s.post(live, "kubectl-create")
	},
}

// TestNothingFoolsTheProof: whatever was done to the objects, and within the
// same second, the next release of the same chart leaves them right, and the one
// after that knows it without writing.
func TestNothingFoolsTheProof(t *testing.T) {
	t.Parallel()
	for name, fool := range fooling {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.deploy(proven)
			want := s.decided()
			fool(s)
			s.deploy(proven)
			if got := s.decided(); got != want {
				t.Errorf("content is\n%s\nwant\n%s", got, want)
			}
			for _, o := range [][3]string{{"v1", "ConfigMap", "conf"}, {"apps/v1", "Deployment", "web"}} {
				if m := managers(s.get(o[0], o[1], o[2])); !strings.Contains(m, "helm/Apply") || strings.Contains(m, "helm/Update") || strings.Contains(m, "before-first-apply") {
					t.Errorf("%s has managers %s", o[1], m)
				}
			}
			from := len(s.c.Audit(t, s.agent))
			s.expect(s.deploy(proven))
			asked := s.c.Audit(t, s.agent)[from:]
			if w := kubetest.Writes(asked); len(w) > 0 {
				t.Errorf("with nothing to do, it wrote: %v", w)
			}
			for _, e := range asked {
				if e.Verb == "patch" {
					t.Errorf("an untouched object was not recognised: %s", e.URI)
				}
			}
		})
	}
}

// decided is what the chart decides of its objects.
func (s *story) decided() string {
	conf, web := s.get("v1", "ConfigMap", "conf"), s.get("apps/v1", "Deployment", "web")
	annotations := web.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	return fmt.Sprintln(conf.GetLabels(), conf.GetAnnotations(), at(conf, "data"), "\n", web.GetLabels(), annotations, at(web, "spec"))
}

// behindTheBack changes an object and gives it the managedFields that it had.
func (s *story) behindTheBack(apiVersion, kind, name, patch string) {
	s.t.Helper()
	entries := s.get(apiVersion, kind, name).GetManagedFields()
	s.patch(apiVersion, kind, name, merge, patch, "kubectl-edit")
	s.entries(apiVersion, kind, name, entries)
}

// entries writes managedFields.
func (s *story) entries(apiVersion, kind, name string, entries []metav1.ManagedFieldsEntry) {
	s.t.Helper()
	value, err := json.Marshal(entries)
	if err != nil {
		s.t.Fatal(err)
	}
	s.patch(apiVersion, kind, name, jsonPatch, `[{"op":"replace","path":"/metadata/managedFields","value":`+string(value)+`}]`, "x")
}

// again is an object of proven as another tool would apply it: the same fields,
// one with another value; a label, as Deployments count changes of annotations.
func (s *story) again(apiVersion, kind, name string) string {
	s.t.Helper()
	for _, m := range s.manifests(proven) {
		if o := s.owned(m.Object); o.GetKind() == kind {
			labels := o.GetLabels()
			labels["tier"] = "y"
			o.SetLabels(labels)
			return string(marshal(s.t, o))
		}
	}
	s.t.Fatalf("no %s %s/%s", apiVersion, kind, name)
	return ""
}

// A field that a kind lacked for a while is gone from its objects once somebody
// has written them, and nothing in their metadata tells.
func TestMarksEndWithTheDefinition(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	with, apiVersion := definition(0, "note: {type: string}"), s.ns+".example.com/v1"
	operator := newStory(t) // the kind is somebody else's
	operator.ns = s.ns
	operator.owner.Release = "operator"
	operator.deploy(with)
	chart := foo(0, "size: 1, note: ours")
	s.deploy(chart)
	s.expect(s.deploy(chart))
	crd := func(text string) {
		for _, m := range s.manifests(text) {
			s.patch("apiextensions.k8s.io/v1", "CustomResourceDefinition", m.Object.GetName(), merge, string(marshal(t, m.Object)), "kubectl-replace")
		}
	}
	crd(definition(0, ""))
	s.eventually("the field is gone", func() error {
		s.patch(apiVersion, "Foo0", "f", merge, `{"metadata":{"labels":{"touched":"yes"}}}`, "x")
		s.patch(apiVersion, "Foo0", "f", merge, `{"metadata":{"labels":{"touched":null}}}`, "x")
		if at(s.get(apiVersion, "Foo0", "f"), "spec.note") != nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	crd(with)
	s.deploy(chart)
	s.eventually("the field is back", func() error {
		s.deploy(chart)
		if got := at(s.get(apiVersion, "Foo0", "f"), "spec.note"); got != "ours" {
			return fmt.Errorf("spec.note is %v", got)
		}
		return nil
	})
}

// One object has several API versions: what is applied in another one is another
// manifest, whoever applies it.
func TestOtherVersionsProveNothing(t *testing.T) {
	s := begin(t)
	v1 := `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}, minReplicas: 2, maxReplicas: 5}
`
	v2 := strings.Replace(v1, "autoscaling/v1", "autoscaling/v2", 1)
	mine := func() string {
		for _, e := range s.get("autoscaling/v2", "HorizontalPodAutoscaler", "web").GetManagedFields() {
			if e.Manager == "helm" {
				return e.APIVersion
			}
		}
		return ""
	}
	s.deploy(v2)
	theirs := s.owned(s.manifests(strings.Replace(v1, "maxReplicas: 5", "maxReplicas: 7", 1))[0].Object)
	s.patch("autoscaling/v1", "HorizontalPodAutoscaler", "web", types.ApplyPatchType, string(marshal(t, theirs)), "helm")
	s.deploy(v2)
	if got := at(s.get("autoscaling/v2", "HorizontalPodAutoscaler", "web"), "spec.maxReplicas"); fmt.Sprint(got) != "5" {
		t.Errorf("maxReplicas is %v, want 5", got)
	}
	for _, c := range []struct{ chart, version string }{{v1, "autoscaling/v1"}, {v2, "autoscaling/v2"}} {
		s.deploy(c.chart)
		if got := mine(); got != c.version {
			t.Errorf("our fields are of %s, want %s", got, c.version)
		}
	}
}

// Custom resources go with their definition. Somebody who makes both again has
// made others.
func TestDefinitionMadeAgain(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	operator := newStory(t)
	operator.ns, operator.owner.Release = s.ns, "operator"
	operator.deploy(definition(0, ""))
	chart, apiVersion := foo(0, "size: 1"), s.ns+".example.com/v1"
	s.deploy(chart)
	s.expect(s.deploy(chart))
	crds, name := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "foos0."+s.ns+".example.com"
	if err := crds.Delete(t.Context(), name, deleteNow); err != nil {
		t.Fatal(err)
	}
	s.eventually("the definition is gone", func() error {
		if s.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) != nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	operator.past, operator.marks = nil, nil
	operator.deploy(definition(0, ""))
	theirs := s.owned(s.manifests(foo(0, "size: 2"))[0].Object)
	s.patch(apiVersion, "Foo0", "f", types.ApplyPatchType, string(marshal(t, theirs)), "helm")
	s.deploy(chart)
	if got := at(s.get(apiVersion, "Foo0", "f"), "spec.size"); fmt.Sprint(got) != "1" {
		t.Errorf("spec.size is %v, want 1", got)
	}
	s.expect(s.deploy(chart))
}
