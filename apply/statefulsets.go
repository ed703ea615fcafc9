package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/compare"
	"deployer/internal/kube"
)

// mutableStatefulSetFields lists the fields of a StatefulSet's spec that may be changed.
// k8s.io/kubernetes/pkg/apis/apps/validation, ValidateStatefulSetUpdate
var mutableStatefulSetFields = []string{
	"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
	"persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}

// explainStatefulSet handles a rejected change of a StatefulSet, where the server doesn't name
// the field. It sets the fields and the advice in immutable. It returns advice about claims
// whose template has another size, or nothing.
func (u *updateDecision) explainStatefulSet(immutable *ImmutableError) string {
	if u.t.id.Group != "apps" || u.t.id.Kind != "StatefulSet" {
		return ""
	}
	desired, _, _ := unstructured.NestedMap(u.fullDesired.Object, "spec")
	live, _, _ := unstructured.NestedMap(u.live.Object, "spec")
	for _, t := range kube.Items(desired, "volumeClaimTemplates") { // as the server writes them
		if _, size := sizeOf(t); size != "" {
			if q, err := resource.ParseQuantity(size); err == nil {
				_ = unstructured.SetNestedField(t, q.String(), "spec", "resources", "requests", "storage") // where it has been read from
			}
		}
	}
	var at []string
	for key, v := range desired {
		if !slices.Contains(mutableStatefulSetFields, key) && !compare.Satisfies(live[key], v) {
			at = append(at, "spec."+key)
		}
	}
	slices.Sort(at)
	if len(at) > 0 {
		immutable.Fields = at
	}
	var lines []string
	for _, t := range kube.Items(desired, "volumeClaimTemplates") {
		name, size := sizeOf(t)
		for _, old := range kube.Items(live, "volumeClaimTemplates") {
			if n, was := sizeOf(old); n == name && size != "" && !compare.Satisfies(was, size) {
				lines = append(lines, u.adviceForClaims(name, was, size))
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	text, how := strings.Join(lines, "\n"), fmt.Sprintf("then recreate %s: %s; pods and claims stay", u.t.id, immutable.permission())
	switch {
	case immutable.Destroys != "":
		how = immutable.Hint()
	case !selectsPodsOf(u.fullDesired, u.live):
		how = strings.TrimSuffix(how, "pods and claims stay") + "claims stay"
	}
	immutable.Advice = text + "\n" + how
	return text
}

// adviceForClaims says what becomes of the claims of a template that asks for another size. They may have any size:
// people resize them, and an earlier recreation left them as they were. A claim grows, and doesn't shrink.
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims
func (u *updateDecision) adviceForClaims(template, was, size string) string {
	kept := fmt.Sprintf("existing claims %s-%s-N keep the size that they have", template, u.t.id.Name)
	before, err := resource.ParseQuantity(was)
	after, err2 := resource.ParseQuantity(size)
	if err == nil && err2 == nil && after.Cmp(before) < 0 {
		return kept + ": a claim can't become smaller"
	}
	return fmt.Sprintf("%s; to let one grow to %s:\n  kubectl -n %s patch pvc %s-%s-0 -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}'",
		kept, size, u.t.id.Namespace, template, u.t.id.Name, size)
}

func sizeOf(template map[string]any) (name, size string) {
	name, _, _ = unstructured.NestedString(template, "metadata", "name")
	v, _, _ := unstructured.NestedFieldNoCopy(template, "spec", "resources", "requests", "storage")
	if v != nil {
		size = fmt.Sprint(v)
	}
	return name, size
}
