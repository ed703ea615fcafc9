package plan

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/viewtest"
)

// upgradePlan is viewtest.Upgrade, with what only plans tell of.
func upgradePlan(t testing.TB) *deploy.Operation {
	op := viewtest.Upgrade(t)
	op.Rendered.Nondeterminism = map[kube.ID]deploy.Nondeterminism{
		viewtest.ID("", "ConfigMap", "seed"): {Rendered: seed(t, "bbb2"), Others: []*unstructured.Unstructured{seed(t, "ccc3")}},
	}
	op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, apply.Change{
		ID: viewtest.ID("", "ConfigMap", "seed"), Action: decide.Update, Source: "web/templates/seed.yaml",
		Live: seed(t, "aaa1"), Desired: seed(t, "bbb2"), Predicted: seed(t, "bbb2"),
	})
	return viewtest.Compare(t, op, 6)
}

// seed is an object whose template makes a value up.
func seed(t testing.TB, value string) *unstructured.Unstructured {
	return viewtest.Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed, namespace: prod}\ndata: {seed: "+value+", long: \"a\\n"+value+"\\nb\\n\"}")
}

// manyChanges is an upgrade that changes a thousand objects: most the same way,
// some each its own way, and a few that nobody may miss.
func manyChanges(t testing.TB) *deploy.Operation {
	op := viewtest.Upgrade(t)
	op.Plan.Waves[0].Changes = nil
	for i := range 1000 {
		c := apply.Change{ID: viewtest.ID("", "ConfigMap", fmt.Sprintf("same-%03d", i)), Action: decide.Update, Source: fmt.Sprintf("web/templates/%d.yaml", i%7)}
		before, after := "blue", "red"
		if i%4 == 0 {
			c.ID.Name, after = fmt.Sprintf("other-%03d", i), fmt.Sprintf("red %d", i)
		}
		c.Live, c.Desired = config(t, before), config(t, after)
		c.Predicted = c.Desired
		op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, c)
		op.Plan.Warnings = append(op.Plan.Warnings, apply.Warning{ID: c.ID, Source: c.Source, Text: "v1 ConfigMap is old-fashioned"})
	}
	for i := range 30 {
		op.Plan.Prune = append(op.Plan.Prune, apply.Change{ID: viewtest.ID("", "Service", fmt.Sprintf("old-%d", i)), Action: decide.Delete, Reason: "removed from the chart"})
	}
	return viewtest.Compare(t, op, 6)
}

func config(t testing.TB, text string) *unstructured.Unstructured {
	obj := viewtest.Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: prod}")
	_ = unstructured.SetNestedField(obj.Object, text, "data", "nginx.conf")
	return obj
}

// longWords is an upgrade in which nothing fits into 80 columns.
func longWords(t *testing.T) *deploy.Operation {
	op := upgradePlan(t)
	c := &op.Plan.Waves[1].Changes[0]
	c.Source = "web/charts/" + strings.Repeat("sub/charts/", 6) + "templates/web.yaml"
	c.Reason = "the words of a server that has very much to say about an object and says it all on one line"
	c.Live.SetAnnotations(map[string]string{"example.com/" + strings.Repeat("long-", 20): "before größer → 漢字"})
	c.Desired.SetAnnotations(map[string]string{"example.com/" + strings.Repeat("long-", 20): "after " + strings.Repeat("x", 120)})
	c.Predicted.SetAnnotations(c.Desired.GetAnnotations())
	return viewtest.Compare(t, op, 6)
}

// hostileOperation has texts of the cluster and the chart that would harm a terminal or a page.
func hostileOperation(t *testing.T) *deploy.Operation {
	const hostile = viewtest.Hostile
	op := viewtest.Upgrade(t)
	op.Warnings = []string{hostile}
	c := &op.Plan.Waves[1].Changes[0]
	c.Reason, c.Unverified, c.Source, c.TakenFrom = hostile, hostile, hostile, []string{hostile}
	c.Conflicts[0].Manager, c.Conflicts[0].Before = hostile, hostile
	c.Predicted.SetAnnotations(map[string]string{hostile: hostile, "multi": hostile + "\nline two"})
	op.Plan.Prune[0].ID.Name = hostile
	op.Plan.Waves[1].Changes[2].Desired.SetLabels(map[string]string{"a": hostile})
	return viewtest.Compare(t, op, 6)
}
