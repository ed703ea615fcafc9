package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestThousandUnchangedObjects holds the upgrade that changes nothing of a
// thousand objects to forty requests, with those for records and the lock, and
// to no write but theirs (S98).
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
