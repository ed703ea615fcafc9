package verify

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
)

// A Kind is why the API server refuses a request about one object. Decisions branch on it.
type Kind string

// The kinds. Most can be told only by the API server's words, which classify knows.
const (
	Unknown     Kind = ""             // none of the others, or no answer of the API server
	Conflict    Kind = "conflict"     // somebody else has changed, made or deleted the object
	Immutable   Kind = "immutable"    // a field can't be changed
	Schema      Kind = "schema"       // the object isn't valid
	Permission  Kind = "permission"   // the account may not make the request, or not grant what it doesn't have
	WebhookDown Kind = "webhook-down" // an admission webhook doesn't answer
	WebhookSays Kind = "webhook"      // an admission webhook denies it
	Policy      Kind = "policy"       // an admission policy, or the pod security level of the namespace, denies it
	Quota       Kind = "quota"        // a ResourceQuota is used up
	Limit       Kind = "limit"        // a LimitRange forbids it
	Class       Kind = "class"        // the class that the object names, or the default one, doesn't allow it
	Held        Kind = "held"         // another object holds a port, an address or a role
	Missing     Kind = "missing"      // the namespace, the kind or another object that it needs isn't there
	Passing     Kind = "transient"    // the same request may succeed later
)

// KindOf returns why an error, as the API server gave it or as AsServerError made of it, refuses an object.
func KindOf(err error) Kind {
	if known, ok := errors.AsType[*ServerError](err); ok {
		return known.Kind
	}
	switch {
	case errors.As(err, new(*kube.NoKindMatchError)):
		return Missing
	case errors.As(err, new(*PermissionError)):
		return Permission
	}
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return Unknown
	}
	return classify(answer)
}

// classify is the one place that knows the words of admission and validation.
func classify(answer *apierrors.StatusError) Kind {
	for _, w := range refusals {
		if w.pattern().MatchString(answer.ErrStatus.Message) {
			return w.kind
		}
	}
	switch {
	case MissingPermission(answer, "") != nil:
		return Permission
	case QuotaConflict(answer), Transient(answer):
		return Passing
	case apierrors.IsConflict(answer), apierrors.IsAlreadyExists(answer), namesObject(answer):
		return Conflict
	case apierrors.IsNotFound(answer): // the namespace or the kind
		return Missing
	case apierrors.IsInvalid(answer), apierrors.IsBadRequest(answer), strings.Contains(answer.ErrStatus.Message, typedPatchFailed):
		return Schema
	}
	return Unknown
}

// refusals are the API server's words for what its admission refuses. An answer is of the first that matches.
var refusals = []struct {
	kind    Kind
	pattern lazyregexp.Regexp
}{
	// k8s.io/apiserver/pkg/admission/plugin/webhook
	{WebhookDown, lazyregexp.New(`failed calling webhook`)},
	{WebhookSays, lazyregexp.New(`^admission webhook "[^"]*" denied the request`)},
	// k8s.io/apiserver/pkg/admission/plugin/policy; k8s.io/pod-security-admission
	{Policy, lazyregexp.New(`(Validating|Mutating)AdmissionPolicy '|violates PodSecurity "`)},
	// k8s.io/apiserver/pkg/admission/plugin/resourcequota
	{Quota, lazyregexp.New(`(exceeded|failed|status unknown for) quota: |insufficient quota to match these scopes`)},
	// k8s.io/kubernetes/plugin/pkg/admission/limitranger
	{Limit, lazyregexp.New(`(maximum|minimum) \S+ usage per |limit to request ratio per `)},
	// k8s.io/kubernetes/plugin/pkg/admission/{storage/persistentvolume/resize,runtimeclass,priority,network/defaultingressclass}
	{Class, lazyregexp.New(`must support resize|RuntimeClass's defined Overhead|given PriorityClass name|default IngressClasses were found|PreemptionPolicy`)},
	// k8s.io/kubernetes/pkg/registry/core/service; k8s.io/kubernetes/plugin/pkg/admission/priority
	{Held, lazyregexp.New(`already allocated|already marked as default`)},
	// k8s.io/kubernetes/plugin/pkg/admission/{serviceaccount,priority,runtimeclass}, and of roles that bindings name
	{Missing, lazyregexp.New(`error looking up service account|no PriorityClass with name|RuntimeClass "[^"]*" not found|^(cluster)?roles\.rbac\.authorization\.k8s\.io "[^"]*" not found`)},
	// k8s.io/kubernetes/pkg/registry/rbac
	{Permission, lazyregexp.New(`is attempting to grant RBAC permissions not currently held`)},
	{Immutable, lazyregexp.New(anyOf(immutableMessages))},
}

// typedPatchFailed is the API server's word for an apply that doesn't fit the schema.
const typedPatchFailed = "failed to create typed patch object"

// IsUnsettled reports whether admission doesn't know yet what a new ResourceQuota allows: its controller is about to say so.
func IsUnsettled(err error) bool {
	return KindOf(err) == Quota && strings.Contains(err.Error(), "status unknown for quota")
}

// Blames returns the names in a refusal of what has refused it: ResourceQuotas, a webhook, or an admission policy and
// its binding.
func Blames(err error) (names []string) {
	for _, m := range blamed().FindAllStringSubmatch(err.Error(), -1) {
		for _, list := range m[1:] {
			for name := range strings.SplitSeq(list, ",") {
				if name = strings.TrimSpace(name); name != "" {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

var blamed = lazyregexp.New(`(?:exceeded|failed) quota: ([^,: ]+)|status unknown for quota: ([^ ;:]+)|webhook "([^"]+)"|AdmissionPolicy '([^']+)'|with binding '([^']+)'`)

// anyOf returns a pattern that matches any of the texts.
func anyOf(texts []string) string {
	return `(?:` + strings.Join(texts, `|`) + `)` // none has a character with a meaning
}
