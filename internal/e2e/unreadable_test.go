package e2e

import (
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

	r = other.exits(1, "uninstall", "x", "--gate", "best-effort")
	w.says(r, "stderr", "Deleting failed: Service/"+w.ns+"/s", "there is no permission to read it")
	w.statuses("x", "failed")
	w.must("services", "s")
	w.ok("uninstall", "x")
	if w.get("services", "s") != nil {
		t.Error("the Service is left")
	}
}
