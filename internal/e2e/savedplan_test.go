package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// saved makes a plan file of the arguments of plan.
func (w *world) saved(args ...string) string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "x.plan")
	w.ok(append([]string{"plan", "--out", file}, args...)...)
	return file
}

// TestSavedPlanKnowsAllRecords: a saved plan is spoiled by any record of the
// release that came, went, was made anew or says something else, and not by tests
// that were run.
func TestSavedPlanKnowsAllRecords(t *testing.T) {
	t.Parallel()
	const first = "sh.helm.release.v1.x.v1"
	remove := func(w *world) {
		if err := w.in("secrets").Delete(w.Context(), first, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		does func(w *world)
		says string
	}{
		"went": {remove, `with revision 1, superseded; it no longer exists`},
		"made anew": {func(w *world) {
			record := w.must("secrets", first)
			remove(w)
			record.SetUID("")
			record.SetResourceVersion("")
			if _, err := w.in("secrets").Create(w.Context(), record, metav1.CreateOptions{}); err != nil {
				w.Fatal(err)
			}
		}, `with revision 1, superseded; it was deleted and recreated`},
		"other status": {func(w *world) {
			w.patch("secrets", first, "kubectl-label", `{"metadata":{"labels":{"status":"failed"}}}`)
		}, `with revision 1, superseded; it is failed`},
		"tests were run": {func(w *world) { w.ok("test", "x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tested := hookJob("test", "test", "hook-succeeded", false)
			w.ok("install", "x", w.chart(configMap("a", "1"), tested))
			w.ok("upgrade", "x", w.chart(configMap("a", "2"), tested))
			file := w.saved("x", w.chart(configMap("a", "3"), tested))
			c.does(w)
			if c.says == "" {
				w.ok("apply", file)
				return
			}
			mark := w.mark()
			r := w.exits(4, "apply", file)
			w.says(r, "stderr", "the plan no longer fits", c.says)
			if writes := w.writes(mark); len(writes) > 0 {
				t.Errorf("it has written: %v", writes)
			}
		})
	}
}

// TestSavedPlanAfterADeadRun has a plan that is made while the latest record is that of a dead run: that it is recorded
// as failed meanwhile, as by the run that carries the plan out, doesn't matter.
func TestSavedPlanAfterADeadRun(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]struct {
		at   func(int, call) bool
		args func(*world) []string
	}{
		"upgrade":   {writes("PATCH", "/configmaps/a"), func(w *world) []string { return []string{"upgrade", "x", w.chart(configMap("a", "2"))} }},
		"uninstall": {writes("DELETE", "/configmaps/a"), func(*world) []string { return []string{"uninstall", "x"} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("install", "x", w.chart(configMap("a", "1")))
			p := w.proxied()
			w.struck(p, fate{when: before, dies: true, at: dies.at}, syscall.SIGKILL, dies.args(w)...)
			file := w.saved("x", w.chart(configMap("a", "3")))
			w.ok("apply", file)
			w.value("a", "3")
		})
	}
}

// TestSavedPlanGivesBack has what a failed run has adopted, and plans made after it
// and carried out from their files.
func TestSavedPlanGivesBack(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*strangers) []string{
		"upgrade":   func(s *strangers) []string { return []string{"x", s.chart(configMap("own", "2"))} },
		"rollback":  func(*strangers) []string { return []string{"--rollback", "x", "1"} },
		"uninstall": func(*strangers) []string { return []string{"--uninstall", "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStrangers(newWorld(t))
			s.ok("install", "x", s.chart(configMap("own", "0")))
			s.exits(1, s.taking("upgrade", "x", s.wanting(configMap("new", "1"), fails()))...)
			file := s.saved(next(s)...)
			s.says(s.ok("plan", "--show", file), "stdout", `ConfigMap/`+s.ns+`/shared.*given back to release `+s.ns+`/other`,
				`metadata.annotations."meta.helm.sh/release-name": "?x"? -> "?other"?`)
			s.ok("apply", file)
			s.asBefore("after the saved plan")
			s.there("configmaps", map[string]bool{"new": false, "own": name != "uninstall"})
		})
	}
	t.Run("made anew since", func(t *testing.T) {
		w := newWorld(t)
		w.create("configmaps", "kubectl-create", configMap("cm", "theirs"))
		w.exits(1, "upgrade", "--install", "x", w.chart(configMap("cm", "ours"), fails()), "--take-ownership")
		file := w.saved("--uninstall", "x")
		if err := w.in("configmaps").Delete(w.Context(), "cm", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		made := w.create("configmaps", "kubectl-create", configMap("cm", "new"))
		w.says(w.exits(4, "apply", file), "stderr", "ConfigMap/"+w.ns+"/cm: planned give-back")
		w.sameJSONValue("ConfigMap/cm", substance(made), substance(w.must("configmaps", "cm")))
	})
	t.Run("adopts and fails", func(t *testing.T) {
		s := newStrangers(newWorld(t))
		s.ok("install", "x", s.chart(configMap("own", "0")))
		file := s.saved(s.taking("x", s.wanting(fails()))...)
		s.exits(6, "apply", file, "--atomic")
		s.asBefore("after the way back")
		s.there("configmaps", map[string]bool{"own": true})
	})
}
