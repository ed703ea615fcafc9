package apply

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// TestRefusal fails if a refusal of a dry run, in the words of the API server, isn't reacted to by what it says.
func TestRefusal(t *testing.T) {
	maps, namespaces := schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "namespaces"}
	said := func(code int32, reason metav1.StatusReason, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
	}
	invalid := said(422, metav1.StatusReasonInvalid, `ConfigMap "a" is invalid: data: Too long`)
	network := errors.New("connection refused")
	noDryRuns := said(400, metav1.StatusReasonBadRequest, `admission webhook "x" does not support dry run`)
	forbidden := said(403, metav1.StatusReasonForbidden, `configmaps "a" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "n"`)
	forbiddenOf129 := apierrors.NewForbidden(maps, "a", errors.New(""))
	mistakeOf129 := apierrors.NewForbidden(maps, "a", errors.New(`RBAC: role.rbac.authorization.k8s.io "x" not found`))
	policy := said(403, metav1.StatusReasonForbidden, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' denied request`)
	noAccount := said(403, metav1.StatusReasonForbidden, `pods "a" is forbidden: error looking up service account n/x: serviceaccount "x" not found`)
	noConverter := said(500, metav1.StatusReasonInternalError, `conversion webhook for example.com/v2, Kind=Foo failed: connection refused`)
	gone, noNamespace := apierrors.NewNotFound(maps, "a"), apierrors.NewNotFound(namespaces, "n")
	modified := apierrors.NewConflict(maps, "a", errors.New("the object has been modified"))
	unknownField := said(500, "", "failed to create typed patch object: .spec.x: field not declared in schema")
	nothing := func(*planning, *target, *facts) {}
	kindChanges := func(p *planning, t *target, _ *facts) { p.prerequisites.expect(t.definition()) }
	inVain := func(_ *planning, _ *target, f *facts) { f.attempts = maxAttempts }
	const (
		reject, fail, unverified, estimate = "rejected", "failed", "unverified", "estimated"
		again, schemaOfServer              = "read again", "read again by the server's schema"
		converter, deferred, kind          = "waits for the converter", "waits for the kind", "decided when the kind is written"
	)
	for name, c := range map[string]struct {
		err    error
		given  func(*planning, *target, *facts)
		expect string
	}{
		"the object is wrong":              {invalid, nothing, reject},
		"an admission policy":              {policy, nothing, reject},
		"no answer":                        {network, nothing, fail},
		"a webhook without dry runs":       {noDryRuns, kindChanges, unverified},
		"no permission":                    {forbidden, kindChanges, estimate},
		"no permission, in 1.29":           {forbiddenOf129, nothing, estimate},
		"no permission, and a mistake":     {mistakeOf129, nothing, estimate}, // in 1.29
		"no converter":                     {noConverter, func(_ *planning, t *target, _ *facts) { t.waits.converter = []kube.ID{{Name: "converter"}} }, converter},
		"the old definition refuses":       {invalid, kindChanges, kind},
		"a ServiceAccount comes later":     {noAccount, func(p *planning, t *target, _ *facts) { p.targetsByID[t.needs()[0]] = &target{} }, unverified},
		"a ServiceAccount of nobody":       {noAccount, nothing, reject},
		"gone since it was read":           {gone, nothing, again},
		"gone again and again":             {gone, inVain, reject}, // or something else is
		"its namespace is missing":         {noNamespace, nothing, reject},
		"a Namespace that is gone":         {noNamespace, func(_ *planning, t *target, _ *facts) { t.id = namespaceID("n") }, again},
		"written since it was read":        {modified, nothing, again},
		"written again and again":          {modified, inVain, reject},
		"unknown field, by our schema":     {unknownField, nothing, schemaOfServer},
		"unknown field, by the server's":   {unknownField, func(p *planning, t *target, _ *facts) { p.schemas.distrust(t.mapping.GVK.GroupVersion()) }, reject},
		"of a hook, which isn't read":      {modified, func(_ *planning, t *target, _ *facts) { t.isHook = true }, reject},
		"of a hook, whose kind may change": {invalid, func(p *planning, t *target, _ *facts) { t.isHook = true; kindChanges(p, t, nil) }, deferred},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"serviceAccountName": "x"}}}
		obj.SetName("a")
		obj.SetNamespace("n")
		tt := &target{id: kube.IDOf(obj), obj: obj, mapping: kube.Mapping{GVK: obj.GroupVersionKind(), Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true}}
		a := New(nil, provenance.Owner{}, Options{})
		p := &planning{a: a, targetsByID: map[kube.ID]*target{}, prerequisites: &prerequisites{table: map[kube.ID]prerequisite{}}, permissions: &permissions{a: a}, schemas: &schemas{distrusted: map[schema.GroupVersion]bool{}}}
		f := &facts{holder: answer[string]{isKnown: true}}
		c.given(p, tt, f)
		got, wasBuiltin := "", p.schemas.isBuiltin(tt.mapping.GVK)
		switch change, err := p.decideRefused(tt, f, Change{Live: obj}, c.err); {
		case errors.As(err, new(*Rejection)):
			got = reject
		case errors.As(err, new(*unknownError)) && wasBuiltin && !p.schemas.isBuiltin(tt.mapping.GVK):
			got = schemaOfServer
		case errors.As(err, new(*unknownError)):
			got = again
		case err != nil:
			got = fail
		case change.Deferral != nil && change.Deferral.waitsFor(tt.definition()):
			got = deferred
		case change.Deferral != nil:
			got = converter
		case strings.HasPrefix(change.Unverified, "local estimate"):
			got = estimate
		case change.Unverified != "":
			got = unverified
		default:
			got = kind
		}
		if got != c.expect {
			t.Errorf("%s: %s, expected %s", name, got, c.expect)
		}
	}
}
