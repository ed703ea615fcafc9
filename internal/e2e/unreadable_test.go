package e2e

import (
	"testing"

	"deployer/internal/kubetest"
)

// An uninstall that can't read an object keeps the records: without them nobody would find the
// object again.
func TestUninstallKeepsTheRecordsOfWhatItCannotRead(t *testing.T) {
	w := newWorld(t)
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
	w.ok("install", "x", w.chart(configMap("a", "1"), service))
	other := *w
	other.user = w.cluster.User(t, w.ns)
	other.user.Allow(t, w.ns, kubetest.Rule("", "*", "configmaps", "secrets"), kubetest.Rule("coordination.k8s.io", "*", "leases"))
	other.kubeconfig = other.user.Kubeconfig(t, w.ns)
	r := other.exits(1, "uninstall", "x")
	w.says(r, "stderr", "Deleting failed: Service/"+w.ns+"/s", "there is no permission to read it")
	w.statuses("x", "failed")
	w.must("services", "s")
	w.ok("uninstall", "x")
	if w.get("services", "s") != nil {
		t.Error("the Service is left")
	}
}
