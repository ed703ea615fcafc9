package provenance

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/builtin"
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

var us = Owner{Release: "web", Namespace: "shop"}

// fieldsOf returns the fields that become a manager's who applies an object.
func fieldsOf(t *testing.T, conv managedfields.TypeConverter, obj *unstructured.Unstructured) *fieldpath.Set {
	t.Helper()
	v, err := compare.Typed(conv, compare.WithoutManagedFields(obj))
	if err != nil {
		t.Fatal(err)
	}
	set, err := ownership.Appliable(v)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// ownedBy returns the object with managedFields that give all of it to one manager.
func ownedBy(t *testing.T, conv managedfields.TypeConverter, manager string, operation metav1.ManagedFieldsOperationType, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	list, err := ownership.Encode([]ownership.Entry{ownership.Entry{FieldManager: ownership.FieldManager{Manager: manager, Operation: operation}, APIVersion: obj.GetAPIVersion()}.With(fieldsOf(t, conv, obj))})
	if err != nil {
		t.Fatal(err)
	}
	obj = obj.DeepCopy()
	obj.SetManagedFields(list)
	return obj
}

// adopt plays an adoption: a ConfigMap of somebody else becomes as the chart has it. It returns
// what was recorded and the adopted object.
func adopt(t *testing.T, conv managedfields.TypeConverter, before, manifest *unstructured.Unstructured) (*Provenance, *unstructured.Unstructured) {
	t.Helper()
	from := NewAdoption(before, us)
	after := manifest.DeepCopy()
	us.SetOn(after)
	after = ownedBy(t, conv, ownership.Manager, metav1.ManagedFieldsOperationApply, after)
	after.SetUID(before.GetUID())
	live, err := compare.NewLive(conv, before)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := live.Differences(after)
	if err != nil {
		t.Fatal(err)
	}
	from.Adopted.Prior.Remember(live, diff.Modified.Union(diff.Removed), after)
	return from, after
}

func TestGivingBackRestoresWhatWasBeforeTheAdoption(t *testing.T) {
	conv, err := builtin.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	const before = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u1}, data: {a: "1", b: "2"}}`
	const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: "9", c: "3"}}`
	for name, c := range map[string]struct {
		now   string // what becomes of the adopted object until it is given back; empty for nothing
		want  string // data after it is given back
		stays string
	}{
		"nobody touched it": {"", `{a: "1", b: "2"}`, ""},
		"a changed value of ours stays with who changed it": {
			`{a: "7", c: "3"}`, `{a: "7", b: "2"}`, "data.a has been changed since"},
		"what others added stays": {`{a: "9", c: "3", d: "4"}`, `{a: "1", b: "2", d: "4"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			was := ownedBy(t, conv, "kubectl-create", metav1.ManagedFieldsOperationUpdate, kubetest.Object(t, before))
			from, adopted := adopt(t, conv, was, kubetest.Object(t, manifest))
			if !from.MustBeGivenBack() || OwnerOf(adopted) != us {
				t.Fatalf("it isn't adopted: %+v", from)
			}
			if c.now != "" {
				adopted = changedBy(t, conv, "kubectl-edit", adopted, kubetest.Object(t, `{data: `+c.now+`}`).Object["data"].(map[string]any))
			}
			r, err := NewRestoration(from, adopted, kubetest.Object(t, manifest))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Compute(conv); err != nil {
				t.Fatal(err)
			}
			if want := kubetest.Object(t, `{data: `+c.want+`}`).Object["data"]; !fields.Equal(r.Becomes.Object["data"], want) {
				t.Errorf("data becomes %v, want %v", r.Becomes.Object["data"], want)
			}
			if OwnerOf(r.Becomes) != (Owner{}) || len(r.Becomes.GetLabels()) > 0 {
				t.Errorf("it still bears the release's ownership: %v %v", r.Becomes.GetLabels(), r.Becomes.GetAnnotations())
			}
			if have := strings.Join(r.Stays, "; "); have != c.stays {
				t.Errorf("stays: %q, want %q", have, c.stays)
			}
			list, err := r.ManagedFields()
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(list, ownership.IsOurs) || !slices.ContainsFunc(list, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kubectl-create" }) {
				t.Errorf("its fields aren't the former owner's again: %v", list)
			}
		})
	}
}

// Prevents that an item which somebody has removed since its adoption comes back with nothing but its name.
func TestRemovedItemsStayRemoved(t *testing.T) {
	conv, err := builtin.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	service := func(ports string) *unstructured.Unstructured {
		return kubetest.Object(t, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop, uid: u1}, spec: {ports: [`+ports+`]}}`)
	}
	const web, admin, moved = `{port: 80, protocol: TCP, targetPort: 8080}`, `{port: 90, protocol: TCP, targetPort: 9090}`, `{port: 90, protocol: TCP, targetPort: 9999}`
	for name, c := range map[string]struct{ was, manifest, now, want string }{
		"by somebody else":    {web + "," + admin, web + "," + moved, web, web},
		"by this release":     {web + "," + admin, web, web, web + "," + admin},
		"by nobody":           {web + "," + admin, web + "," + moved, web + "," + moved, web + "," + admin},
		"and our only change": {admin, moved, web, web},
	} {
		t.Run(name, func(t *testing.T) {
			from, adopted := adopt(t, conv, ownedBy(t, conv, "kubectl-create", metav1.ManagedFieldsOperationUpdate, service(c.was)), service(c.manifest))
			now := service(c.now)
			us.SetOn(now)
			now = ownedBy(t, conv, ownership.Manager, metav1.ManagedFieldsOperationApply, now)
			now.SetUID(adopted.GetUID())
			r, err := NewRestoration(from, now, service(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Compute(conv); err != nil {
				t.Fatal(err)
			}
			if want := service(c.want).Object["spec"]; !fields.Equal(r.Becomes.Object["spec"], want) {
				t.Errorf("it becomes %v, want %v", r.Becomes.Object["spec"], want)
			}
		})
	}
}

// changedBy gives an object other data, and what changes to another manager.
func changedBy(t *testing.T, conv managedfields.TypeConverter, manager string, obj *unstructured.Unstructured, data map[string]any) *unstructured.Unstructured {
	t.Helper()
	entries, err := ownership.Parse(obj.GetManagedFields())
	if err != nil {
		t.Fatal(err)
	}
	was, _, _ := unstructured.NestedMap(obj.Object, "data")
	changed := map[string]any{}
	for key, v := range data {
		if !fields.Equal(was[key], v) {
			changed[key] = v
		}
	}
	part := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": changed}}
	theirs := fieldsOf(t, conv, part)
	entries[0] = entries[0].With(entries[0].Set.Difference(theirs))
	entries = append(entries, ownership.Entry{FieldManager: ownership.FieldManager{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}, APIVersion: "v1"}.With(theirs))
	list, err := ownership.Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	obj = obj.DeepCopy()
	obj.Object["data"] = data
	obj.SetManagedFields(list)
	return obj
}

func TestTheFormerStateSurvivesItsRecord(t *testing.T) {
	conv, err := builtin.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	was := ownedBy(t, conv, "kubectl-create", metav1.ManagedFieldsOperationUpdate,
		kubetest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u1}, data: {a: "1"}}`))
	from, _ := adopt(t, conv, was, kubetest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: "9"}}`))
	prior, err := from.Adopted.Prior.Object()
	if err != nil {
		t.Fatal(err)
	}
	if v, _, _ := unstructured.NestedString(prior.Object, "data", "a"); v != "1" {
		t.Errorf("recorded is %v", prior)
	}
	large := Prior{ManagedFields: was.GetManagedFields(), Values: []byte(`"` + strings.Repeat("x", maxPrior) + `"`), OwnershipMetadata: map[string]string{kube.ReleaseNameAnnotation: "other"}}
	large.shorten()
	if !large.FieldsOmitted || large.Values != nil || large.OwnershipMetadata[kube.ReleaseNameAnnotation] != "other" {
		t.Errorf("what is too large keeps only its ownership metadata: %+v", large)
	}
}
