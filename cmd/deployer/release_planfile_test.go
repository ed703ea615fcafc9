package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/internal/kubetest"
	"deployer/internal/planfile"
)

// savedTemplates are those of the chart of these tests.
var savedTemplates = map[string]string{
	"conf.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {colour: {{ .Values.colour | quote }}, size: "1", big: {{ .Values.big | quote }}}
`,
	"web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  {{- if not .Values.scaled }}
  replicas: 2
  {{- end }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: {{ .Values.image }}
        env: [{name: COLOUR, value: {{ .Values.colour | quote }}}]
`,
	"old.yaml": `
{{- if .Values.old }}
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
data: {a: b}
{{- end }}
`,
	"db.yaml": `
{{- if .Values.password }}
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: {{ .Values.password | quote }}}
{{- end }}
`,
}

// A plans is a namespace, a chart, and the program to try on them.
type plans struct {
	t       *testing.T
	cluster *kubetest.Cluster
	ns      string
	chart   string
	config  string
	file    string
}

func newPlans(t *testing.T) *plans {
	c := kubetest.Start(t)
	p := &plans{t: t, cluster: c, ns: c.Namespace(t), chart: t.TempDir(), file: filepath.Join(t.TempDir(), "web.plan")}
	p.config = c.Kubeconfig(t, p.ns)
	p.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
	p.write("values.yaml", "colour: red\nimage: nginx:1\nold: true\nscaled: false\nbig: 12345678901\n")
	for name, text := range savedTemplates {
		p.write("templates/"+name, text)
	}
	return p
}

func (p *plans) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.chart, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// run runs the program and checks its exit code; it gives all that was written.
func (p *plans) run(code int, args ...string) string {
	p.t.Helper()
	var out bytes.Buffer
	args = append([]string{"deployer"}, append(args, "--kubeconfig", p.config)...)
	if got := execute(context.Background(), args, strings.NewReader(""), &out, &out); got != code {
		p.t.Fatalf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out.String())
	}
	return out.String()
}

func (p *plans) upgrade(values ...string) {
	p.t.Helper()
	args := []string{"upgrade", "--install", "web", p.chart, "--wait=false"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	p.run(0, args...)
}

// plan saves a plan of an upgrade with values.
func (p *plans) plan(values ...string) string {
	p.t.Helper()
	args := []string{"plan", "web", p.chart, "--out", p.file}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	var out string
	p.cluster.Eventually(p.t, time.Minute, "a whole list of the API's groups", func(context.Context) error {
		// Other tests' API groups come and go, and while one is missing nothing is pruned.
		if out = p.run(0, args...); strings.Contains(out, "can't list") {
			return errors.New(out)
		}
		return nil
	})
	return out
}

// apply carries the plan out with the same values.
func (p *plans) apply(code int, values ...string) string {
	p.t.Helper()
	args := []string{"apply", p.file, p.chart, "--wait=false"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return p.run(code, args...)
}

func (p *plans) client(resource string) dynamic.ResourceInterface {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	if resource == "deployments" {
		gvr.Group = "apps"
	}
	return p.cluster.Dynamic().Resource(gvr).Namespace(p.ns)
}

func (p *plans) patch(resource, name, patch, manager string, sub ...string) {
	p.t.Helper()
	_, err := p.client(resource).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, sub...)
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plans) get(resource, name string) *unstructured.Unstructured {
	p.t.Helper()
	obj, err := p.client(resource).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return obj
}

func (p *plans) remove(resource, name string) {
	p.t.Helper()
	if err := p.client(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plans) colour() string {
	p.t.Helper()
	text, _, _ := unstructured.NestedString(p.get("configmaps", "conf").Object, "data", "colour")
	return text
}

func mustHave(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

func TestApplySavedPlan(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	t.Run("a first install of defaults has all in the file", func(t *testing.T) {
		p.plan()
		info, err := os.Stat(p.file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
		}
		p.run(0, "apply", p.file, "--wait=false")
		if got := p.colour(); got != "red" {
			t.Errorf("colour is %q, want red", got)
		}
	})
	t.Run("it can't be carried out twice", func(t *testing.T) {
		mustHave(t, p.run(4, "apply", p.file, "--wait=false"), "release web: planned based on no revision; the latest is revision 1, deployed")
	})
	t.Run("so has an upgrade with values that aren't confidential", func(t *testing.T) {
		mustHave(t, p.plan("colour=green"), "\nto apply it, run: deployer apply "+p.file+" --kubeconfig ")
		p.run(0, "apply", p.file, "--wait=false")
		if got := p.colour(); got != "green" {
			t.Errorf("colour is %q, want green", got)
		}
		p.plan("colour=red")
		p.apply(3, "colour=blue") // a chart that is given has to come to the same
		p.apply(0, "colour=red")
	})
	t.Run("an upgrade with a password is rendered again", func(t *testing.T) {
		mustHave(t, p.plan("colour=blue", "old=false", "password=s3cret-word"), "\nto apply it, run: deployer apply "+p.file+" "+p.chart+" --set colour=blue --set old=false --set 'password=(hidden)' --kubeconfig ")
		mustHave(t, p.run(1, "apply", p.file), "the chart must be rendered again", "--encrypt-to")
		mustHave(t, p.apply(3, "colour=green", "old=false", "password=s3cret-word"), "something else than was planned", "values", "ConfigMap/conf")
		mustHave(t, p.run(0, "apply", p.file, p.chart, "--set", "colour=blue,old=false,password=s3cret-word", "--dry-run"), "ConfigMap/"+p.ns+"/conf")
		if p.colour() != "red" {
			t.Error("--dry-run has changed something")
		}
		p.apply(0, "colour=blue", "old=false", "password=s3cret-word")
		if got := p.colour(); got != "blue" {
			t.Errorf("colour is %q, want blue", got)
		}
		if _, err := p.client("configmaps").Get(context.Background(), "old", metav1.GetOptions{}); err == nil {
			t.Error("ConfigMap old is still there")
		}
	})
	t.Run("what doesn't matter may move", func(t *testing.T) {
		p.plan("colour=black", "image=nginx:2")
		p.patch("deployments", "web", `{"metadata":{"labels":{"team":"blue"}},"spec":{"template":{"metadata":{"annotations":{"who":"me"}}}}}`, "kubectl-label")
		p.patch("deployments", "web", `{"status":{"observedGeneration":1}}`, "kube-controller-manager", "status")
		p.patch("configmaps", "conf", `{"data":{"other":"x"}}`, "kubectl-edit")
		p.apply(0, "colour=black", "image=nginx:2")
	})
	t.Run("a rollback", func(t *testing.T) {
		p.run(0, "plan", "--rollback", "web", "1", "--out", p.file)
		p.run(1, "apply", p.file, p.chart)
		p.run(0, "apply", p.file, "--wait=false")
		if got := p.colour(); got != "red" {
			t.Errorf("colour is %q, want red", got)
		}
	})
	t.Run("an uninstall", func(t *testing.T) {
		p.run(0, "plan", "--uninstall", "web", "--out", p.file)
		p.remove("configmaps", "old")
		mustHave(t, p.run(4, "apply", p.file, "--wait=false"), "ConfigMap/"+p.ns+"/old", "planned delete; it no longer exists")
		p.run(0, "plan", "--uninstall", "web", "--out", p.file)
		p.patch("configmaps", "conf", `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, "kubectl-annotate")
		mustHave(t, p.run(4, "apply", p.file, "--wait=false"), "ConfigMap/"+p.ns+"/conf", "planned delete; it would be kept: ")
		p.run(0, "plan", "--uninstall", "web", "--out", p.file)
		p.run(0, "apply", p.file, "--wait=false")
		mustHave(t, p.run(1, "status", "web"), "not found")
	})
}

func TestStalePlans(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.upgrade()
	moves := []struct {
		name string
		move func()
		want []string
	}{
		{"a field that changes", func() { p.patch("configmaps", "conf", `{"data":{"colour":"pink"}}`, "kubectl-edit") },
			[]string{"ConfigMap/" + p.ns + "/conf", "data.colour", `"red" -> "blue"`, `"pink"`, "kubectl-edit"}},
		{"an item of a keyed list", func() {
			p.patch("deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"nginx:1","env":[{"name":"COLOUR","value":"grey"}]}]}}}}`, "kubectl-patch")
		}, []string{`spec.template.spec.containers[name="app"].env[name="COLOUR"].value`, `"grey"`}},
		{"a field that was as the chart has it", func() { p.patch("configmaps", "conf", `{"data":{"size":"7"}}`, "kubectl-edit") },
			[]string{"data.size", "no change", `"7" -> "1"`}},
		{"the owner of a field", func() {
			p.applyAs("other", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"colour":"red"}}`)
		}, []string{"data.colour", "it belongs to", "other (Apply)"}},
		{"an object that is gone", func() { p.remove("configmaps", "conf") }, []string{"ConfigMap/" + p.ns + "/conf", "planned update", "would be created"}},
		{"an object made again", func() { p.remake("conf") }, []string{"ConfigMap/" + p.ns + "/conf", "it was deleted and recreated"}},
		{"an object to be deleted, made again", func() { p.remake("old") }, []string{"ConfigMap/" + p.ns + "/old", "it was deleted and recreated"}},
		{"a revision", func() { p.upgrade("size=2") }, []string{"release web: planned based on revision", "the latest is revision"}},
		{"an object that lost its owner", func() {
			p.patch("configmaps", "old", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`, "kubectl-edit")
		}, []string{"ConfigMap/" + p.ns + "/old"}},
	}
	for _, m := range moves {
		t.Run(m.name, func(t *testing.T) {
			q := *p
			q.t = t
			q.upgrade("old=true")
			q.plan("colour=blue", "old=false")
			m.move()
			before := q.get("deployments", "web").GetGeneration()
			mustHave(t, q.apply(4, "colour=blue", "old=false"), append(m.want, "make a new plan")...)
			if after := q.get("deployments", "web").GetGeneration(); before != after {
				t.Error("something was changed")
			}
		})
	}
}

// applyAs makes somebody a second owner of what the manifest states.
func (p *plans) applyAs(manager, manifest string) {
	p.t.Helper()
	force := true
	_, err := p.client("configmaps").Patch(context.Background(), "conf", types.ApplyPatchType, []byte(manifest), metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		p.t.Fatal(err)
	}
}

// remake deletes a ConfigMap and makes another one that is the same.
func (p *plans) remake(name string) {
	p.t.Helper()
	obj := p.get("configmaps", name)
	p.remove("configmaps", name)
	obj.SetUID("")
	obj.SetResourceVersion("")
	if _, err := p.client("configmaps").Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "velero"}); err != nil {
		p.t.Fatal(err)
	}
}

func TestScalingDoesNotSpoilPlans(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/hpa.yaml", `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
`)
	p.upgrade()
	p.plan("image=nginx:2")
	p.patch("deployments", "web", `{"spec":{"replicas":5}}`, "kube-controller-manager", "scale")
	p.apply(0, "image=nginx:2")
	if n, _, _ := unstructured.NestedInt64(p.get("deployments", "web").Object, "spec", "replicas"); n != 5 {
		t.Errorf("%d replicas, want 5", n)
	}
}

func TestSecretsInPlans(t *testing.T) {
	t.Parallel()
	const password = "correct-horse-battery"
	p := newPlans(t)
	p.write("templates/leak.yaml", `
{{- if .Values.password }}
apiVersion: v1
kind: ConfigMap
metadata: {name: leak}
data: {url: "postgres://me:{{ .Values.password }}@db"}
{{- end }}
`)
	absent := func(t *testing.T) {
		t.Helper()
		data, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{password, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "older-password"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("the file has %q in it", secret)
			}
		}
	}
	t.Run("kept out", func(t *testing.T) {
		if out := p.plan("password=older-password"); strings.Contains(out, "older-password") || !strings.Contains(out, "--set 'password=(hidden)'") {
			t.Errorf("the command line to copy:\n%s", out)
		}
		absent(t)
		p.apply(3, "password=some-other")
		p.apply(0, "password=older-password")
	})
	t.Run("changed since", func(t *testing.T) {
		p.plan("password=" + password)
		p.patch("secrets", "db", `{"stringData":{"password":"by-hand-password"}}`, "kubectl-edit")
		out := p.apply(4, "password="+password)
		mustHave(t, out, "Secret/"+p.ns+"/db", "data.password", "hidden")
		if strings.Contains(out, password) || strings.Contains(out, "by-hand-password") {
			t.Errorf("a Secret's value was shown:\n%s", out)
		}
	})
	t.Run("encrypted", func(t *testing.T) {
		p.patch("secrets", "db", `{"stringData":{"password":"older-password"}}`, "kubectl-edit")
		mine, path := newIdentity(t)
		_, wrong := newIdentity(t)
		p.run(0, "plan", "web", p.chart, "--set", "password="+password, "--out", p.file, "--encrypt-to", mine)
		absent(t)
		mustHave(t, p.run(1, "apply", p.file), "the plan is encrypted", "--identity")
		mustHave(t, p.run(1, "apply", p.file, "--identity", wrong), "for none of the identities")
		mustHave(t, p.run(0, "plan", "--show", p.file), "Secret/"+p.ns+"/db", "Digest sha256:")
		p.run(0, "apply", p.file, "--identity", path, "--wait=false")
		mustHave(t, p.run(0, "get", "values", "web"), password)
	})
}

// TestPasswordInALabel: a label of the record that repeats a password isn't shown by a saved plan.
func TestPasswordInALabel(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	const password = "correct-horse-battery"
	args := []string{"plan", "web", p.chart, "--install", "--set", "password=" + password, "--labels", "team=of-" + password, "--out", p.file}
	mustHave(t, p.run(1, args...), "a label of the release record repeats a confidential value", "--encrypt-to")
	mine, path := newIdentity(t)
	out := p.run(0, append(args, "--encrypt-to", mine)...) + p.run(0, "plan", "--show", p.file)
	saved, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out+string(saved), password) {
		t.Errorf("the password is shown:\n%s\n%s", out, saved)
	}
	p.run(0, "apply", p.file, "--identity", path, "--wait=false")
	mustHave(t, p.run(0, "list", "-l", "team=of-"+password), "web")
}

// What a template reads from a Secret, and what annotations declare, is as confidential as a Secret.
func TestConfidentialTextsAreNotInPlans(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	for name, template := range map[string]string{
		"read from a Secret": `
apiVersion: v1
kind: ConfigMap
metadata: {name: copy}
data: {url: "postgres://me:{{ (lookup "v1" "Secret" .Release.Namespace "of-others").data.password | b64dec }}@db"}
`,
		"annotated": `
apiVersion: v1
kind: ConfigMap
metadata: {name: copy, annotations: {deployer.io/sensitive-paths: data.pin}}
data: {pin: ` + secret + `}
`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlans(t)
			other := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "of-others"}, "stringData": map[string]any{"password": secret},
			}}
			if _, err := p.client("secrets").Create(context.Background(), other, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			p.write("templates/copy.yaml", template)
			p.plan()
			f, err := planfile.Read(p.file)
			if err != nil {
				t.Fatal(err)
			}
			if f.Content.Mode != planfile.ContentRerendered {
				t.Errorf("the content is %q, which anybody who has the file can read", f.Content.Mode)
			}
			p.apply(0)
		})
	}
}

func newIdentity(t *testing.T) (recipient, path string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(path, []byte("# mine\n"+id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), path
}

func TestTamperedPlans(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	out := p.plan()
	good, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	digest := out[strings.Index(out, "sha256:"):]
	digest = digest[:strings.IndexByte(digest, '\n')]
	p.run(3, "apply", p.file, "--digest", "sha256:00", "--dry-run")
	p.run(0, "apply", p.file, "--digest", digest, "--dry-run")

	write := func(data []byte) {
		if err := os.WriteFile(p.file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int{2, 40, 100, 300, len(good) / 2, len(good) - 3} {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		write(bad)
		var sink bytes.Buffer
		args := []string{"deployer", "apply", p.file, "--dry-run", "--kubeconfig", p.config}
		if code := execute(context.Background(), args, strings.NewReader(""), &sink, &sink); code != 3 && code != 1 {
			t.Errorf("byte %d altered: exit code %d\n%s", at, code, sink.String())
		}
	}
	write(good[:len(good)-100])
	mustHave(t, p.run(3, "plan", "--show", p.file), "truncated")

	// An edit by somebody who recomputes the digest, but doesn't know the cluster.
	write(resealed(t, good, `"allow_recreate":true,`))
	mustHave(t, p.run(3, "apply", p.file), "integrity check failed: the file was changed after it was planned")

	write([]byte(strings.Replace(string(good), `"version":1`, `"version":7`, 1)))
	mustHave(t, p.run(1, "apply", p.file), "version 7 of the plan format", "newer")
	write([]byte("kind: Deployment\n"))
	mustHave(t, p.run(3, "apply", p.file), "is not a plan")

	if err := os.Remove(p.file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.file, 0o755); err != nil {
		t.Fatal(err)
	}
	mustHave(t, p.run(1, "plan", "web", p.chart, "--out", p.file), "is a directory")
}

// TestPlanOfAnotherCluster needs no second cluster: what tells clusters apart
// is a digest in the file, and here it is another one.
func TestPlanOfAnotherCluster(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.plan()
	good, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := bytes.Cut(good, []byte("\n"))
	var plan struct {
		Cluster struct{ Identities map[string]string } `json:"cluster"`
	}
	if err := json.Unmarshal(line, &plan); err != nil {
		t.Fatal(err)
	}
	was := plan.Cluster.Identities["cluster"]
	other := reseal(t, bytes.Replace(line[:len(line)-1], []byte(was), []byte(strings.Repeat("A", len(was))), 1))
	if err := os.WriteFile(p.file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	mustHave(t, p.run(4, "apply", p.file), "is another cluster")
}

// resealed inserts text into the policies of a plan and makes its digest right.
func resealed(t *testing.T, good []byte, text string) []byte {
	t.Helper()
	_, line, _ := bytes.Cut(bytes.TrimSuffix(good, []byte("\n")), []byte("\n"))
	edited := strings.Replace(string(line), `"policies":{`, `"policies":{`+text, 1)
	if edited == string(line) {
		t.Fatal("nothing was edited")
	}
	return reseal(t, []byte(edited))
}

func reseal(t *testing.T, line []byte) []byte {
	t.Helper()
	head := fmt.Sprintf(`{"format":"deployer-plan","version":1,"digest":"sha256:%x","seal":"hmac-sha256:AAAA"}`, sumOf(line))
	return []byte(head + "\n" + string(line) + "\n")
}

func sumOf(data []byte) [32]byte { return sha256.Sum256(data) }

// A saved plan is shown without a cluster as it was when it was made, in every
// format and with every flag of showing.
func TestPlanShowNeedsNoCluster(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.upgrade("password=planted-secret-1")
	p.plan("colour=blue", "password=planted-secret-2")
	shown := [][]string{
		{}, {"--show-unchanged"}, {"--full", "--context", "0"},
		{"-o", "json"}, {"-o", "yaml"}, {"-o", "markdown"}, {"-o", "html"}, {"-o", "mermaid"}, {"-o", "dot"},
	}
	var want []string
	for _, flags := range shown {
		want = append(want, p.run(0, append([]string{"plan", "web", p.chart, "--set", "colour=blue,password=planted-secret-2"}, flags...)...))
	}
	p.config = filepath.Join(t.TempDir(), "none")
	for i, flags := range shown {
		got := p.run(0, append([]string{"plan", "--show", p.file}, flags...)...)
		if len(flags) == 0 || strings.HasPrefix(flags[0], "--") {
			mustHave(t, got, "To apply it, run: deployer apply "+p.file+" CHART")
			got, _, _ = strings.Cut(got, "\nMade ")
		}
		if got != want[i] {
			t.Errorf("%v: shown\n%s\nwas\n%s", flags, got, want[i])
		}
	}
}

func TestPoliciesOfPlans(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.upgrade()
	p.run(0, "plan", "web", p.chart, "--set", "colour=blue", "--conflicts", "fail", "--out", p.file)
	p.patch("configmaps", "conf", `{"data":{"size":"9"}}`, "kubectl-edit")
	mustHave(t, p.apply(4, "colour=blue"), "it would be rejected now", "kubectl-edit")
	p.run(1, "apply", p.file, "--conflicts", "take")
	p.run(1, "apply", p.file, p.chart, "--namespace", "elsewhere")

	// What a flag of the plan allows is done, and only then.
	p.upgrade()
	p.write("templates/web.yaml", strings.ReplaceAll(savedTemplates["web.yaml"], "app: web", "app: other"))
	p.run(3, "plan", "web", p.chart)
	old := p.get("deployments", "web").GetUID()
	mustHave(t, p.run(0, "plan", "web", p.chart, "--allow-recreate", "--out", p.file), "! Deployment/")
	p.run(0, "apply", p.file, "--wait=false")
	if p.get("deployments", "web").GetUID() == old {
		t.Error("the Deployment was not made anew")
	}
	p.write("templates/mine.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {a: chart}\n")
	p.applyNew("somebody", "mine")
	p.run(3, "plan", "web", p.chart)
	p.run(0, "plan", "web", p.chart, "--take-ownership", "--out", p.file)
	p.patch("configmaps", "mine", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`, "helm")
	mustHave(t, p.run(4, "apply", p.file, "--wait=false"), "ConfigMap/"+p.ns+"/mine")
	p.patch("configmaps", "mine", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`, "helm")
	p.run(0, "plan", "web", p.chart, "--take-ownership", "--out", p.file)
	p.run(0, "apply", p.file, "--wait=false")
	if got, _, _ := unstructured.NestedString(p.get("configmaps", "mine").Object, "data", "a"); got != "chart" {
		t.Errorf("the adopted object has %q", got)
	}
}

// applyNew makes a ConfigMap that belongs to no release.
func (p *plans) applyNew(manager, name string) {
	p.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"a": "theirs"},
	}}
	if _, err := p.client("configmaps").Create(context.Background(), obj, metav1.CreateOptions{FieldManager: manager}); err != nil {
		p.t.Fatal(err)
	}
}

func TestPlanThatCreatesItsNamespace(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	ns := p.ns + "-new"
	t.Cleanup(func() {
		_ = p.cluster.Client().CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{})
	})
	p.run(0, "plan", "web", p.chart, "-n", ns, "--create-namespace", "--set", "password=hunter22", "--out", p.file)
	p.run(3, "apply", p.file, p.chart, "--set", "password=other", "--wait=false")
	p.run(0, "apply", p.file, p.chart, "--set", "password=hunter22", "--wait=false")
	mustHave(t, p.run(0, "status", "web", "-n", ns), "deployed")
}

// TestPlansOfNarrowAccounts plans as an account that may read no namespace.
func TestPlansOfNarrowAccounts(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	user := p.cluster.User(t, p.ns,
		kubetest.Rule("", "*", "secrets", "configmaps", "events"), kubetest.Rule("apps", "*", "deployments"),
		kubetest.Rule("coordination.k8s.io", "*", "leases"), kubetest.Rule("autoscaling", "list", "horizontalpodautoscalers"))
	admin := p.config
	p.config = user.Kubeconfig(t, p.ns)
	t.Run("the first install has nothing to protect digests by", func(t *testing.T) {
		mustHave(t, p.run(1, "plan", "web", p.chart, "--set", "password=hunter22", "--out", p.file), "--encrypt-to")
	})
	t.Run("a plan that anybody could have made needs its digest", func(t *testing.T) {
		out := p.run(0, "plan", "web", p.chart, "--out", p.file)
		digest := out[strings.Index(out, "sha256:"):]
		digest = digest[:strings.IndexByte(digest, '\n')]
		mustHave(t, p.run(1, "apply", p.file), "--digest")
		p.run(0, "apply", p.file, "--wait=false", "--digest", digest)
	})
	t.Run("an administrator's plan of an upgrade", func(t *testing.T) {
		p.config = admin
		p.plan("password=hunter22")
		p.config = user.Kubeconfig(t, p.ns)
		p.apply(0, "password=hunter22")
	})
}

func TestPlansOfHooksAndDefinitions(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	group := p.ns + ".example.com"
	name := "things." + group
	crds := p.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = crds.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	p.write("crds/things.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+name+`}
spec:
  group: `+group+`
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}}
`)
	p.write("templates/thing.yaml", "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: one}\nspec: {n: 12}\n")
	p.write("templates/hook.yaml", `
apiVersion: v1
kind: ConfigMap
metadata:
  name: before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
data: {a: "{{ .Release.Revision }}"}
`)
	p.plan()
	p.run(0, "apply", p.file, "--wait=false")
	things := p.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace(p.ns)
	if _, err := things.Get(context.Background(), "one", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	p.plan()
	p.run(0, "apply", p.file, "--wait=false")
	if got, _, _ := unstructured.NestedString(p.get("configmaps", "before").Object, "data", "a"); got != "2" {
		t.Errorf("the hook of revision %q was the last, want 2", got)
	}
	p.plan()
	p.run(0, "get", "hooks", "web")
	if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.cluster.Eventually(t, time.Minute, "the kind to be gone", func(ctx context.Context) error {
		if _, err := crds.Get(ctx, name, metav1.GetOptions{}); err == nil {
			return errors.New("still there")
		}
		return nil
	})
	mustHave(t, p.run(4, "apply", p.file, "--wait=false"), "CustomResourceDefinition/"+name)
}

// Who may only read gets every kind of plan, worked out here and labelled as
// such, the same as an administrator's in what it changes; and nothing is written
// or tried to be. Who may not list gets it too.
func TestPlansOfReaders(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.upgrade()
	p.upgrade("colour=black")
	p.patch("configmaps", "conf", `{"data":{"colour":"pink"}}`, "kubectl-edit")
	plans := [][]string{
		{"web", p.chart, "--set", "colour=blue,old=false,image=nginx:2"}, {"new", p.chart, "--set", "old=false"},
		{"--rollback", "web", "1"}, {"--uninstall", "web"},
	}
	plans[1][1] = t.TempDir() + "/new" // an install of objects that nobody has
	q := *p
	q.chart = plans[1][1]
	q.write("Chart.yaml", "apiVersion: v2\nname: new\nversion: 1.0.0\n")
	q.write("templates/new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {a: b}\n")
	plans[1] = plans[1][:2]
	last := func(out string) string {
		line := out[strings.LastIndex(out, "Plan: "):]
		line, _, _ = strings.Cut(line, "; ")
		return strings.TrimSpace(line)
	}
	for _, objects := range []string{"get,list", "get"} {
		user := p.cluster.User(t, p.ns, kubetest.Rule("", "get,list", "secrets"), kubetest.Rule("", objects, "configmaps"), kubetest.Rule("apps", objects, "deployments"))
		reader := *p
		reader.config = user.Kubeconfig(t, p.ns)
		from := len(p.cluster.Audit(t, user.Name))
		for _, args := range plans {
			args = append([]string{"plan"}, args...)
			got, want := reader.run(0, args...), p.run(0, args...)
			if last(got) != last(want) {
				t.Errorf("%s: %v plans %q, an administrator %q", objects, args, last(got), last(want))
			}
			if args[1] != "--uninstall" { // of which there is nothing to ask
				mustHave(t, got, "local estimate: no permission to ", " not verified")
			}
		}
		for _, e := range kubetest.Writes(p.cluster.Audit(t, user.Name)[from:]) {
			t.Errorf("%s: written: %s", objects, e)
		}
	}
}

// A plan of somebody who may only read is an estimate. What others change afterwards spoils it like
// any other; that the API server is asked when it is carried out doesn't.
func TestStalePlansOfReaders(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/limits.yaml", `
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, default: {memory: {{ .Values.memory | default "1000M" | quote }}}}]}
`)
	p.upgrade()
	user := p.cluster.User(t, p.ns, kubetest.Rule("", "get,list", "secrets", "configmaps", "limitranges"), kubetest.Rule("apps", "get,list", "deployments"))
	reader := *p
	reader.config = user.Kubeconfig(t, p.ns)
	set := []string{"colour=blue", "image=nginx:2", "memory=2000M"}
	for _, c := range []struct {
		name, patch, manager string
		want                 []string // nothing: the plan is carried out
	}{
		{"a field that changes", `{"data":{"colour":"pink"}}`, "kubectl-edit", []string{"data.colour", `"red" -> "blue"`, `"pink"`, "kubectl-edit"}},
		{"a field that was as the chart has it", `{"data":{"size":"7"}}`, "kubectl-edit", []string{"data.size", "no change", `"7" -> "1"`}},
		{"a field that the chart doesn't have", `{"data":{"other":"x"}}`, "kubectl-edit", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, reader := *p, reader
			p.t, reader.t = t, t
			p.upgrade("colour=red")
			mustHave(t, reader.plan(set...), "local estimate")
			p.patch("configmaps", "conf", c.patch, c.manager)
			if c.want == nil {
				p.apply(0, set...)
				return
			}
			mustHave(t, p.apply(4, set...), append(c.want, "ConfigMap/"+p.ns+"/conf")...)
		})
	}
}

// What a plan says is waited for is what the run of the same flags waits for.
func TestPlansSayWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPlans(t)
	p.write("templates/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: nginx}]}}}\n")
	waits := func(args ...string) string {
		t.Helper()
		var plan struct {
			Stages []struct {
				Kind  string
				After []struct{ Object, State string }
			}
		}
		out := p.run(0, append([]string{"plan", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &plan); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		var words []string
		for _, s := range plan.Stages {
			if s.Kind != "wait" {
				continue
			}
			for _, n := range s.After {
				words = append(words, strings.Replace(n.Object, "/"+p.ns+"/", "/", 1)+" "+n.State)
			}
		}
		return strings.Join(words, ", ")
	}
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("waits for %q, want %q", got, want)
		}
	}
	check(waits("web", p.chart), "Deployment/web ready, Job/once ready")
	check(waits("web", p.chart, "--wait-for-jobs=false"), "Deployment/web ready")
	check(waits("web", p.chart, "--wait=false"), "")
	p.run(0, "upgrade", "--install", "web", p.chart, "-o", "json", "--wait-for-jobs=false")
	events := p.run(0, "upgrade", "web", p.chart, "--set", "image=nginx:2", "-o", "json", "--wait-for-jobs=false")
	if !strings.Contains(events, `"event":"step_began"`) || !strings.Contains(events, `"step":"wait"`) {
		t.Errorf("the run has not waited:\n%s", events)
	}
	check(waits("--rollback", "web", "1", "--wait-for-jobs=false"), "Deployment/web ready")
	gone := waits("--uninstall", "web")
	for _, name := range []string{"Deployment/web gone", "Job/once gone", "ConfigMap/conf gone"} {
		if !strings.Contains(gone, name) {
			t.Errorf("an uninstall waits for %q, not for %s", gone, name)
		}
	}
	mustHave(t, p.run(0, "plan", "web", p.chart, "--set", "image=nginx:3"), "> wait   until Deployment/"+p.ns+"/web and Job/"+p.ns+"/once are ready")
}
