package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRefusedRestore has an object whose former values the server doesn't take
// back: the rest is given back, and that is told.
func TestRefusedRestore(t *testing.T) {
	w := newWorld(t)
	w.create("configmaps", "kubectl-create", configMap("cm", "theirs"))
	w.exits(1, "install", "x", w.chart(configMap("cm", "ours")+"immutable: true\n", fails()), "--take-ownership")
	w.says(w.ok("plan", "--uninstall", "x"), "stdout", `ConfigMap/`+w.ns+`/cm .*not completely: its fields stay as this release left them: .*immutable`)
	r := w.ok("uninstall", "x")
	w.says(r, "stderr", `ConfigMap/`+w.ns+`/cm: given back, but not completely: its fields stay as this release left them: .*immutable`)
	w.notOurs("cm")
	if got := field(w.must("configmaps", "cm"), "data.key"); got != "ours" {
		t.Errorf("ConfigMap/cm has key = %v, want ours", got)
	}
}

// TestRefusedOnce: one refusal doesn't cost the former values, which are
// recorded nowhere else: of what is restored, and of whose it is.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	for nth, what := range []string{"values", "owners"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			was := w.create("configmaps", "kubectl-create", configMap("cm", "theirs"))
			w.exits(1, "install", "x", w.chart(configMap("cm", "ours"), fails()), "--take-ownership")
			p := w.proxied()
			writes := 0
			p.failing(func(_ int, c call) int {
				if !c.write() || !strings.Contains(c.path, "/configmaps/cm") {
					return 0
				}
				writes++
				return when(writes == nth+1, http.StatusForbidden)
			})
			r := w.ok("uninstall", "x")
			p.failing(nil)
			is := w.must("configmaps", "cm")
			w.sameJSONValue("ConfigMap/cm", substance(was), substance(is))
			if got, want := managers(is), managers(was); got != want {
				t.Errorf("fields of ConfigMap/cm belong to %s, want %s", got, want)
			}
			if t.Failed() || strings.Contains(r.err, "not completely") {
				t.Errorf("it was refused once:\n%s", r)
			}
		})
	}
}

// TestOthersFieldsStayWhereMigrationIsRefused: a policy refuses to let an object of
// another release change hands, and would permit the apply after it, which would remove
// what only the other release states.
func TestOthersFieldsStayWhereMigrationIsRefused(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "other", w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {key: of other, extra: '1'}\n"))
	was := w.must("configmaps", "shared")
	chart := w.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {key: taken}\n")
	p := w.proxied()
	refused := false
	p.failing(func(_ int, c call) int {
		if refused || !c.write() || !strings.Contains(c.path, "/configmaps/shared") {
			return 0
		}
		refused = true
		return http.StatusUnprocessableEntity // for good, unlike a 403, which is asked again
	})
	r := w.exits(1, "install", "x", chart, "--take-ownership-from", w.ns+"/other")
	p.failing(nil)
	if !refused {
		t.Fatalf("nothing was refused:\n%s", r)
	}
	w.sameJSONValue("ConfigMap/shared", substance(was), substance(w.must("configmaps", "shared")))
}

// notOurs checks that a ConfigMap has no marks of the release and no fields of ours.
func (w *world) notOurs(name string) {
	w.Helper()
	cm := w.must("configmaps", name)
	if a := cm.GetAnnotations(); a["meta.helm.sh/release-name"] != "" || cm.GetLabels()["app.kubernetes.io/managed-by"] != "" {
		w.Errorf("ConfigMap/%s has marks of the release: %v %v", name, a, cm.GetLabels())
	}
	if owners := managers(cm); strings.Contains(owners, "helm (") {
		w.Errorf("fields of ConfigMap/%s belong to\n%s", name, owners)
	}
}

// TestLargeFormerValues: what is recorded of adopted objects has limits: of
// one object beyond 64 KiB, and of those beyond 1 MiB together, only the marks of
// ownership are given back, and plan and run say so.
func TestLargeFormerValues(t *testing.T) {
	t.Parallel()
	large := func(name, word string, size int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %q}\n", name, strings.Repeat(word, size/len(word)))
	}
	for _, c := range []struct {
		name        string
		count, size int
		restored    int // the first so many, by name
	}{
		{"just small enough", 1, 63 << 10, 1},
		{"one too large", 1, 65 << 10, 0},
		{"too many", 18, 62 << 10, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var templates []string
			for i := range c.count {
				name := fmt.Sprintf("c%02d", i)
				w.create("configmaps", "kubectl-create", large(name, "theirs,", c.size))
				templates = append(templates, large(name, "ours,", 4<<10))
			}
			w.exits(1, "install", "x", w.chart(append(templates, fails())...), "--take-ownership")
			plan := w.plan("--uninstall", "x")
			r := w.ok("uninstall", "x")
			for i := range c.count {
				name, want := fmt.Sprintf("c%02d", i), "ours,"
				if i < c.restored {
					want = "theirs,"
				}
				w.notOurs(name)
				if got := fmt.Sprint(field(w.must("configmaps", name), "data.key")); !strings.HasPrefix(got, want) {
					t.Errorf("ConfigMap/%s begins with %.10s, want %s", name, got, want)
				}
				const told = "its former fields were too large to record, so its fields stay as they are"
				if said := strings.Contains(plan.reason("ConfigMap/"+w.ns+"/"+name), told); said == (i < c.restored) {
					t.Errorf("the plan says of ConfigMap/%s that it stays as it is: %v", name, said)
				}
			}
			if said := strings.Contains(r.err, "too large to record"); said == (c.restored == c.count) {
				t.Errorf("it tells of values that aren't given back: %v\n%s", said, r)
			}
		})
	}
}

// reason is why the plan does something to an object; empty when it does nothing.
func (p shownPlan) reason(object string) string {
	for _, stage := range p.Stages {
		for _, o := range stage.Objects {
			if o.Object == object {
				return o.Reason
			}
		}
	}
	return ""
}
