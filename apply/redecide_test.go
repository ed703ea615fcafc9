package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// foos are several objects of a kind, f-0 and so on.
func foos(kind, n int, spec string) string {
	var out string
	for i := range n {
		out += strings.Replace(foo(kind, spec), "{name: f}", fmt.Sprintf("{name: f-%d}", i), 1)
	}
	return out
}

// only are the requests about a resource with a verb.
func only(events []kubetest.AuditEvent, resource, verb string) []kubetest.AuditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e kubetest.AuditEvent) bool { return e.Object.Resource != resource || e.Verb != verb })
}

// Objects whose kind comes with the release aren't looked for one by one, and each definition is read
// once, not once for each object.
func TestObjectsOfNewKindsAreNotRead(t *testing.T) {
	s := begin(t)
	const kinds, n = 3, 6
	s.dropCRDs(kinds)
	var chart string
	for kind := range kinds {
		s.crds += definition(kind, "")
		chart += foos(kind, n, "size: 1")
	}
	asked := s.requests("", func() { s.deploy(chart) })
	for kind := range kinds {
		resource := fmt.Sprintf("foos%d", kind)
		if reads := append(only(asked, resource, "get"), only(asked, resource, "list")...); len(reads) != 0 {
			t.Errorf("%d new %s were read: %v", n, resource, reads)
		}
		if dryRuns := slices.DeleteFunc(only(asked, resource, "patch"), func(e kubetest.AuditEvent) bool { return !e.DryRun() }); len(dryRuns) != n {
			t.Errorf("%d dry runs of %d new %s: %v", len(dryRuns), n, resource, dryRuns)
		}
		if s.get(s.ns+".example.com/v1", fmt.Sprintf("Foo%d", kind), fmt.Sprintf("f-%d", n-1)) == nil {
			t.Errorf("%s weren't created", resource)
		}
	}
	if gets := only(asked, "customresourcedefinitions", "get"); len(gets) > kinds {
		t.Errorf("%d definitions were read %d times: %v", kinds, len(gets), gets)
	}
	s.expect(s.deploy(chart))
}

// Objects of a new kind that somebody makes between plan and run are found although they aren't read
// before. Those of others aren't taken over, and nothing is written. Those of the release are updated.
// Somebody has made the kind, too.
func TestObjectsOfNewKindsThatSomebodyMade(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	const n = 5
	chart := foos(0, n, "size: 1")
	p, first := s.plan(chart), s.plan(chart)
	if err := s.planner(first).Run(bg, first.CRDs, func(*apply.Change) {}); err != nil {
		t.Fatal(err)
	}
	objects := s.manifests(foos(0, n, "size: 2"))
	s.post(objects[2].Object, "somebody")
	s.post(s.owned(objects[3].Object), "helm")
	run := func(changes []apply.Change) (writes []kubetest.AuditEvent, err error) {
		asked := s.requests("foos0", func() { err = s.planner(p).Run(bg, changes, func(*apply.Change) {}) })
		return kubetest.Writes(asked), err
	}
	writes, err := run(p.CRDs)
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Rejections) != 1 || rejected.Rejections[0].ID.Name != "f-2" || rejected.When != apply.AfterChanges {
		t.Errorf("got %v, want a late rejection of f-2", err)
	}
	if len(writes) != 0 {
		t.Errorf("written after a rejection: %v", writes)
	}
	if err := s.client(s.ns+".example.com/v1", "Foo0").Delete(bg, "f-2", deleteNow); err != nil {
		t.Fatal(err)
	}
	if writes, err = run(p.Waves[0].Changes); err != nil || len(writes) < n {
		t.Errorf("without the object of others: %v, %v", writes, err)
	}
	for _, m := range objects {
		id := kube.IDOf(m.Object)
		if got := at(s.get(s.ns+".example.com/v1", "Foo0", id.Name), "spec.size"); fmt.Sprint(got) != "1" {
			t.Errorf("%s has size %v, want 1", id, got)
		}
	}
}
