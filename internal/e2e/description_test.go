package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDescriptionsShowNoPassword: what somebody writes with --description stands in tables, in annotations and in
// records that Helm shows. A password in it is in none of them, if it is one of the deployed or a later revision.
func TestDescriptionsShowNoPassword(t *testing.T) {
	w := newWorld(t)
	given, rendered, read, old := canary(), canary(), canary(), canary()
	w.create("secrets", "test", "{apiVersion: v1, kind: Secret, metadata: {name: external}, stringData: {pw: "+read+"}}")
	chart := func(n, pw string) string {
		return w.chartOf(map[string]string{
			"values.yaml": "db: {password: none}\nn: \"" + n + "\"\n",
			"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {pw: " + pw + "}\n---\n" +
				configMap("a", n+" {{ (lookup `v1` `Secret` .Release.Namespace `external`).data.pw | b64dec }}"),
		})
	}
	words := "because of " + given + ", " + strings.ToUpper(rendered) + ", postgres://u:" + read + "@db and " + old
	run := func(code int, args ...string) {
		t.Helper()
		w.hides(w.exits(code, args...), given, rendered, read, old)
	}
	first, second := chart("1", old), chart("2", rendered)
	w.hides(w.ok("install", "x", first, "--set", "db.password="+given, "--description", "because of "+given+" and "+old), given, old)
	all := func(args ...string) []string { return append(args, "--description", words) }
	run(0, all("plan", "x", second, "--set", "db.password="+given)...)
	run(0, all("plan", "x", second, "--set", "db.password="+given, "-o", "json")...)
	run(0, all("upgrade", "x", second, "--set", "db.password="+given)...)
	run(0, "history", "x")
	run(0, "history", "x", "-o", "json")
	run(0, "status", "x", "--show-desc")
	run(0, all("plan", "--rollback", "x", "1", "-o", "markdown")...)
	run(0, all("rollback", "x", "1")...)
	words = strings.ReplaceAll(words, strings.ToUpper(rendered)+", ", "") // of a revision before the deployed one
	file := w.TempDir() + "/plan"
	run(0, all("plan", "--uninstall", "x", "--keep-history", "--out", file)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.hides(result{line: "the saved plan of an uninstall", out: string(data)}, given, rendered, read, old)
	run(0, all("uninstall", "x", "--keep-history")...)
	run(0, "list", "-a")

	r := w.helm("history", "x", "-o", "json")
	w.hides(r, given, rendered, read, old)
	w.says(r, "stdout", `because of \(hidden\) and \(hidden\)`, `because of \(hidden\), \(hidden\), postgres://u:\(hidden\)@db and \(hidden\)`)
	for _, resource := range []schema.GroupVersionResource{{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}} {
		list, err := w.cluster.Dynamic().Resource(resource).Namespace(w.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.GetName() == "s" || o.GetName() == "external" {
				continue
			}
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			w.hides(result{line: resource.Resource + " " + o.GetName(), out: string(text)}, given, rendered, read, old)
		}
	}
}
