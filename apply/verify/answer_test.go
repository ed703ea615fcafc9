package verify

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
)

// TestHintsNameWhatIsBehind: the webhook that doesn't answer and its Service are looked for by their names.
func TestHintsNameWhatIsBehind(t *testing.T) {
	for want, e := range map[string]*ServerError{
		`webhook "a.example.com" doesn't answer: look at Service/guards/a and the pods behind it.`: {Answer: Answer{Kind: WebhookDown},
			Text: `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.guards.svc:443/x?timeout=1s": no endpoints available`},
		`webhook "a.example.com" doesn't answer: look at the Service and the pods behind it.`: {Answer: Answer{Kind: WebhookDown},
			Text: `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://guard.example.com/x": EOF`},
		`Service/prod/a has it: `: {Answer: Answer{Kind: Held}, Holder: "Service/prod/a"},
		`another object has it: `: {Answer: Answer{Kind: Held}},
	} {
		if got := e.Hint(); !strings.HasPrefix(got, want) {
			t.Errorf("hint %q, want %q", got, want)
		}
	}
}

// The API server's words, as 1.36 has them.
func TestKindsOfAnswers(t *testing.T) {
	answer := func(code int32, reason metav1.StatusReason, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: text, Details: &metav1.StatusDetails{Kind: "pods", Name: "p"}}}
	}
	forbidden := func(text string) error { return answer(403, metav1.StatusReasonForbidden, text) }
	invalid := func(text string) error { return answer(422, metav1.StatusReasonInvalid, text) }
	for _, c := range []struct {
		name   string
		err    error
		want   Kind
		blames []string
	}{
		{"quota", forbidden(`pods "p" is forbidden: exceeded quota: q.1, requested: pods=1, used: pods=1, limited: pods=1`), Quota, []string{"q.1"}},
		{"quota without defaults", forbidden(`pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c`), Quota, []string{"q"}},
		{"quota not counted yet", forbidden(`services "s" is forbidden: status unknown for quota: q,r, resources: count/services`), Quota, []string{"q", "r"}},
		{"limit", forbidden(`pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 4`), Limit, nil},
		{"limit of claims", forbidden(`persistentvolumeclaims "d" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi`), Limit, nil},
		{"storage class", forbidden(`persistentvolumeclaims "d" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`), Class, nil},
		{"pod security", forbidden(`pods "p" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`), Policy, nil},
		{"policy", invalid(`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'pol' with binding 'bind' denied request: failed expression: object.data.key == '2'`), Policy, []string{"pol", "bind"}},
		{"webhook says no", forbidden(`admission webhook "w.example.com" denied the request: no`), WebhookSays, []string{"w.example.com"}},
		{"webhook is down", answer(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://x": dial tcp: connection refused`), WebhookDown, []string{"w.example.com"}},
		{"port", invalid(`Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 31300: provided port is already allocated`), Held, nil},
		{"default class", forbidden(`priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist`), Held, nil},
		{"priority class", forbidden(`pods "p" is forbidden: no PriorityClass with name x was found`), Missing, nil},
		{"account of pods", forbidden(`pods "p" is forbidden: error looking up service account ns/x: serviceaccount "x" not found`), Missing, nil},
		{"namespace", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Message: `namespaces "x" not found`, Details: &metav1.StatusDetails{Kind: "namespaces", Name: "x"}}}, Missing, nil},
		{"kind", &kube.NoKindMatchError{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "B"}}, Missing, nil},
		{"permission", forbidden(`configmaps "a" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "ns"`), Permission, nil},
		{"escalation", forbidden(`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:`), Permission, nil},
		{"immutable", invalid(`StatefulSet.apps "db" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`), Immutable, nil},
		{"schema", invalid(`Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`), Schema, nil},
		{"conflict", answer(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on pods "p": the object has been modified`), Conflict, nil},
		{"overload", answer(503, metav1.StatusReasonServiceUnavailable, `later`), Passing, nil},
		{"no answer", errors.New("boom"), Unknown, nil},
	} {
		if got := Read(c.err).Kind; got != c.want {
			t.Errorf("%s: kind %q, want %q", c.name, got, c.want)
		}
		if got := Read(c.err).Blames(); !slices.Equal(got, c.blames) {
			t.Errorf("%s: Blames = %q, want %q", c.name, got, c.blames)
		}
	}
}
