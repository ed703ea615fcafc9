package e2e

import (
	"path/filepath"
	"testing"

	"deployer/internal/kubetest"
)

// An uninstall that can't read an object doesn't begin. If it is told to go on nevertheless, it keeps
// the records: without them nobody would find the object again.
func TestUninstallKeepsTheRecordsOfWhatItCannotRead(t *testing.T) {
	w := newWorld(t)
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
	w.ok("install", "x", w.chart(configMap("a", "1"), service))
	other := w.onlyIn(kubetest.Rule("", "*", "configmaps", "secrets"), kubetest.Rule("coordination.k8s.io", "*", "leases"))
	r := other.exits(3, "uninstall", "x")
	w.says(r, "stderr", "Service/"+w.ns+"/s", "no permission to get services in namespace "+w.ns)
	w.statuses("x", "deployed")
	w.must("configmaps", "a")
	for _, args := range [][]string{{"plan", "--uninstall", "x", "--detailed-exitcode"}, {"plan", "--uninstall", "x", "--out", filepath.Join(w.TempDir(), "x.plan")}, {"uninstall", "x", "--dry-run"}} {
		r = other.exits(3, args...)
		w.says(r, "stdout", "= Service/"+w.ns+"/s +keep: there is no permission to read it", "not verified: no permission to get services in namespace "+w.ns)
		w.says(r, "stderr", "Service/"+w.ns+"/s .*: forbidden: no permission to get services in namespace "+w.ns)
	}
	reader := w.onlyIn(kubetest.Rule("", "get,list", "configmaps", "secrets", "services"))
	w.says(reader.ok("plan", "--uninstall", "x"), "stdout", "not verified: no permission to delete services in namespace "+w.ns)

	r = other.exits(1, "uninstall", "x", "--gate", "best-effort")
	w.says(r, "stderr", "Deleting failed: Service/"+w.ns+"/s", "there is no permission to read it")
	w.statuses("x", "failed")
	w.must("services", "s")
	w.ok("uninstall", "x")
	if w.get("services", "s") != nil {
		t.Error("the Service is left")
	}
}
