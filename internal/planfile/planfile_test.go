package planfile

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/ownership"
	"deployer/internal/agekey"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/release"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

const live = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: u1
  resourceVersion: "7"
  managedFields:
  - {manager: helm, operation: Apply, fieldsV1: {f:spec: {f:replicas: {}, f:template: {f:spec: {f:containers: {'k:{"name":"app"}': {.: {}, f:image: {}, f:args: {}}}}}}}}
  - {manager: istio, operation: Update, fieldsV1: {f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"proxy"}': {.: {}, f:image: {}}}}}}}}
spec:
  replicas: 2
  template: {spec: {containers: [{name: proxy, image: "proxy:1"}, {name: app, image: "web:1", args: [a, b]}]}}
status: {replicas: 2}
`

const result = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: u1, resourceVersion: "8", annotations: {at: now}}
spec:
  replicas: 2
  template: {spec: {containers: [{name: app, image: "web:2", args: [a, c]}, {name: proxy, image: "proxy:1"}]}}
status: {replicas: 0}
`

const want = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template: {spec: {containers: [{name: app, image: "web:2", args: [a, c]}]}}
`

func change(t *testing.T) apply.Change {
	return apply.Change{
		ID: kube.ID{Group: "apps", Kind: "Deployment", Namespace: "prod", Name: "web"}, Action: decide.Update,
		Live: object(t, live), Predicted: object(t, result), Desired: object(t, want),
	}
}

// compared is a change with the fields that it touches.
func compared(t *testing.T, c apply.Change) apply.Change {
	t.Helper()
	managed, err := ownership.Parse(c.Live.GetManagedFields())
	if err == nil {
		states := compare.States{Before: c.Live, After: c.Predicted, Desired: c.Desired, Managed: managed}
		c.Fields, err = compare.Fields(builtin(), states)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// builtin reads the schemas of the built-in kinds.
var builtin = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

func testKey() key { return key("k") }

func TestTouchedFields(t *testing.T) {
	o := objectOf(testKey(), nil, deploy.StepApply, compared(t, change(t)))
	var got []string
	for _, f := range o.Fields {
		line := f.Path + ": " + f.plannedChangeText()
		if f.After == "" {
			line += " by server"
		}
		got = append(got, line+setByText(f.Owners))
	}
	want := []string{
		`metadata.annotations.at: (absent) -> "now" by server`,
		`spec.template.spec.containers[name="app"].args: ["a","b"] -> ["a","c"], set by helm (Apply)`,
		`spec.template.spec.containers[name="app"].image: "web:1" -> "web:2", set by helm (Apply)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("fields\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMoved(t *testing.T) {
	tests := []struct {
		name string
		edit func(c *apply.Change)
		want string // "" for nothing
	}{
		{"status and bookkeeping", func(c *apply.Change) {
			c.Live.SetResourceVersion("99")
			c.Live.Object["status"] = map[string]any{"replicas": int64(9)}
		}, ""},
		{"a sidecar's image", func(c *apply.Change) {
			for _, obj := range []*unstructured.Unstructured{c.Live, c.Predicted} {
				containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
				for _, item := range containers {
					if m := item.(map[string]any); m["name"] == "proxy" {
						m["image"] = "proxy:2"
					}
				}
				_ = unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers")
			}
		}, ""},
		{"what the server chooses", func(c *apply.Change) { c.Predicted.SetAnnotations(map[string]string{"at": "later"}) }, ""},
		{"another effect", func(c *apply.Change) {
			c.Predicted.SetAnnotations(map[string]string{"at": "now", "sidecar": "injected"})
		},
			`Deployment/prod/web  metadata.annotations.sidecar: planned no change; it would change: (absent) -> "injected"`},
		{"a live value", func(c *apply.Change) {
			_ = unstructured.SetNestedField(c.Live.Object, int64(5), "spec", "replicas")
		}, `Deployment/prod/web  spec.replicas: planned no change; it would change: 5 -> 2, set by helm (Apply)`},
		{"the uid", func(c *apply.Change) { c.Live.SetUID("u2") }, "Deployment/prod/web: planned update; it was deleted and recreated"},
		{"the action", func(c *apply.Change) { c.Action = decide.Unchanged }, "Deployment/prod/web: planned update; it is as planned already"},
		{"what is sent", func(c *apply.Change) { c.Desired.SetLabels(map[string]string{"a": "b"}) },
			"Deployment/prod/web: planned update; a different object would be applied: its schema, or the managers of its fields, changed"},
	}
	k := testKey()
	planned := objectOf(k, nil, deploy.StepApply, compared(t, change(t)))
	for _, test := range tests {
		c := change(t)
		test.edit(&c)
		got := ""
		for _, m := range planned.differences(objectOf(k, nil, deploy.StepApply, compared(t, c))) {
			got += m.String()
		}
		if got != test.want {
			t.Errorf("%s: moved %q, want %q", test.name, got, test.want)
		}
	}
}

func operation(values map[string]any, manifest string) *deploy.Operation {
	next := &release.Record{Release: helmrelease.Release{
		Name: "web", Namespace: "prod", Version: 1, Manifest: manifest, Config: values,
		Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "web", Version: "1.0.0"}},
		Info:  &helmrelease.Info{}, Labels: map[string]string{"team": "a"},
	}}
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "n": int64(3)}}
	return &deploy.Operation{
		Verb: deploy.Install, Release: "web", Namespace: "prod", Next: next, Plan: &apply.Plan{},
		Rendered: deploy.RenderingDetails{CRDs: []kube.Manifest{{Source: "web/crds/x.yaml", Object: crd}}},
	}
}

const secretManifest = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter22}\n"

func hooked(verb deploy.Verb, hooks ...string) *deploy.Operation {
	op := operation(nil, "")
	op.Verb = verb
	for _, manifest := range hooks {
		op.Next.Hooks = append(op.Next.Hooks, &helmrelease.Hook{Kind: kindOf(manifest), Name: "job", Path: "web/templates/job.yaml", Manifest: manifest})
	}
	return op
}

func kindOf(manifest string) string {
	_, after, _ := strings.Cut(manifest, "kind: ")
	kind, _, _ := strings.Cut(after, "\n")
	return kind
}

// Prevents that of hooks of one name in one file, such as a Job and its ServiceAccount, only the last is compared.
func TestHooksOfOneName(t *testing.T) {
	account, job := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: job}\n", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\n"
	k := testKey()
	planned := partsOf(k, hooked(deploy.Upgrade, account, job))
	got := differingParts(planned, partsOf(k, hooked(deploy.Upgrade, account+"automountServiceAccountToken: false\n", job)))
	if !slices.Equal(got, []string{"hook ServiceAccount/job (web/templates/job.yaml)"}) {
		t.Errorf("differences %v, want the ServiceAccount", got)
	}
}

func TestWhereContentIs(t *testing.T) {
	known := clusterUIDs{sourceCluster: "one", sourceNamespace: "two", sourceRevision: ""}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		op   *deploy.Operation
		to   []age.Recipient
		want ContentMode
	}{
		{"defaults", operation(nil, ""), nil, ContentPlain},
		{"ordinary values", operation(map[string]any{"a": 1}, ""), nil, ContentPlain},
		{"a password", operation(map[string]any{"password": "x"}, ""), nil, ContentRerendered},
		{"a Secret", operation(nil, secretManifest), nil, ContentRerendered},
		{"encrypted", operation(nil, secretManifest), []age.Recipient{id.Recipient()}, ContentEncrypted},
		{"a hook without a name", hooked(deploy.Upgrade, "apiVersion: v1\nkind: Pod\n"), nil, ContentRerendered},
		{"an uninstall with one", hooked(deploy.Uninstall, "apiVersion: v1\nkind: Pod\n"), nil, ContentStored},
	}
	for _, test := range tests {
		f, err := newFile(test.op, Options{EncryptTo: test.to}, origin{uids: known})
		if err != nil || f.Content.Mode != test.want {
			t.Errorf("%s: %v, %v, want %s", test.name, f, err, test.want)
		}
	}
	if _, err := newFile(operation(nil, secretManifest), Options{}, origin{uids: clusterUIDs{sourceRevision: ""}}); err == nil {
		t.Error("a plan with Secrets and nothing to key them by was made")
	}
}

func TestContentIsWhole(t *testing.T) {
	op := operation(map[string]any{"big": int64(12345678901234567), "f": 1.5}, secretManifest)
	k := testKey()
	planned := partsOf(k, op)
	packed, err := payload{Record: op.Next, CRDs: op.Rendered.CRDs}.pack()
	if err != nil {
		t.Fatal(err)
	}
	c, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	again := &deploy.Operation{Next: c.Record, Rendered: deploy.RenderingDetails{CRDs: c.CRDs}}
	if parts := differingParts(planned, partsOf(k, again)); len(parts) > 0 {
		t.Errorf("these came back differently: %v", parts)
	}
	if n := again.Rendered.CRDs[0].Object.Object["n"]; n != int64(3) {
		t.Errorf("a number of a CRD came back as %T", n)
	}
	op.Next.Manifest = strings.Replace(secretManifest, "hunter22", "hunter23", 1)
	if got := differingParts(planned, partsOf(k, op)); !slices.Equal(got, []string{"Secret/db ()"}) {
		t.Errorf("differences %v, want the Secret", got)
	}
	if _, err := unpack(packed[:len(packed)/2]); err == nil {
		t.Error("half a content was accepted")
	}
}

func TestConfidentialFieldsAreHidden(t *testing.T) {
	const shown = `{"stages":[]}`
	manifest := strings.Replace(secretManifest, "hunter22", "stages", 1)
	op := operation(nil, manifest)
	conf := func(pin string) *unstructured.Unstructured {
		return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {deployer.io/sensitive-paths: data.pin}},
			data: {pin: "`+pin+`", args: "--password=hunter22", open: "`+pin+`!"}}`)
	}
	op.Hidden = &hide.Texts{}
	op.Hidden.AddObject(object(t, secretManifest))
	op.Plan.Waves = []apply.Wave{{Changes: []apply.Change{compared(t, apply.Change{
		ID: kube.ID{Kind: "ConfigMap", Name: "c"}, Action: decide.Update,
		Live: object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"), Desired: conf("4711"), Predicted: conf("4711"),
	})}}}
	f, err := newFile(op, Options{Shown: map[string]string{"json": shown}}, origin{uids: clusterUIDs{sourceCluster: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, field := range f.Objects[0].Fields {
		got[field.Path] = field.To
	}
	for path, want := range map[string]string{"data.pin": "", "data.args": `"--password=(hidden)"`, "data.open": `"4711!"`} {
		if to, ok := got[path]; !ok || to != want {
			t.Errorf("%s is kept as %q, %v; want %q", path, to, ok, want)
		}
	}
	if f.Shown["json"] != shown {
		t.Errorf("shown %s, want %s: what is printed has been looked through before", f.Shown["json"], shown)
	}
}

func TestFiles(t *testing.T) {
	f, err := newFile(operation(nil, ""), Options{}, origin{uids: clusterUIDs{sourceCluster: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.plan")
	for range 2 { // the second replaces the first
		if err := f.write(path); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	got, err := Read(path)
	if err != nil || got.Digest() != f.Digest() {
		t.Fatalf("read %v, %v", got, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x01
		p, err := parse("x", bad)
		if err == nil && p.seal == f.seal {
			t.Fatalf("byte %d was altered from %q, and nobody noticed", i, data[i])
		}
	}
	if err := f.write(filepath.Dir(path)); err == nil {
		t.Error("a directory was replaced")
	}
	link := filepath.Join(t.TempDir(), "link.plan")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := f.write(link); err == nil {
		t.Error("a plan was written where somebody else's link is")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".plan-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSSHKeys(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	to, err := Recipients([]string{string(ssh.MarshalAuthorizedKey(signer))})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypt([]byte("text"), to)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := agekey.Parse(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decrypt(sealed, ids); err != nil || string(got) != "text" {
		t.Errorf("decrypted %q, %v", got, err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agekey.Parse(pem.EncodeToMemory(locked)); err == nil || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("a locked key gave %v", err)
	}
	id, _ := age.GenerateX25519Identity()
	_, err = Recipients([]string{id.String()})
	if err == nil || strings.Contains(err.Error(), id.String()) {
		t.Errorf("a private key as recipient gave %v", err)
	}
}
