package verify

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

// permanentMessages are parts of answers of code 500 that no retry will change.
var permanentMessages = append([]string{
	"failed to create typed patch object", "duplicate entries for key", "field not declared in schema",
	": expected ", "failed to convert", "request to convert CR",
}, tooLargeMessages...)

const conversionFailed = "conversion webhook for"

// transientMessages are the server's words for a state that ends by itself, whatever
// the code of the answer.
var transientMessages = []string{
	"etcdserver: leader changed", "etcdserver: request timed out", "etcdserver: too many requests",
	"failed calling webhook", conversionFailed, "rpc error: code = Unavailable",
	"context deadline exceeded", "transport is closing", "http2: server sent GOAWAY", "stream error: stream ID",
}

// Unexplained reports whether an answer of code 500 has no known cause, be it permanent or a
// webhook of any kind: it may come from a proxy or an overloaded server.
func Unexplained(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && answer.ErrStatus.Code == 500 && !contains(err.Error(), permanentMessages) && !contains(err.Error(), []string{"failed calling webhook", conversionFailed}) && !kube.IsDenial(err)
}

// Transient reports whether the same request may succeed later.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return kube.IsConnectionFailure(err) || contains(err.Error(), transientMessages)
	}
	if kube.IsDenial(err) {
		return false
	}
	text := err.Error()
	switch code := answer.ErrStatus.Code; {
	case code == 429, code == 502, code == 503, code == 504:
		return !strings.Contains(text, "exceeded quota")
	case code == 500:
		return !contains(text, permanentMessages) && contains(text, transientMessages) // others are Unexplained
	}
	return answer.ErrStatus.Code > 500 && !contains(text, permanentMessages)
}

// KindOrNamespaceUnknown reports whether an API server doesn't know a new kind or namespace yet.
func KindOrNamespaceUnknown(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && (answer.ErrStatus.Code == 404 && !namesObject(err) ||
		contains(err.Error(), []string{"no matches for kind", "failed to convert", "no corresponding type", "unable to find api field"}))
}

// IsVanished reports whether an answer says that the object is missing, and not its kind
// or namespace.
func IsVanished(err error, id kube.ID) bool {
	return namesObject(err) || id.IsNamespace() && kube.NamesMissingObject(err)
}

// namesObject reports whether a NotFound error is about an object, and not about its kind or namespace.
func namesObject(err error) bool {
	answer, _ := errors.AsType[*apierrors.StatusError](err)
	return kube.NamesMissingObject(err) && answer.ErrStatus.Details.Kind != "namespaces"
}

func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// QuotaConflict reports whether admission failed to update a ResourceQuota because
// somebody else did so at the same time, which is transient.
func QuotaConflict(err error) bool {
	return kube.IsConflict(err) && strings.Contains(err.Error(), "resourcequotas") &&
		strings.Contains(err.Error(), "object has been modified")
}

// FailedToPrune reports whether the API server couldn't work out which fields an apply removes.
func FailedToPrune(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to prune fields")
}

// ConversionFailed reports whether a conversion webhook failed or didn't answer.
func ConversionFailed(err error) bool {
	return err != nil && strings.Contains(err.Error(), conversionFailed)
}
