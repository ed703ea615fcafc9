package apply_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"deployer/apply"
)

// TestAtScale prints what releases of many objects cost. It runs when
// DEPLOYER_TEST_OBJECTS says how many.
func TestAtScale(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("DEPLOYER_TEST_OBJECTS"))
	if n == 0 {
		t.Skip("set DEPLOYER_TEST_OBJECTS to measure")
	}
	s := begin(t)
	s.opts.Parallel, _ = strconv.Atoi(os.Getenv("DEPLOYER_TEST_PARALLEL"))
	var b strings.Builder
	for i := range n / 4 {
		fmt.Fprintf(&b, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {k: v%d}\n", i, i)
		fmt.Fprintf(&b, "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s%d}\n", i)
		fmt.Fprintf(&b, "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: w%d}\nspec: {selector: {app: a%d}, ports: [{port: 80}]}\n", i, i)
		fmt.Fprintf(&b, "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r%d}\nrules: [{apiGroups: ['']	, resources: [pods], verbs: [get]}]\n", i)
	}
	chart := strings.ReplaceAll(b.String(), "\t", "")
	quarter := strings.ReplaceAll(chart, "data: {k:", "data: {j: x, k:")
	one := strings.Replace(quarter, "v7}", "v8}", 1)
	step := func(name string, do func()) {
		from := len(s.c.Audit(t, s.agent))
		began := time.Now()
		do()
		took := time.Since(began)
		t.Logf("%-28s %6.2fs %5d requests", name, took.Seconds(), len(s.c.Audit(t, s.agent))-from)
	}
	var p *apply.Plan
	req := s.request(chart)
	step("install: plan", func() { p, _ = s.tryPlan(req) })
	step("install: run", func() { s.run(p) })
	s.record("deployed", chart)
	step("no-op (with parsing)", func() { s.deploy(chart) })
	s.marks = nil
	step("no-op without marks", func() { s.deploy(chart) })
	step("a quarter changed", func() { s.deploy(quarter) })
	step("one changed", func() { s.deploy(one) })
	step("uninstall", func() { s.deploy("") })
	s.past, s.marks = nil, nil
	s.helm3Install(chart)
	s.record("deployed", chart)
	step("takeover from Helm 3", func() { s.deploy(chart) })
}
