package verify

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/lazyregexp"
)

// This file is the one that knows the API server's words, where it has no machine-readable reason.

// A Kind is why the API server refuses a request about one object.
type Kind string

// The kinds.
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

// kindOf returns why an answer refuses a request.
func (a *Answer) kindOf(answer *apierrors.StatusError) Kind {
	for _, w := range kinds {
		if w.pattern().MatchString(answer.ErrStatus.Message) {
			return w.kind
		}
	}
	switch {
	case MissingPermission(answer, "") != nil:
		return Permission
	case a.Detail == QuotaRaced, a.IsTransient:
		return Passing
	case apierrors.IsConflict(answer), apierrors.IsAlreadyExists(answer), a.Vanished:
		return Conflict
	case apierrors.IsNotFound(answer): // the namespace or the kind
		return Missing
	case apierrors.IsInvalid(answer), apierrors.IsBadRequest(answer), strings.Contains(answer.ErrStatus.Message, typedPatchFailed):
		return Schema
	}
	return Unknown
}

// kinds are the API server's words for what its admission and validation refuse. An answer is of the first that matches.
var kinds = []struct {
	kind    Kind
	pattern lazyregexp.Regexp
}{
	// k8s.io/apiserver/pkg/admission/plugin/webhook
	{WebhookDown, lazyregexp.New(webhookFails)},
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
	{Immutable, lazyregexp.New(`(?:` + strings.Join(immutableMessages, `|`) + `)`)}, // none has a character with a meaning
}

// A Detail is more than the kind of an answer tells.
type Detail string

// The details. Most are of one kind of refusal.
const (
	NoDetail     Detail = ""
	NoDryRun     Detail = "no-dry-run"    // a webhook has side effects: the real request may succeed
	TooLarge     Detail = "too-large"     // for the storage; the API server's own limit has other messages and holds for all requests
	UnknownField Detail = "unknown-field" // the server's schema lacks a field of the object
	NoAddress    Detail = "no-address"    // a Service of this type needs an address, and it is headless
	NotPruned    Detail = "not-pruned"    // the API server couldn't work out which fields an apply removes
	NotConverted Detail = "not-converted" // a conversion webhook failed or didn't answer
	Uncounted    Detail = "uncounted"     // a controller hasn't counted yet what a new ResourceQuota allows
	QuotaRaced   Detail = "quota-raced"   // somebody else updated a ResourceQuota at the same time, which passes
	StillStored  Detail = "still-stored"  // objects may be stored in a version that the definition lacks
	PodSecurity  Detail = "pod-security"  // the level that labels of the namespace say
)

// detailOf reads a detail from a text of that code.
func detailOf(code int, text string) Detail {
	for _, d := range details {
		if (d.code == 0 || d.code == code) && contains(text, d.words...) {
			return d.detail
		}
	}
	return NoDetail
}

// details are the words for details, and the HTTP code that an answer must have for them; 0 for any. An answer has the first that matches.
var details = []struct {
	detail Detail
	code   int
	words  []string
}{
	// k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go
	{NoDryRun, 400, []string{"does not support dry run", "dryRun is not supported"}},
	{NoDryRun, 0, []string{"the dryRun alpha feature is disabled"}},
	{TooLarge, 0, []string{"etcdserver: request is too large", "trying to send message larger than max"}},
	{UnknownField, 0, []string{"field not declared in schema"}},
	{NoAddress, 422, []string{"may not be set to 'None' for "}}, // k8s.io/kubernetes/pkg/apis/core/validation, ValidateService
	{NotPruned, 0, []string{"failed to prune fields"}},          // be it because of a converter
	{NotConverted, 0, []string{conversionFails}},
	{Uncounted, 0, []string{"status unknown for quota"}},
	{QuotaRaced, 409, []string{"cannot be fulfilled on resourcequotas"}},
	{StillStored, 422, []string{"must remain in spec.versions until a storage migration", "must appear in spec.versions"}}, // 1.37, 1.31
	{PodSecurity, 403, []string{`violates PodSecurity "`}},
}

const (
	typedPatchFailed = "failed to create typed patch object" // an apply doesn't fit the schema
	webhookFails     = "failed calling webhook"
	conversionFails  = "conversion webhook for"
)

// permanentMessages are parts of answers of code 500 that no retry will change.
var permanentMessages = []string{
	typedPatchFailed, "duplicate entries for key", "field not declared in schema",
	": expected ", "failed to convert", "request to convert CR",
}

// transientMessages are the server's words for a state that ends by itself, whatever
// the code of the answer.
var transientMessages = []string{
	"etcdserver: leader changed", "etcdserver: request timed out", "etcdserver: too many requests",
	webhookFails, conversionFails, "rpc error: code = Unavailable",
	"context deadline exceeded", "transport is closing", "http2: server sent GOAWAY", "stream error: stream ID",
}

// SaysImmutable reports whether a message of the API server says that a field can't
// be changed.
func SaysImmutable(message string) bool { return contains(message, immutableMessages...) }

// immutableMessages are parts of the API server's messages for immutable fields, as opposed
// to invalid ones.
// k8s.io/apimachinery/pkg/api/validation (FieldImmutableErrorMsg) and
// k8s.io/kubernetes/pkg/apis/*/validation.
var immutableMessages = []string{
	"is immutable",
	"updates to statefulset spec for fields other than",
	"cannot change roleRef",
	"may not change once set",
	"primary clusterIP can not be unset",
	"pod updates may not change fields other than",
	"updates to parameters are forbidden",
	"updates to driverName are forbidden",
	"updates to provisioner are forbidden",
	"updates to reclaimPolicy are forbidden",
	"updates to volumeBindingMode are forbidden",
	"may not be changed in an update",
}

var blamed = lazyregexp.New(`(?:exceeded|failed) quota: ([^,: ]+)|status unknown for quota: ([^ ;:]+)|webhook "([^"]+)"|AdmissionPolicy '([^']+)'|with binding '([^']+)'`)
