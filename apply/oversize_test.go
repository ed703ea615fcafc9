package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/internal/kubetest"
)

// crowded is a ConfigMap whose data fit into etcd, but not beside the names of
// their owners.
func crowded(value string, more ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crowded}\ndata:\n")
	for i := range 14000 {
		fmt.Fprintf(&b, "  a-rather-long-key-so-that-its-owner-takes-space-%05d: %s\n", i, value)
	}
	for _, line := range more {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// The API server doesn't apply what is too large to be stored with the owners of
// its fields, though it would take it by POST or PUT, as Helm 3 sends it.
func TestTooLargeToApply(t *testing.T) {
	s := begin(t)
	deployed := func(chart string) string {
		t.Helper()
		p := s.plan(chart)
		done := s.run(p)
		s.record("deployed", chart)
		if len(done) != 1 {
			t.Fatalf("%d changes", len(done))
		}
		return done[0].Warning + slices.Collect(p.Changes())[0].Reason
	}
	data := func(key string) any { return at(s.get("v1", "ConfigMap", "crowded"), "data."+key) }

	if got := deployed(crowded("x", "mine: a")); !strings.Contains(got, "too large") {
		t.Errorf("created: %q", got)
	}
	if got := managers(s.get("v1", "ConfigMap", "crowded")); got != "" {
		t.Fatalf("it is stored with its owners, %s: the test is about nothing", got)
	}
	s.patch("v1", "ConfigMap", "crowded", types.MergePatchType, `{"data":{"theirs":"t"}}`, "kubectl-edit")
	if got := deployed(crowded("b", "new: b")); !strings.Contains(got, "too large") {
		t.Errorf("updated: %q", got)
	}
	if data("mine") != nil || data("theirs") != "t" || data("new") != "b" {
		t.Errorf("mine %v, theirs %v, new %v", data("mine"), data("theirs"), data("new"))
	}
	from := len(s.c.Audit(t, s.agent))
	s.expect(s.deploy(crowded("b", "new: b")))
	if writes := kubetest.Writes(s.c.Audit(t, s.agent)[from:]); len(writes) > 0 {
		t.Errorf("an unchanged object was written: %v", writes)
	}

	// When it gets smaller its owners are known again, and larger once more.
	small := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crowded}\ndata: {new: c, short: s}\n"
	s.deploy(small)
	s.deploy(small)
	if got := managers(s.get("v1", "ConfigMap", "crowded")); !strings.Contains(got, "helm/") {
		t.Errorf("managers: %q", got)
	}
	if data("theirs") != "t" || data("new") != "c" {
		t.Errorf("theirs %v, new %v", data("theirs"), data("new"))
	}
	if got := deployed(crowded("z")); !strings.Contains(got, "too large") {
		t.Errorf("updated: %q", got)
	}
	if data("short") != nil || data("theirs") != "t" {
		t.Errorf("short %v, theirs %v", data("short"), data("theirs"))
	}
}

// What is too large in any case is an error at once.
func TestTooLargeAltogether(t *testing.T) {
	s := begin(t)
	big := strings.Repeat("0123456789abcdef", 1000)
	var items []string
	for i := range 110 {
		items = append(items, fmt.Sprintf("k%d: %s", i, big))
	}
	err := s.refuse(crowded("x", items...)) // more than a ConfigMap may have
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("got %.300v", err)
	}
}
