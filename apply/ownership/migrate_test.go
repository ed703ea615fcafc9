package ownership

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

func set(paths ...string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, p := range paths {
		var parts []any
		for _, x := range strings.SplitN(p, ".", 3) {
			parts = append(parts, x)
		}
		out.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return out
}

func update(manager, version string, paths ...string) Entry {
	by := FieldManager{Manager: manager, Operation: "Update", Time: time.Unix(1, 0)}
	return Entry{FieldManager: by, APIVersion: version, Set: set(paths...)}
}

func applied(manager, version string, paths ...string) Entry {
	e := update(manager, version, paths...)
	e.Operation = "Apply"
	return e
}

func show(entries []Entry) string {
	var out []string
	for _, e := range entries {
		var paths []string
		e.Set.Iterate(func(p fieldpath.Path) { paths = append(paths, fields.String(p)) })
		sort.Strings(paths)
		out = append(out, fmt.Sprintf("%s %s: %s", e.Label(), e.APIVersion, strings.Join(paths, " ")))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func TestMigrate(t *testing.T) {
	all := set("metadata.finalizers", "metadata.annotations.own", "metadata.annotations.x", "spec.a", "spec.b", "spec.c", "spec.d", "spec.replicas", "status.x")
	served := func(v string) bool { return v == "apps/v1" }
	scale := update("kube-controller-manager", "apps/v1", "spec.replicas")
	scale.Subresource = "scale"
	for name, c := range map[string]struct {
		state Migration
		want  string
	}{
		"nothing to do": {
			Migration{Entries: []Entry{applied("helm", "apps/v1", "spec.a"), update("x", "apps/v1", "spec.b")}, Desired: set("spec.a")},
			"unchanged",
		},
		"one name, two versions": {
			Migration{Entries: []Entry{update("helm", "extensions/v1beta1", "spec.a"), update("helm", "apps/v1", "spec.b")}, Desired: set("spec.a")},
			"helm (Apply) apps/v1: spec.a spec.b",
		},
		"several names": {
			Migration{Entries: []Entry{update("Helm", "apps/v1", "spec.a"), update("terraform-provider-helm_v2.9", "apps/v1", "spec.b"), update("nginx-controller", "apps/v1", "spec.c")}, Desired: set("spec.a")},
			"helm (Apply) apps/v1: spec.a\nnginx-controller (Update) apps/v1: spec.c\nterraform-provider-helm_v2.9 (Update) apps/v1: spec.b",
		},
		"a program that contains Helm and has applied": {
			Migration{Entries: []Entry{applied("helm-controller", "apps/v1", "spec.a", "spec.b")}, Desired: set("spec.a")},
			"helm (Apply) apps/v1: spec.a spec.b",
		},
		"a program that contains Helm, as itself": {
			Migration{Entries: []Entry{update("helm-controller", "apps/v1", "spec.c", "metadata.finalizers")}, Desired: set("spec.a"), Declared: set("spec.b")},
			"helm (Apply) apps/v1: spec.b\nhelm-controller (Update) apps/v1: metadata.finalizers spec.c",
		},
		"a program that contains Helm, as both": {
			Migration{Entries: []Entry{update("helm-controller", "apps/v1", "spec.a", "spec.b", "metadata.finalizers", "metadata.annotations.own", "metadata.annotations.x", "metadata.annotations."+kube.ReleaseNameAnnotation)},
				Desired: set("spec.a", "metadata.annotations.x")},
			"helm (Apply) apps/v1: metadata.annotations.x spec.a spec.b\nhelm-controller (Update) apps/v1: metadata.annotations.\"meta.helm.sh/release-name\" metadata.annotations.own metadata.finalizers",
		},
		"adopting from a program that contains Helm": {
			Migration{Entries: []Entry{applied("helm-controller", "apps/v1", "spec.a", "spec.b", "metadata.finalizers")}, Desired: set("spec.a"), Terms: Terms{Adopting: true}},
			"helm (Apply) apps/v1: spec.a\nhelm-controller (Apply) apps/v1: metadata.finalizers",
		},
		"ambiguousManagers by history": {
			Migration{Entries: []Entry{update("before-first-apply", "apps/v1", "spec.a", "spec.b", "spec.c")}, Desired: set("spec.a"), Declared: set("spec.b")},
			"before-first-apply (Update) apps/v1: spec.c\nhelm (Apply) apps/v1: spec.a spec.b",
		},
		"a person keeps what the chart never said": {
			Migration{Entries: []Entry{applied("helm", "apps/v1", "spec.a"), update("kubectl-edit", "apps/v1", "spec.b", "spec.c")}, Desired: set("spec.a"), Declared: set("spec.b")},
			"helm (Apply) apps/v1: spec.a spec.b\nkubectl-edit (Update) apps/v1: spec.c",
		},
		"history that is not live is nobody's": {
			Migration{Entries: []Entry{applied("helm", "apps/v1", "spec.a")}, Desired: set("spec.a"), Declared: set("spec.gone")},
			"unchanged",
		},
		"replicas are left": {
			Migration{Entries: []Entry{applied("helm", "apps/v1", "spec.a", "spec.replicas"), scale}, Desired: set("spec.a"), Relinquished: set("spec.replicas")},
			"helm (Apply) apps/v1: spec.a\nkube-controller-manager (Update, scale) apps/v1: spec.replicas",
		},
		"adoption takes only what is wanted": {
			Migration{Entries: []Entry{update("kubectl-create", "apps/v1", "spec.a", "spec.b"), update("helm", "apps/v1", "spec.c")}, Desired: set("spec.a"), Terms: Terms{Adopting: true}},
			"helm (Apply) apps/v1: spec.a\nkubectl-create (Update) apps/v1: spec.b",
		},
		"a version that is gone": {
			Migration{Entries: []Entry{applied("helm", "apps/v1beta1", "spec.a"), update("x", "apps/v1beta1", "spec.b")}, Desired: set("spec.a")},
			"helm (Apply) apps/v1: spec.a\nx (Update) apps/v1: spec.b",
		},
		"what is left of an entry of a version that is gone keeps its owner": {
			Migration{Entries: []Entry{applied("helm", "apps/v1", "spec.a"), update("kubectl-edit", "apps/v1beta1", "spec.b", "spec.c")}, Desired: set("spec.a"), Declared: set("spec.b")},
			"helm (Apply) apps/v1: spec.a spec.b\nkubectl-edit (Update) apps/v1: spec.c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.state.APIVersion, c.state.Live, c.state.Served = "apps/v1", all, served
			f := Migrate(c.state)
			got := "unchanged"
			if f.Changed {
				got = show(f.Entries)
			}
			if got != c.want {
				t.Errorf("Migrate(%s)\n%s\nwant\n%s", show(c.state.Entries), got, c.want)
			}
		})
	}
}

// FuzzMigrate: no path that a manager of Helm's owns is lost unless it isn't live;
// controllers' entries don't change, nor people's metadata; what is wanted and
// live stays somebody's; a second fold changes nothing.
func FuzzMigrate(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := arbitrary(rand.New(rand.NewPCG(seed, 2)))
		folded := Migrate(s)
		for _, e := range s.Entries {
			after := show(folded.Entries)
			lost := e.Set.Difference(folded.Ours)
			switch class := e.Class(); {
			case e.isOurApply():
			case class == Helm && !s.Adopting && !lost.Intersection(s.Live).Difference(s.Relinquished).Empty():
				t.Fatalf("lost %s of %s:\n%s", lost, show(s.Entries), after)
			case class == Controller && !strings.Contains(after, show([]Entry{e})):
				t.Fatalf("%s changed:\n%s", show([]Entry{e}), after)
			case e.IsManual() && s.RevertManual && !s.Adopting && !WithoutMetadataAndStatus(e.Set).Intersection(s.Live).Difference(s.Relinquished).Difference(folded.Ours).Empty():
				t.Fatalf("%s is not reverted:\n%s", show([]Entry{e}), after)
			}
		}
		if s.Adopting && !folded.Ours.Difference(s.Desired).Empty() {
			t.Fatalf("%s became ours by adoption of %s", folded.Ours.Difference(s.Desired), show(s.Entries))
		}
		if left := folded.Ours.Intersection(s.Relinquished).Difference(s.Desired); !left.Empty() {
			t.Fatalf("%s became ours although relinquished", left)
		}
		s.Entries = folded.Entries
		if again := Migrate(s); again.Changed && again.Ours.Equals(folded.Ours) && len(again.From) == 0 {
			t.Fatalf("not settled: %s", show(again.Entries))
		}
	})
}

// arbitrary makes up who owns what of an object.
func arbitrary(random *rand.Rand) Migration {
	some := func() *fieldpath.Set {
		var picked []string
		for _, p := range []string{"spec.a", "spec.b.c", "spec.b.d", "metadata.labels.x", "metadata.labels.y", "data.k", "spec.replicas", "status.s"} {
			if random.IntN(2) == 0 {
				picked = append(picked, p)
			}
		}
		return set(picked...)
	}
	managers := []string{"helm", "Helm", "werf-2", "controller", "kubectl-edit", "kubectl-client-side-apply", "before-first-apply", "terraform-provider-helm_v1", "embedder"}
	s := Migration{
		APIVersion: "v2", Live: some(), Desired: some(), Declared: some(), Relinquished: fieldpath.NewSet(),
		Terms: Terms{Adopting: random.IntN(4) == 0, RevertManual: random.IntN(3) == 0, Served: func(string) bool { return true }},
	}
	if random.IntN(2) == 0 {
		s.Relinquished = some()
	}
	for range random.IntN(6) {
		e := update(managers[random.IntN(len(managers))], []string{"v1", "v2"}[random.IntN(2)])
		e.Set = some()
		if e.Manager == "embedder" {
			e.Set.Insert(releaseName)
		}
		if random.IntN(4) == 0 {
			e.Operation = metav1.ManagedFieldsOperationApply
		}
		s.Entries = append(s.Entries, e)
	}
	return s
}
