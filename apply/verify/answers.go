// Package verify tells what answers of the API server mean: whether it would take
// an object, why not, and whether asking again may help. It makes no requests.
package verify

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// WasModified says that a request failed because the object isn't any more what the
// decision was about: somebody has changed, made or deleted it.
func WasModified(err error, id kube.ID) bool {
	return kube.IsConflict(err) || kube.IsAlreadyExists(err) || IsVanished(err, id)
}

// RefusesWrite reports whether the API server doesn't allow a request about an object as it is: permissions, validation, a
// policy or a webhook, be it that the webhook doesn't answer. A conflict isn't a refusal.
func RefusesWrite(err error) bool {
	if _, isAnswer := errors.AsType[*apierrors.StatusError](err); !isAnswer {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		contains(err.Error(), []string{"admission webhook", "failed calling webhook"})
}

// LacksField reports whether the server's schema lacks a field of an object.
func LacksField(err error) bool { return strings.Contains(err.Error(), "field not declared in schema") }

// SaysImmutable reports whether a message of the API server says that a field can't
// be changed.
func SaysImmutable(message string) bool { return contains(message, immutableMessages) }

// immutableMessages are parts of the API server's messages for immutable fields, as opposed
// to invalid ones. There is no machine-readable reason.
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

// NeedsAddress reports whether a Service is refused because its type needs an address and it is headless.
// k8s.io/kubernetes/pkg/apis/core/validation, ValidateService
func NeedsAddress(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "may not be set to 'None' for ")
}

// TooLarge reports whether storage refuses an object because of its size. The API
// server's own limit has other messages and holds for all requests.
func TooLarge(err error) bool {
	return err != nil && contains(err.Error(), tooLargeMessages)
}

var tooLargeMessages = []string{"etcdserver: request is too large", "trying to send message larger than max"}

// CannotRenameForDryRun reports whether an object can't be dry-run under another name: only its own
// name is allowed, or it needs a port, an address or a role that the old one holds.
func CannotRenameForDryRun(err error) bool {
	if KindOf(err) == Held {
		return true
	}
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || answer.ErrStatus.Details == nil {
		return false
	}
	causes := answer.ErrStatus.Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Field != "metadata.name" })
}

// FailsValidation reports whether the server refuses what an object says, whatever its namespace:
// its schema, or the validation of its kind. Admission can answer with the same codes, so it is
// told by its words.
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go and
// k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go
func FailsValidation(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !RefusesDryRun(err) && !IsFromAdmission(err)
}

// IsFromAdmission reports whether a webhook or a policy has refused an object, in whatever words.
func IsFromAdmission(err error) bool {
	return err != nil && contains(err.Error(), []string{"admission webhook", "AdmissionPolicy"})
}

// NamesMissingPrerequisite reports whether a request is refused because another object, called
// name, doesn't exist.
func NamesMissingPrerequisite(err error, name string) bool {
	return name != "" && (apierrors.IsForbidden(err) || namesObject(err)) &&
		contains(err.Error(), []string{`"` + name + `" not found`, "no PriorityClass with name " + name + " was found"})
}

// RefusesDryRun reports whether dry runs are refused, because an admission webhook has
// side effects. The real request may succeed.
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go
func RefusesDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && contains(err.Error(), []string{"does not support dry run", "dryRun is not supported"}) ||
		err != nil && strings.Contains(err.Error(), "the dryRun alpha feature is disabled")
}
