package e2e

import (
	"strings"
	"testing"

	"deployer/internal/kubetest"
)

// TestDamagedRecord gives every command that reads it a record that can't be
// read: none passes over it in silence, and each names the Secret and the way out.
func TestDamagedRecord(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(configMap("a", "1"))
	w.ok("install", "x", chart)
	w.patch("secrets", "sh.helm.release.v1.x.v1", "somebody", `{"data":{"release":"Z2FyYmFnZQ=="}}`)
	mark := w.mark()
	for _, command := range []string{
		"upgrade x CHART", "upgrade --install x CHART", "install x CHART --replace", "rollback x 1", "uninstall x", "test x",
		"plan x CHART", "plan --rollback x 1", "plan --uninstall x",
		"status x", "get manifest x", "get values x", "get hooks x", "get notes x", "get metadata x", "get all x",
	} {
		r := w.try(deployerBinary, strings.Fields(strings.ReplaceAll(command, "CHART", chart))...)
		if r.code == 0 {
			t.Errorf("it passed over a damaged record:\n%s", r)
		}
		if !strings.HasPrefix(command, "install") { // which needs no record to refuse the name
			w.says(r, "stderr", `Secret/`+w.ns+`/sh\.helm\.release\.v1\.x\.v1 can't be read`, `kubectl -n `+w.ns+` delete secret sh\.helm\.release\.v1\.x\.v1`)
		}
	}
	// What they show is beside the record; nothing of it is downloaded.
	w.says(w.ok("list"), "stdout", `x\s.*deployed`)
	w.says(w.ok("history", "x"), "stdout", `1\s.*deployed`)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("objects were written: %v", writes)
	}

	// One that says about itself what can't be hides neither the others nor itself.
	w.ok("install", "y", chart, "--take-ownership-from", w.ns+"/x")
	w.patch("secrets", "sh.helm.release.v1.x.v1", "somebody", `{"metadata":{"labels":{"version":"7"}}}`)
	r := w.exits(1, "list")
	w.says(r, "stderr", `Secret/`+w.ns+`/sh\.helm\.release\.v1\.x\.v1`, `version="7"`)
	w.says(r, "stdout", `y\s.*deployed`)
	w.says(w.exits(1, "history", "x"), "stderr", `version="7"`)
}

// TestWithoutLeases deploys as somebody who may not use Leases: it works, with a
// warning, and a second run is kept away by the record alone.
func TestWithoutLeases(t *testing.T) {
	w := newWorld(t)
	poor := *w
	poor.user = w.cluster.User(t, w.ns, kubetest.Rule("", "get,list,create,update,delete", "secrets"),
		kubetest.Rule("", "*", "configmaps", "pods", "pods/log"), kubetest.Rule("batch", "*", "jobs"))
	poor.kubeconfig = poor.user.Kubeconfig(t, w.ns)
	r := poor.ok("install", "x", w.chart(configMap("a", "1")))
	w.says(r, "stderr", `you may not use Lease/`+w.ns+`/deployer-x`)

	first, done := poor.start("upgrade", "x", w.endless())
	w.waiting()
	r = poor.exits(5, "upgrade", "x", w.chart(configMap("a", "3")))
	w.says(r, "stderr", `another operation`, `pending-upgrade`, `--takeover-pending`)
	w.statuses("x", "deployed", "pending-upgrade")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	done(first.Wait())
	// The dead one was a process of this machine.
	poor.ok("upgrade", "x", w.chart(configMap("a", "4")))
	w.statuses("x", "superseded", "failed", "deployed")
	w.ok("uninstall", "x")
	w.nothingLeft("Job/endless")
}
