package definition

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withFields makes a definition whose spec has these fields.
func withFields(t *testing.T, names ...string) *unstructured.Unstructured {
	t.Helper()
	fields := ""
	for _, name := range names {
		fields += name + ": {type: string}, "
	}
	return crdOf(t, "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {"+fields+"}}}}}}]")
}

// What a release has added to a definition of others it may take away again, and nothing else.
func TestContribution(t *testing.T) {
	theirs, both, ours := withFields(t, "a"), withFields(t, "a", "b", "c"), withFields(t, "b")
	var none *Contribution
	added := none.After(theirs, both)
	if added == nil || added.Whole || !slices.Equal(added.Places, []string{"v1 spec.b", "v1 spec.c"}) {
		t.Fatalf("contribution %+v", added)
	}
	if !added.Describes(both) || added.Describes(theirs) {
		t.Error("the contribution describes another definition than the one that was left")
	}
	if lost := added.LossesOfOthers(LossesOf(both, ours)); lost.String() != "v1 spec.a" {
		t.Errorf("losses of others: %s", lost)
	}
	if lost := none.LossesOfOthers(LossesOf(both, ours)); lost.String() != "v1 spec.a, v1 spec.c" {
		t.Errorf("losses of others without a contribution: %s", lost)
	}
	whole := ContributionOf(both)
	if lost := whole.LossesOfOthers(LossesOf(both, ours)); len(lost) > 0 {
		t.Errorf("losses of others in a definition of the release: %s", lost)
	}
	if after := whole.After(both, ours); after == nil || !after.Whole || !after.Describes(ours) {
		t.Errorf("after an update of its own definition: %+v", after)
	}
	if planned := none.Planned(theirs, both); planned == nil || !planned.Describes(theirs) || !planned.Describes(both) || planned.Describes(ours) {
		t.Errorf("an update that may or may not have been made: %+v", planned)
	}
	if after := none.After(both, theirs); after != nil {
		t.Errorf("a contribution to a definition from which the release has only removed: %+v", after)
	}
}

// An apply that doesn't state the conversion keeps it.
func TestLossesByApply(t *testing.T) {
	live, next := withFields(t, "a"), withFields(t)
	if err := unstructured.SetNestedField(live.Object, "Webhook", "spec", "conversion", "strategy"); err != nil {
		t.Fatal(err)
	}
	if got := LossesByApply(live, next).String(); got != "v1 spec.a" {
		t.Errorf("losses by an apply: %s", got)
	}
	if got := LossesOf(live, next).String(); got != lostConversion+", v1 spec.a" {
		t.Errorf("losses by a replacement: %s", got)
	}
}

func TestImmutableFields(t *testing.T) {
	version := Versions(crdOf(t, `[{name: v1, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
  size: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: size is for ever}]},
  name: {type: string, x-kubernetes-validations: [{rule: self != '', message: needs a name}]},
  parts: {type: array, items: {type: object, properties: {id: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}}}}}}}]`))[0]
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	for name, test := range map[string]struct {
		causes   []metav1.StatusCause
		expected []string
	}{
		"a built-in kind":                {[]metav1.StatusCause{cause("spec.selector", "field is immutable")}, []string{"spec.selector"}},
		"a rule about the old value":     {[]metav1.StatusCause{cause("spec.size", "Invalid value: size is for ever")}, []string{"spec.size"}},
		"such a rule without a message":  {[]metav1.StatusCause{cause("spec.parts[0].id", "failed rule: self == oldSelf")}, []string{"spec.parts[0].id"}},
		"a rule about the value":         {[]metav1.StatusCause{cause("spec.name", "Invalid value: needs a name")}, nil},
		"one of two is something else":   {[]metav1.StatusCause{cause("spec.size", "size is for ever"), cause("spec.name", "needs a name")}, nil},
		"a rule that says it is a field": {[]metav1.StatusCause{cause("spec.name", "needs a name, and is immutable")}, nil},
		"nothing":                        {nil, nil},
	} {
		if got := ImmutableFields(test.causes, version); !slices.Equal(got, test.expected) {
			t.Errorf("%s: %q, expected %q", name, got, test.expected)
		}
	}
}

func TestKinds(t *testing.T) {
	crd := crdOf(t, "[{name: v1, served: true, storage: true, subresources: {status: {}}}, {name: v1beta1, served: true}, {name: v1alpha1, served: false}]")
	if err := unstructured.SetNestedField(crd.Object, "foos", "spec", "names", "plural"); err != nil {
		t.Fatal(err)
	}
	kinds := Kinds(crd)
	if len(kinds) != 2 {
		t.Fatalf("%d kinds: %v", len(kinds), kinds)
	}
	v1 := kinds[Kind(crd).WithVersion("v1")]
	if v1.Resource.String() != "example.com/v1, Resource=foos" || !v1.HasStatus || v1.HasScale || !v1.Namespaced {
		t.Errorf("mapping of v1: %+v", v1)
	}
	if id := ID(v1.Resource.GroupResource()); id.Name != "foos.example.com" || !id.IsCRD() {
		t.Errorf("its definition is %s", id)
	}
	if service, stored := ConversionService(crd); service.Name != "" || stored != "v1" {
		t.Errorf("converted by %s, stored as %s", service, stored)
	}
}
