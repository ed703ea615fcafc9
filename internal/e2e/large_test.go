package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// large renders a ConfigMap of almost the size that the API server takes, which
// doesn't get smaller when it is packed.
func large(name string) string {
	noise := make([]byte, 600<<10)
	seed := [32]byte{}
	copy(seed[:], name)
	_, _ = rand.NewChaCha8(seed).Read(noise)
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {x: %s}\n", name, base64.StdEncoding.EncodeToString(noise))
}

// TestReleaseOfSeveralSecrets is one whose record one Secret doesn't hold. The real
// Helm lists it, says who can read it, and changes nothing of it.
func TestReleaseOfSeveralSecrets(t *testing.T) {
	w := newWorld(t)
	w.ok("install", "x", w.chart(large("a"), large("b")))
	data := func() string {
		return fmt.Sprint(w.must("configmaps", "a").Object["data"], w.must("configmaps", "b").Object["data"])
	}
	before := data()
	if parts := w.parts(); parts < 2 {
		t.Fatalf("the record has %d parts", parts)
	}

	w.says(w.helm("list"), "stdout", `x\s.*deployed`)
	w.says(w.helm("history", "x"), "stdout", `only deployer can read it`)
	mark := w.mark()
	w.says(w.helmExits(1, "upgrade", "x", w.chart(configMap("a", "1"))), "stderr", `UseDeployer`)
	w.helmExits(1, "uninstall", "x")
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("Helm wrote objects: %v", writes)
	}

	w.ok("upgrade", "x", w.chart(configMap("a", "1")))
	w.says(w.helm("history", "x"), "stdout", `deployed`)
	// A rollback of Helm's that can't read its target leaves its record pending.
	w.says(w.helmExits(1, "rollback", "x", "1"), "stderr", `UseDeployer`)
	w.says(w.exits(5, "rollback", "x", "1"), "stderr", `--takeover-pending`)
	w.ok("rollback", "x", "1", "--takeover-pending")
	if data() != before {
		t.Error("after the rollback the objects aren't what they were")
	}
	w.ok("uninstall", "x")
	w.nothingLeft()
	if parts := w.parts(); parts > 0 {
		t.Errorf("%d parts of records are left", parts)
	}
}

// parts counts the Secrets that records are continued in.
func (w *world) parts() int {
	w.Helper()
	parts, err := w.in("secrets").List(w.Context(), metav1.ListOptions{LabelSelector: "owner=deployer"})
	if err != nil {
		w.Fatal(err)
	}
	return len(parts.Items)
}
