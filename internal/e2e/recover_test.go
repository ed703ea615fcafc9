package e2e

import (
	"net/http"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/helmtest"
)

// TestRecoverPlansNothing fails if recover tells of a plan that is made again: it has none.
func TestRecoverPlansNothing(t *testing.T) {
	w := newWorld(t)
	w.struck(w.proxied(), fate{when: after, dies: true, at: func(_ int, c call) bool { return c.write() && c.method == http.MethodPatch }},
		syscall.SIGKILL, "install", "x", w.chart(configMap("a", "1")))
	r := w.ok("recover", "x")
	w.says(r, "stdout", "revision 1 was left pending-install by .* recorded as failed now")
	if r.err != "" {
		t.Errorf("it says more:\n%s", r)
	}
	w.statuses("x", "failed")
}

// What was recorded before something stopped it is told, too.
func TestRecoverTellsWhatItDidBeforeItFailed(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	w.struck(p, fate{when: after, dies: true, at: func(_ int, c call) bool { return c.write() && c.method == http.MethodPatch }},
		syscall.SIGKILL, "install", "x", w.chart(configMap("a", "1")))
	first := w.must("secrets", "sh.helm.release.v1.x.v1")
	second := first.DeepCopy()
	second.SetName("sh.helm.release.v1.x.v2")
	second.SetUID("")
	second.SetResourceVersion("")
	labels := second.GetLabels()
	labels["version"], labels["status"] = "2", "pending-upgrade" // its content says 1
	second.SetLabels(labels)
	if _, err := w.in("secrets").Create(w.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := w.exits(1, "recover", "x")
	w.says(r, "stdout", "revision 1 was left pending-install by .* recorded as failed now")
	w.says(r, "stderr", "holds revision 1")
}

// TestHelmRollbackAfterAKilledUpgrade fails if a revision that Helm left pending keeps away the next run although `helm rollback`
// has gone past it: Helm's own upgrade only looks at the latest one.
func TestHelmRollbackAfterAKilledUpgrade(t *testing.T) {
	w := newWorld(t)
	w.helm("install", "x", w.chart(configMap("a", "1")))
	killed, done := w.command(helmtest.Helm3(t), "upgrade", "x", w.endless())
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	w.waiting()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	done(killed.Wait())
	w.statuses("x", "deployed", "pending-upgrade")
	w.exits(5, "upgrade", "x", w.chart(configMap("a", "2")))
	w.helm("rollback", "x", "1")
	w.ok("upgrade", "x", w.chart(configMap("a", "2")))
	w.statuses("x", "superseded", "failed", "superseded", "deployed")
}
