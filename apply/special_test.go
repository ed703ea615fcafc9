package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kubetest"
)

func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// TestHolderIsNamed: a refusal names the Service that has the port, and what lets the rest be deployed.
func TestHolderIsNamed(t *testing.T) {
	s := begin(t)
	service := func(name, port string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {type: NodePort, selector: {a: b}, ports: [{port: 80" + port + "}]}\n"
	}
	theirs, err := s.client("v1", "Service").Create(t.Context(), kubetest.Object(t, service("theirs", "")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(", nodePort: ", at(theirs, "spec.ports").([]any)[0].(map[string]any)["nodePort"])
	if err := s.refuse(service("mine", port)); !strings.Contains(hint(err), "Service/"+s.ns+"/theirs has it") || !strings.Contains(hint(err), "--gate best-effort") {
		t.Errorf("%v, hint %q", err, hint(err))
	}
}

// A binding is recreated, unless it is where our own permissions come from.
func TestRoleRef(t *testing.T) {
	s := begin(t)
	s.opts.AllowRecreate = true
	u := s.c.User(t, s.ns, kubetest.Rule("rbac.authorization.k8s.io", "*", "rolebindings", "roles"))
	name := u.Name[strings.LastIndex(u.Name, ":")+1:]
	binding := func(subjects, role string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\n" +
			"subjects: [" + subjects + "]\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}\n" + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: two}
rules: []
`
	}
	other := "{kind: ServiceAccount, name: other, namespace: NS}"
	s.deploy(binding(other, "one"))
	s.as(u)
	s.expect(s.deploy(binding(other, "two")), "recreate RoleBinding/b")
	for _, us := range []string{
		"{kind: ServiceAccount, name: " + name + ", namespace: NS}",
		"{kind: Group, name: 'system:serviceaccounts:NS'}",
		"{kind: User, name: '" + u.Name + "'}",
	} {
		s.deploy(binding(other+", "+us, "two"))
		err := s.refuse(binding(other, "one"))
		if !strings.Contains(hint(err), "grants permissions to the account that deployer runs as ("+u.Name+")") {
			t.Errorf("%s: %v, hint %q", us, err, hint(err))
		}
	}
}

// Volumes of a StatefulSet that are to grow.
func TestClaimTemplatesGrow(t *testing.T) {
	s := begin(t)
	const chart = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "c:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	s.deploy(chart)
	more := strings.Replace(chart, "1Gi", "2Gi", 1)
	err := s.refuse(more)
	var immutable *apply.ImmutableError
	if !errors.As(err, &immutable) || strings.Join(immutable.Fields, " ") != "spec.volumeClaimTemplates" {
		t.Fatalf("got %v", err)
	}
	want := "existing claims data-db-N keep the size that they have; to let one grow to 2Gi:\n  kubectl -n " + s.ns + " patch pvc data-db-0 -p"
	if !strings.Contains(hint(err), want) || !strings.Contains(hint(err), "--allow-recreate") {
		t.Errorf("hint: %s", hint(err))
	}
	renamed := s.refuse(strings.NewReplacer("1Gi", "1024Mi", "serviceName: db", "serviceName: other").Replace(chart)) // the same size
	if !errors.As(renamed, &immutable) || strings.Join(immutable.Fields, " ") != "spec.serviceName" || strings.Contains(hint(renamed), "patch pvc") {
		t.Errorf("%v\nhint: %s", renamed, hint(renamed))
	}
	s.opts.AllowRecreate = true
	p := s.plan(more)
	if c := change(t, p, "StatefulSet", "db"); c.Action != decide.Recreate || c.Reason != "spec.volumeClaimTemplates can't be changed" {
		t.Errorf("%s: %s", c.Action, c.Reason)
	}
	if !strings.Contains(warnings(p), want) {
		t.Errorf("warnings: %s", warnings(p))
	}
	if less := warnings(s.plan(strings.Replace(chart, "1Gi", "512Mi", 1))); !strings.Contains(less, "a claim can't become smaller") || strings.Contains(less, "patch pvc") {
		t.Errorf("warnings: %s", less)
	}
}

// A claim that is bound grows, and doesn't shrink. What others have made grow stays, or no release would be possible any more.
func TestClaimsGrowAndDontShrink(t *testing.T) {
	s := begin(t)
	class, volume := s.ns+"-class", s.ns+"-volume"
	t.Cleanup(func() {
		s.client("v1", "PersistentVolume").Delete(bg, volume, deleteNow)
		s.client("storage.k8s.io/v1", "StorageClass").Delete(bg, class, deleteNow)
	})
	for _, m := range s.manifests(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: NS-class}
provisioner: example.com/none
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: NS-volume}
spec: {capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], storageClassName: NS-class, hostPath: {path: /nowhere}, claimRef: {namespace: NS, name: disk}}
`) {
		s.post(m.Object, "x")
	}
	claim := func(size string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n" +
			"spec: {accessModes: [ReadWriteOnce], storageClassName: NS-class, resources: {requests: {storage: " + size + "}}}\n"
	}
	s.deploy(claim("2Gi"))
	s.eventually("the claim is bound", func() error {
		if at(s.get("v1", "PersistentVolumeClaim", "disk"), "status.phase") != "Bound" {
			return errors.New("not bound")
		}
		return nil
	})
	s.expect(s.deploy(claim("2Gi")))

	s.patch("v1", "PersistentVolumeClaim", "disk", types.MergePatchType, `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`, "autoresizer")
	for _, chart := range []string{claim("2Gi"), strings.Replace(claim("2Gi"), "name: disk", "name: disk, labels: {a: b}", 1)} {
		if got := warnings(s.deploy(chart)); !strings.Contains(got, "spec.resources.requests.storage stays as autoresizer set it") {
			t.Errorf("warnings: %s", got)
		}
	}
	claimNow := s.get("v1", "PersistentVolumeClaim", "disk")
	if size, label := at(claimNow, "spec.resources.requests.storage"), at(claimNow, "metadata.labels.a"); size != "3Gi" || label != "b" {
		t.Errorf("size %v, label %v", size, label)
	}
	s.expect(s.deploy(claim("6Gi")), "update PersistentVolumeClaim/disk")
	err := s.refuse(claim("1Gi"))
	if !strings.Contains(err.Error(), "spec.resources.requests.storage") || !strings.Contains(hint(err), "volumes don't shrink") {
		t.Errorf("%v\nhint: %s", err, hint(err))
	}
	s.opts.AllowRecreate = true // doesn't make it shrink either
	s.refuse(claim("1Gi"))
}

// TestCharactersThatYAMLDoesNotAllow: the API server reads what is applied as YAML, which refuses
// characters that a chart's values may well have.
func TestCharactersThatYAMLDoesNotAllow(t *testing.T) {
	s := begin(t)
	const text = "del\u007f c1\u009b\u0080 nel\u0085 bom\ufeff max\uffff esc\u001b bidi\u202e \U0001f600 é"
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.NewReplacer("\u007f", `\u007f`, "\u009b", `\u009b`, "\u0080", `\u0080`, "\u0085", `\u0085`, "\ufeff", `\ufeff`, "\uffff", `\uffff`).Replace(string(quoted))
	chart := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: {a: " + escaped + "}\n"
	s.expect(s.deploy(chart), "create ConfigMap/odd")
	if got := s.get("v1", "ConfigMap", "odd").Object["data"].(map[string]any)["a"]; got != text {
		t.Errorf("got %q, want %q", got, text)
	}
	s.expect(s.plan(chart))
}

// TestBindingOfOldServers fails if a plan fails as a whole because an API server before 1.28
// can't say which account asks: the binding is refused with advice.
func TestBindingOfOldServers(t *testing.T) {
	s := begin(t)
	s.opts.AllowRecreate = true
	const chart = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
subjects: [{kind: ServiceAccount, name: other, namespace: NS}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
`
	s.deploy(chart)
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return nil, nil
		}
		return answered(r, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`), nil
	}})
	err := s.refuse(strings.Replace(chart, "name: one", "name: two", 1))
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(hint(err), "can't say which account deployer runs as") {
		t.Errorf("%v, hint %q", err, hint(err))
	}
}
