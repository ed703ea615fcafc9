// Package verify tells what answers of the API server mean: whether it would take
// an object, why not, and whether asking again may help. It makes no requests.
package verify

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// An Answer is what the error of a request about an object says. Decisions go by it, and not by texts. The zero value is of a
// request that succeeded.
type Answer struct {
	Err    error // as it was read
	Kind   Kind
	Detail Detail
	Code   int // HTTP; 0 where the API server hasn't answered

	// IsByAdmission says that a webhook or a policy has refused the object, in whatever words.
	IsByAdmission bool
	// Vanished says that the object is missing, and not its kind or namespace. Of a Namespace, see IsVanished.
	Vanished    bool
	IsTransient bool // the same request may succeed later
	// IsUnexplained says that the API server has failed without a known cause, be it permanent or a webhook of any kind: the answer
	// may come from a proxy or an overloaded server.
	IsUnexplained bool

	Causes []metav1.StatusCause // by field
	text   string
}

// Read reads an error of a request, as it came or as AsServerError made of it.
func Read(err error) Answer {
	if err == nil {
		return Answer{}
	}
	if known, ok := errors.AsType[*ServerError](err); ok {
		return known.Answer
	}
	text := err.Error()
	a := Answer{Err: err, text: text, Detail: detailOf(0, text), IsByAdmission: contains(text, "admission webhook", "AdmissionPolicy")}
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case ok:
		a.readStatus(answer)
	case errors.As(err, new(*kube.NoKindMatchError)):
		a.Kind = Missing
	case errors.As(err, new(*PermissionError)):
		a.Kind = Permission
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	default:
		a.IsTransient = kube.IsConnectionFailure(err) || contains(text, transientMessages...)
	}
	return a
}

// readStatus reads an answer of the API server.
func (a *Answer) readStatus(answer *apierrors.StatusError) {
	s := answer.ErrStatus
	a.Code = int(s.Code)
	a.Detail = detailOf(a.Code, a.text)
	if s.Details != nil {
		a.Causes = s.Details.Causes
	}
	a.Vanished = kube.NamesMissingObject(answer) && s.Details.Kind != "namespaces"
	isPermanent, isTransient := contains(a.text, permanentMessages...) || a.Detail == TooLarge, contains(a.text, transientMessages...)
	switch {
	case kube.IsDenial(answer): // in any code
	case a.Code == 429, a.Code == 502, a.Code == 503, a.Code == 504:
		a.IsTransient = !strings.Contains(a.text, "exceeded quota")
	case a.Code == 500 && !isPermanent:
		a.IsTransient = isTransient
		a.IsUnexplained = !contains(a.text, webhookFails) && a.Detail != NotConverted
	case a.Code > 500:
		a.IsTransient = !isPermanent
	}
	a.Kind = a.kindOf(answer)
}

// RefusesWrite reports whether the API server doesn't allow a request about an object as it is: permissions, validation, a
// policy or a webhook, be it that the webhook doesn't answer. A conflict isn't a refusal.
func (a Answer) RefusesWrite() bool {
	return slices.Contains([]int{400, 403, 405, 422}, a.Code) || a.Code != 0 && (contains(a.text, "admission webhook") || a.Kind == WebhookDown)
}

// FailsValidation reports whether the server refuses what an object says, whatever its namespace:
// its schema, or the validation of its kind.
func (a Answer) FailsValidation() bool {
	return (a.Code == 422 || a.Code == 400) && a.Detail != NoDryRun && !a.IsByAdmission
}

// NeedsName reports whether an object can't be dry-run under another name: only its own
// name is allowed, or it needs a port, an address or a role that the old one holds.
func (a Answer) NeedsName() bool {
	isOther := func(c metav1.StatusCause) bool { return c.Field != "metadata.name" }
	return a.Kind == Held || a.Code == 422 && len(a.Causes) > 0 && !slices.ContainsFunc(a.Causes, isOther)
}

// LacksObject reports whether a request is refused because another object, called name, doesn't exist.
func (a Answer) LacksObject(name string) bool {
	return name != "" && (a.Code == 403 || a.Vanished) && contains(a.text, `"`+name+`" not found`, "no PriorityClass with name "+name+" was found")
}

// LacksKindOrNamespace reports whether an API server doesn't know a new kind or namespace yet.
func (a Answer) LacksKindOrNamespace() bool {
	return a.Code == 404 && !a.Vanished ||
		a.Code != 0 && contains(a.text, "no matches for kind", "failed to convert", "no corresponding type", "unable to find api field")
}

// MayPass reports whether the API server may accept the object when its turn comes, as it is.
func (a Answer) MayPass() bool { return a.Kind == WebhookDown || a.Kind == Held || a.Kind == Quota }

// MayEndByHooks reports whether hooks of a release may end what refuses the object, because it is the state of the namespace or of the
// cluster: what is missing or used up, limits, classes, the level of pod security, and versions that are stored. What policies, webhooks and
// permissions say isn't.
func (a Answer) MayEndByHooks() bool {
	return a.MayPass() || slices.Contains([]Kind{Missing, Limit, Class}, a.Kind) || a.Detail == PodSecurity || a.Detail == StillStored
}

// DependsOnOthers reports whether what refuses the object is something else in the cluster, which may change.
func (a Answer) DependsOnOthers() bool {
	return a.MayPass() || slices.Contains([]Kind{Policy, WebhookSays, Limit, Class, Permission}, a.Kind)
}

// Blames returns the names in a refusal of what has refused it: ResourceQuotas, a webhook, or an admission policy and
// its binding.
func (a Answer) Blames() (names []string) {
	for _, m := range blamed().FindAllStringSubmatch(a.text, -1) {
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

// WasModified says that a request failed because the object isn't any more what the
// decision was about: somebody has changed, made or deleted it.
func WasModified(err error, id kube.ID) bool {
	return kube.IsConflict(err) || kube.IsAlreadyExists(err) || IsVanished(err, id)
}

// IsVanished reports whether an answer says that the object is missing, and not its kind
// or namespace.
func IsVanished(err error, id kube.ID) bool {
	return Read(err).Vanished || id.IsNamespace() && kube.NamesMissingObject(err)
}

func contains(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
