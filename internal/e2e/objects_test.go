package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kubetest"
)

// resource finds "deployments.apps", "configmaps" and the like among those that
// tests use.
func resource(t testing.TB, name string) schema.GroupVersionResource {
	t.Helper()
	known := map[string]schema.GroupVersionResource{
		"leases":                    {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		"configmaps":                {Version: "v1", Resource: "configmaps"},
		"secrets":                   {Version: "v1", Resource: "secrets"},
		"services":                  {Version: "v1", Resource: "services"},
		"resourcequotas":            {Version: "v1", Resource: "resourcequotas"},
		"limitranges":               {Version: "v1", Resource: "limitranges"},
		"poddisruptionbudgets":      {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		"serviceaccounts":           {Version: "v1", Resource: "serviceaccounts"},
		"pods":                      {Version: "v1", Resource: "pods"},
		"namespaces":                {Version: "v1", Resource: "namespaces"},
		"persistentvolumeclaims":    {Version: "v1", Resource: "persistentvolumeclaims"},
		"persistentvolumes":         {Version: "v1", Resource: "persistentvolumes"},
		"storageclasses":            {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		"deployments":               {Group: "apps", Version: "v1", Resource: "deployments"},
		"statefulsets":              {Group: "apps", Version: "v1", Resource: "statefulsets"},
		"jobs":                      {Group: "batch", Version: "v1", Resource: "jobs"},
		"apiservices":               {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		"clusterroles":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		"customresourcedefinitions": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},

		"validatingwebhookconfigurations":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		"validatingadmissionpolicies":       {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		"validatingadmissionpolicybindings": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	}
	r, ok := known[name]
	if !ok {
		t.Fatalf("add %q to the resources that tests know", name)
	}
	return r
}

// in is the client of a resource; those outside of namespaces need none.
func (w *world) in(name string) dynamic.ResourceInterface {
	w.Helper()
	client := w.cluster.Dynamic().Resource(resource(w.T, name))
	outside := []string{
		"apiservices", "clusterroles", "customresourcedefinitions", "namespaces", "persistentvolumes", "storageclasses", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	}
	if slices.Contains(outside, name) {
		return client
	}
	return client.Namespace(w.ns)
}

// get reads an object; nil when it isn't there.
func (w *world) get(kind, name string) *unstructured.Unstructured {
	w.Helper()
	obj, err := w.in(kind).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatalf("reading %s/%s/%s: %v", kind, w.ns, name, err)
	}
	return obj
}

// must reads an object that has to be there.
func (w *world) must(kind, name string) *unstructured.Unstructured {
	w.Helper()
	obj := w.get(kind, name)
	if obj == nil {
		w.Fatalf("there is no %s/%s/%s", kind, w.ns, name)
	}
	return obj
}

// there checks which objects of a kind exist.
func (w *world) there(kind string, want map[string]bool) {
	w.Helper()
	for name, exists := range want {
		if got := w.get(kind, name) != nil; got != exists {
			w.Errorf("%s/%s/%s exists: %v, want %v", kind, w.ns, name, got, exists)
		}
	}
}

// create makes an object as somebody else would: by the given field manager.
func (w *world) create(kind, manager, manifest string) *unstructured.Unstructured {
	w.Helper()
	created, err := w.in(kind).Create(w.Context(), kubetest.Object(w.T, manifest), metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		w.Fatalf("creating %s: %v", kind, err)
	}
	return created
}

// patch changes an object as somebody else would, by a merge patch.
func (w *world) patch(kind, name, manager, patch string, subresources ...string) {
	w.Helper()
	_, err := w.in(kind).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		w.Fatalf("changing %s/%s/%s: %v", kind, w.ns, name, err)
	}
}

// field is the value at a path like "spec.replicas"; nil when it isn't there.
func field(obj *unstructured.Unstructured, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(path, ".")...)
	return value
}

// containers checks the names of a Deployment's containers.
func (w *world) containers(deployment string, want ...string) {
	w.Helper()
	list, _ := field(w.must("deployments", deployment), "spec.template.spec.containers").([]any)
	var got []string
	for _, c := range list {
		got = append(got, c.(map[string]any)["name"].(string))
	}
	if !slices.Equal(got, want) {
		w.Errorf("containers of Deployment/%s/%s = %v, want %v", w.ns, deployment, got, want)
	}
}

// statuses checks the statuses of a release's revisions, oldest first.
func (w *world) statuses(release string, want ...string) {
	w.Helper()
	list, err := w.in("secrets").List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	if err != nil {
		w.Fatalf("reading the records of %s: %v", release, err)
	}
	sort.Slice(list.Items, func(i, j int) bool {
		a, b := list.Items[i].GetLabels()["version"], list.Items[j].GetLabels()["version"]
		return len(a) < len(b) || len(a) == len(b) && a < b
	})
	var got []string
	for _, item := range list.Items {
		got = append(got, item.GetLabels()["status"])
	}
	if !slices.Equal(got, want) {
		w.Errorf("statuses of release %s = %v, want %v", release, got, want)
	}
}

// derived are resources whose objects others make: controllers, the API server,
// and both programs for their records.
var derived = map[string]bool{
	"events": true, "endpoints": true, "endpointslices": true, "pods": true, "replicasets": true,
	"controllerrevisions": true, "leases": true, "bindings": true, "podmetrics": true,
}

// everything is all objects of the namespace that people or programs made, by
// "kind/name", without records of releases and what each namespace has.
func (w *world) everything() map[string]*unstructured.Unstructured {
	w.Helper()
	lists, err := w.cluster.Client().Discovery().ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		w.Fatalf("asking what kinds there are: %v", err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			w.Fatal(err)
		}
		for _, r := range list.APIResources {
			if derived[r.Name] || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			w.collect(gv.WithResource(r.Name), found)
		}
	}
	return found
}

func (w *world) collect(gvr schema.GroupVersionResource, into map[string]*unstructured.Unstructured) {
	w.Helper()
	list, err := w.cluster.Dynamic().Resource(gvr).Namespace(w.ns).List(w.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return // a kind that has just gone
	}
	if err != nil && (strings.Contains(err.Error(), "conversion webhook for") || strings.Contains(err.Error(), "storage is (re)initializing")) {
		return // a kind of another test, which has stopped its converter
	}
	if err != nil {
		w.Fatalf("listing %s: %v", gvr.Resource, err)
	}
	for i := range list.Items {
		obj := &list.Items[i]
		if !isFurniture(obj) && len(obj.GetOwnerReferences()) == 0 {
			into[obj.GetKind()+"/"+obj.GetName()] = obj
		}
	}
}

// isRecordName reports whether a Secret is a record of a release, Helm's part or ours.
func isRecordName(name string) bool {
	return strings.HasPrefix(name, "sh.helm.release.v1.") || strings.HasPrefix(name, "sh.deployer.release.v1.")
}

// isFurniture tells what belongs to no release: records, what every namespace
// has, and the test's own user.
func isFurniture(obj *unstructured.Unstructured) bool {
	name := obj.GetName()
	switch obj.GetKind() {
	case "Secret":
		return isRecordName(name)
	case "ConfigMap":
		return name == "kube-root-ca.crt"
	case "ServiceAccount", "Role", "RoleBinding":
		return name == "default" || strings.HasPrefix(name, "user-")
	}
	return false
}

// keys lists what everything found.
func keys(objects map[string]*unstructured.Unstructured) []string {
	return slices.Sorted(maps.Keys(objects))
}

// nothingLeft checks that only the named objects ("kind/name") are left, and no
// record of any release.
func (w *world) nothingLeft(except ...string) {
	w.Helper()
	// Helm doesn't wait: a claim that was deleted is there until its pods are gone.
	w.cluster.Eventually(w.T, waitTimeout, "nothing left in the namespace", func(context.Context) error {
		var left []string
		for _, key := range keys(w.everything()) {
			if !slices.Contains(except, key) {
				left = append(left, key)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("left in the namespace: %v", left)
		}
		return nil
	})
	records, err := w.in("secrets").List(w.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range records.Items {
		w.Errorf("left in the namespace: the record %s", r.GetName())
	}
}

// generations are the generations and uids of objects: what changes when a
// release changes them.
func generations(objects map[string]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for key, obj := range objects {
		out[key] = fmt.Sprintf("uid %s generation %d", obj.GetUID(), obj.GetGeneration())
	}
	return out
}

// unchanged checks that both maps are the same.
func (w *world) unchanged(what string, before, after map[string]string) {
	w.Helper()
	for key, was := range before {
		if is := after[key]; is != was {
			w.Errorf("%s: %s was %q and is %q", what, key, was, is)
		}
	}
	for key, is := range after {
		if _, ok := before[key]; !ok {
			w.Errorf("%s: %s was not there and is %q", what, key, is)
		}
	}
}
