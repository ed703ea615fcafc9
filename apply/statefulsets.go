package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/compare"
	"deployer/internal/annotation"
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
	for _, t := range templates(desired) {
		name, size := sizeOf(t)
		for _, old := range templates(live) {
			if n, was := sizeOf(old); n == name && was != size && size != "" {
				lines = append(lines, fmt.Sprintf("the claims %s-%s-N keep their size of %s; to resize one to %s:\n"+
					"  kubectl -n %s patch pvc %s-%s-0 -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}'",
					name, u.t.id.Name, was, size, u.t.id.Namespace, name, u.t.id.Name, size))
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	text := strings.Join(lines, "\n")
	immutable.Advice = text + "\n" + fmt.Sprintf("then recreate %s: --allow-recreate, or the annotation %s: \"true\" in the template; pods and claims stay",
		u.t.id, annotation.Recreate.Name)
	return text
}

func templates(spec map[string]any) []any {
	list, _ := spec["volumeClaimTemplates"].([]any)
	return list
}

func sizeOf(template any) (name, size string) {
	m, _ := template.(map[string]any)
	name, _, _ = unstructured.NestedString(m, "metadata", "name")
	v, _, _ := unstructured.NestedFieldNoCopy(m, "spec", "resources", "requests", "storage")
	if v != nil {
		size = fmt.Sprint(v)
	}
	return name, size
}
