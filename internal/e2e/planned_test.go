package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestServerWarningsInPlans holds that what the API server warns of is part of the
// plan, with the object, and is told once when the plan is carried out.
func TestServerWarningsInPlans(t *testing.T) {
	w := newWorld(t)
	chart := w.chart(`apiVersion: apps/v1
kind: Deployment
metadata: {name: old}
spec:
  replicas: 0
  selector: {matchLabels: {app: old}}
  template:
    metadata: {labels: {app: old}}
    spec:
      nodeSelector: {beta.kubernetes.io/arch: amd64}
      containers: [{name: app, image: nginx}]
`)
	const words = "spec.template.spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14"
	p := w.plan("x", chart)
	if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0].Text, words) || p.Warnings[0].Object != "Deployment/"+w.ns+"/old" {
		w.Errorf("warnings %+v, want one that begins with %q", p.Warnings, words)
	}
	if r := w.ok("plan", "x", chart); !strings.Contains(r.out, words) || r.err != "" {
		w.Errorf("the warning isn't in the plan, or told besides:\n%s", r)
	}
	if r := w.ok("install", "x", chart); len(regexp.MustCompile(`(?m)^\S+ warn .*`+regexp.QuoteMeta(words)).FindAllString(r.err, -1)) != 1 {
		w.Errorf("the warning isn't told once:\n%s", r)
	}
}

// TestPlansOnlyRead holds that no plan writes: not of a release with fields to take
// over, hooks, objects to make anew and to delete, nor into a namespace that isn't
// there yet. Locks and records are writes too.
func TestPlansOnlyRead(t *testing.T) {
	w := newWorld(t)
	hook := hookJob("h", "pre-upgrade,pre-install,pre-rollback,pre-delete", "before-hook-creation", false)
	before := w.chart(deployment("d", "d", "  replicas: 0"), configMap("gone", "1"), configMap("a", "1"), hook)
	after := w.chart(deployment("d", "other", "  replicas: 0"), configMap("a", "2"), configMap("new", "1"), hook)
	w.helm("install", "x", before, "--no-hooks")
	w.helm("upgrade", "x", before, "--no-hooks", "--description", "again")
	w.patch("configmaps", "a", "kubectl-edit", `{"data":{"key":"3"}}`)
	mark := w.mark()
	for _, args := range [][]string{
		{"x", after, "--allow-recreate"}, {"x", after, "--allow-recreate", "--conflicts", "yield"}, {"--rollback", "x", "1"}, {"--uninstall", "x"},
		{"new", after, "-n", w.ns + "-new", "--create-namespace"},
	} {
		w.ok(append([]string{"plan"}, args...)...)
	}
	for _, dry := range [][]string{
		{"upgrade", "x", after, "--allow-recreate"}, {"rollback", "x", "1"}, {"uninstall", "x"}, {"install", "y", w.chart(configMap("yy", "1"))},
	} {
		w.ok(append(dry, "--dry-run=server")...)
	}
	w.exits(2, "plan", "x", "--drift")
	w.ok("explain", "x", "ConfigMap/a")
	w.says(w.ok("plan", "x", after), "stdout", "not verified: hooks run first: spec.selector")
	w.exits(3, "plan", "x", w.chart(deployment("d", "other", "  replicas: 0"))) // the selector of a Deployment can't be changed
	for _, e := range w.allWrites(mark) {
		w.Errorf("a plan has written: %v", e)
	}
}
