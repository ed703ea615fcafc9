package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestThousandUnchangedObjects holds the upgrade that changes nothing of a
// thousand objects to forty requests, with those for records and the lock, and
// to no write but theirs.
func TestThousandUnchangedObjects(t *testing.T) {
	w := newWorld(t)
	var all strings.Builder
	for i := range 250 {
		name := fmt.Sprint("o-", i)
		for _, object := range []string{
			configMap(name, "1"),
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + "}\n",
			"apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {app: x}, ports: [{port: 80}]}\n",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + name + "}\nrules: []\n",
		} {
			all.WriteString("---\n" + object)
		}
	}
	chart := w.chart(all.String())
	w.ok("install", "x", chart)
	mark := w.mark()
	w.ok("upgrade", "x", chart)
	asked := w.cluster.Audit(t, w.user.Name)[mark:]
	if len(asked) > 40 {
		var lines strings.Builder
		for _, e := range asked {
			fmt.Fprintln(&lines, e.Verb, e.URI)
		}
		t.Errorf("%d requests, want 40 at most:\n%s", len(asked), lines.String())
	}
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}
}

// TestRequestsArePaced holds a run to --qps and --burst-limit. A slow machine
// can only make it slower.
func TestRequestsArePaced(t *testing.T) {
	w := newWorld(t)
	mark, began := w.mark(), time.Now()
	w.ok("install", "x", w.chart(configMap("a", "1"), configMap("b", "1"), configMap("c", "1")), "--qps", "10", "--burst-limit", "2")
	took := time.Since(began)
	asked := len(w.cluster.Audit(t, w.user.Name)[mark:])
	if least := time.Duration(asked-4) * time.Second / 10; took < least { // two at once, and what asks the server for the time
		t.Errorf("%d requests in %v, want %v at least", asked, took, least)
	}
}
