package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/internal/annotation"
)

// survive reports whether our permissions survive that a binding is deleted and created again. They may
// not if our own account is a subject: after the deletion we might lack permission to create
// it again.
func (p *permissions) survive(ctx context.Context, live *unstructured.Unstructured, immutable *ImmutableError) (bool, error) {
	gk := live.GroupVersionKind().GroupKind()
	if gk.Group != "rbac.authorization.k8s.io" || gk.Kind != "RoleBinding" && gk.Kind != "ClusterRoleBinding" {
		return true, nil
	}
	typed, err := p.a.cluster.Typed()
	if err != nil {
		return false, err
	}
	var answer *authenticationv1.SelfSubjectReview
	err = p.a.try(ctx, func() error {
		answer, err = typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		immutable.Never = true
		immutable.Advice = fmt.Sprintf("the API server can't say which account deployer runs as (Kubernetes 1.28 and later can), and %s may grant permissions to it,"+
			" so deployer doesn't delete it: delete it yourself, or give the new one another name", immutable.ID)
		return false, nil
	case err != nil:
		return false, err
	}
	us := answer.Status.UserInfo
	subjects, _, _ := unstructured.NestedSlice(live.Object, "subjects")
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok && isSubject(us, subject) {
			immutable.Never = true
			immutable.Advice = fmt.Sprintf("%s grants permissions to the account that deployer runs as (%s), so deployer doesn't delete it:"+
				" delete it with another account, or give the new one another name", immutable.ID, us.Username)
			return false, nil
		}
	}
	return true, nil
}

// isSubject matches a subject of a binding as the authorizer does.
// k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, appliesToUser
func isSubject(us authenticationv1.UserInfo, subject map[string]any) bool {
	name := fields.AsString(subject["name"])
	switch fields.AsString(subject["kind"]) {
	case "User":
		return name == us.Username
	case "Group":
		return slices.Contains(us.Groups, name)
	case "ServiceAccount":
		return us.Username == "system:serviceaccount:"+fields.AsString(subject["namespace"])+":"+name
	}
	return false
}

// staysHeadless reports whether a chart drops the clusterIP: None of a Service. The API
// server ignores that and keeps None.
func (u *updateDecision) staysHeadless() bool {
	if u.t.id.Group != "" || u.t.id.Kind != "Service" || !u.prediction.Migrated.Ours.Has(fieldpath.MakePathOrDie("spec", "clusterIP")) {
		return false
	}
	live, _, _ := unstructured.NestedString(u.live.Object, "spec", "clusterIP")
	kind, _, _ := unstructured.NestedString(u.fullDesired.Object, "spec", "type")
	_, stated, _ := unstructured.NestedString(u.fullDesired.Object, "spec", "clusterIP")
	return live == "None" && !stated && kind != "ExternalName"
}

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
