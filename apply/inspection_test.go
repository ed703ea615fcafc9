package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/decide"
)

func TestFateOfUncontestedFields(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		if value == "" {
			return &unstructured.Unstructured{Object: map[string]any{}}
		}
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": value}}}
	}
	for _, c := range []struct {
		name                               string
		live, predicted, declared, applied string
		want                               decide.FieldOutcome
	}{
		{"gone", "a", "", "", "", decide.OutcomeRemoved},
		{"new", "", "a", "a", "a", decide.OutcomeSet},
		{"another value", "b", "a", "a", "a", decide.OutcomeSet},
		{"as declared", "a", "a", "a", "a", decide.OutcomeKept},
		{"left to the cluster", "b", "b", "a", "", decide.OutcomeYielded},
		{"a default", "a", "a", "", "", decide.OutcomeIgnored},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := apply.Inspected{Change: apply.Change{Live: object(c.live), Predicted: object(c.predicted), Desired: object(c.applied)}, Declared: object(c.declared)}
			if got := o.FateOf(fieldpath.MakePathOrDie("data", "k")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
