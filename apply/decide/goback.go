package decide

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/definition"
	"deployer/apply/fields"
	"deployer/internal/kube"
)

// A Stay says that an object doesn't go back to an earlier revision with the others.
type Stay struct {
	Why      string // in the words of whoever refuses
	Harmless bool   // it has all that the earlier revision needs, and more
	Advice   string // what to do; empty when nothing has to be done
}

// StayAhead returns what a live object keeps when it goes back to what is desired, and an object that can be had
// instead: a claim keeps its size, and a definition that has more stays altogether. Nil for other objects.
func StayAhead(live, desired *unstructured.Unstructured) (stay *Stay, instead *unstructured.Unstructured) {
	if live == nil {
		return nil, nil
	}
	switch id := kube.IDOf(live); {
	case id.GroupKind() == kube.PersistentVolumeClaimKind:
		path := []string{"spec", "resources", "requests", "storage"}
		has, hadNone := sizeAt(live, path)
		wants, wantsNone := sizeAt(desired, path)
		if hadNone != nil || wantsNone != nil || has.Cmp(wants) <= 0 {
			return nil, nil
		}
		instead := desired.DeepCopy()
		if err := unstructured.SetNestedField(instead.Object, has.String(), path...); err != nil {
			return nil, nil
		}
		return &Stay{Why: "a claim can't shrink: it keeps its " + has.String(), Harmless: true}, instead
	case id.IsCRD() && len(definition.LossesOf(desired, live)) == 0:
		return &Stay{Why: "its definition stays as it is, which has all that the revision's has", Harmless: true}, nil
	}
	return nil, nil
}

func sizeAt(claim *unstructured.Unstructured, path []string) (resource.Quantity, error) {
	size, _, err := unstructured.NestedFieldNoCopy(claim.Object, path...)
	if err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(fields.Scalar(size)) // it may be a number
}
