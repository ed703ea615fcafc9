package e2e

import (
	"testing"

	"deployer/testcharts"
)

// The values of the three releases of the story.
var (
	second = []string{"--set", "containers={backend,frontend}", "--set", "hook.fail=true"}
	third  = []string{"--set", "containers={app,proxy}", "--set", "hook.fail=false"}
)

// TestIncorrectUpdate is the story that deployer was written for: a release
// renames its containers and fails; nothing of it stays.
func TestIncorrectUpdate(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "rename")

	w.ok("install", "app", chart)
	w.containers("app", "main")

	r := w.exits(1, append([]string{"upgrade", "app", chart}, second...)...)
	w.says(r, "stderr", `migrate`, `deployer rollback app 1`)
	w.containers("app", "backend", "frontend")
	w.statuses("app", "deployed", "failed")

	w.ok(append([]string{"upgrade", "app", chart}, third...)...)
	w.containers("app", "app", "proxy")
	w.statuses("app", "superseded", "failed", "deployed")

	w.ok("rollback", "app", "1")
	w.containers("app", "main")
	w.statuses("app", "superseded", "failed", "superseded", "deployed")

	w.ok("uninstall", "app")
	w.nothingLeft("Job/migrate")
}

// helmStory plays the same releases with Helm 3.
func helmStory(w *world, chart string) {
	w.Helper()
	w.helm("install", "app", chart)
	w.helmExits(1, append([]string{"upgrade", "app", chart}, second...)...)
	w.helm(append([]string{"upgrade", "app", chart}, third...)...)
}

// TestHealsHelmOrphans: the state that Helm 3 made of the story
// is put right by the first release of deployer, without any change of values.
func TestHealsHelmOrphans(t *testing.T) {
	w := newWorld(t)
	chart := testcharts.Dir(t, "rename")
	helmStory(w, chart)
	w.patch("deployments", "app", "kubectl-label", `{"metadata":{"labels":{"team":"blue"}}}`)

	plan := w.ok(append([]string{"plan", "app", chart}, third...)...)
	w.says(plan, "stdout", `name="backend"`, `name="frontend"`, `from revision 2`)
	w.containers("app", "app", "proxy", "backend", "frontend")

	w.ok(append([]string{"upgrade", "app", chart}, third...)...)
	w.containers("app", "app", "proxy")
	if got := w.must("deployments", "app").GetLabels()["team"]; got != "blue" {
		t.Errorf("label team of Deployment/app = %q, want %q: somebody else has set it", got, "blue")
	}
}

// TestRollbackHealsHelmOrphans: a rollback removes the containers that a failed release of Helm has left.
func TestRollbackHealsHelmOrphans(t *testing.T) {
	w := newWorld(t)
	helmStory(w, testcharts.Dir(t, "rename"))
	w.ok("rollback", "app", "1")
	w.containers("app", "main")
}
