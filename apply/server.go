package apply

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/hide"
	"deployer/internal/kube"
)

// A ServerError is the API server's refusal of one object, without the
// object's name and without confidential values.
type ServerError struct {
	Code   int // HTTP
	Reason metav1.StatusReason
	Fields []string // the fields at fault, where the server named them
	Text   string
}

func (e *ServerError) Error() string { return e.Text }

// Hint says what to do where that follows from the kind of refusal.
func (e *ServerError) Hint() string {
	switch {
	case strings.Contains(e.Text, "exceeded quota"):
		return "raise the ResourceQuota of the namespace, or ask for less"
	case strings.Contains(e.Text, "failed calling webhook"):
		return "the webhook doesn't answer: look at the Service and the pods behind it. If they can't come back before this release is deployed, " +
			"delete the webhook's configuration; one that is part of the release is created anew by it"
	case strings.Contains(e.Text, "field can not be less than"):
		return "volumes don't shrink: leave the size in the chart as it is, or move the data to a new claim"
	case strings.Contains(e.Text, "missing from spec.versions"):
		return "leave the version in the definition, with served: false if nobody is to use it any more; a chart's crds/ can be left out with --crds skip"
	case strings.Contains(e.Text, "must support resize"):
		return "the claim's StorageClass needs allowVolumeExpansion: true for its volumes to grow"
	case e.Reason == metav1.StatusReasonForbidden && strings.Contains(e.Text, "cannot "):
		return "the account deployer runs as needs the permission named above (kubectl auth can-i --list); server-side apply needs patch, and create for new objects"
	case e.Code == http.StatusUnsupportedMediaType:
		return "deployer needs Kubernetes 1.22 or newer, and as much of the servers of aggregated APIs"
	case e.Reason == metav1.StatusReasonNotFound && strings.Contains(e.Text, "namespaces "):
		return "create the namespace first, or with the chart; --create-namespace makes that of the release"
	}
	return ""
}

// explain turns the answer to a request about an object into a *ServerError.
// Errors that aren't answers of the server are returned as they are.
func explain(obj *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
	out := &ServerError{Code: int(s.Code), Reason: s.Reason, Text: s.Message}
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Field != "" {
				out.Fields = append(out.Fields, c.Field)
			}
		}
	}
	// Deployment.apps "web" is invalid: spec.x: ... The caller says which object.
	if _, rest, ok := strings.Cut(out.Text, " is invalid: "); ok && s.Reason == metav1.StatusReasonInvalid {
		out.Text = rest
	}
	if s.Code == http.StatusUnsupportedMediaType {
		out.Text = "the server doesn't know server-side apply: " + out.Text
	}
	out.Text = typedPatch.ReplaceAllString(out.Text, "")
	rbac := s.Reason == metav1.StatusReasonForbidden && strings.Contains(out.Text, " cannot ")
	if !rbac && s.Reason != metav1.StatusReasonNotFound {
		out.Text = concealed(obj, out.Text)
	}
	return out
}

var (
	typedPatch  = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): `)
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	typedValues = regexp.MustCompile(`(?s)got &value\.valueUnstructured.*`)
	invalid     = regexp.MustCompile(`Invalid value: [^:]*: `)
)

// concealed takes confidential values out of what is said of an object: all
// values if all are, else those that the object has.
func concealed(obj *unstructured.Unstructured, text string) string {
	switch secret := hide.Of(obj); {
	case !secret.Any():
		return text
	case !secret.Whole():
		var known hide.Texts
		known.Object(obj)
		return known.Hide(text)
	}
	text = typedValues.ReplaceAllString(text, "got something else (hidden)")
	text = quoted.ReplaceAllString(text, `"(hidden)"`)
	return invalid.ReplaceAllString(text, "Invalid value: (hidden): ")
}

// immutables are the words by which the API server says that a field can't be
// changed, as against being wrong. There is no machine-readable reason for it.
// k8s.io/apimachinery/pkg/api/validation (FieldImmutableErrorMsg) and
// k8s.io/kubernetes/pkg/apis/*/validation.
var immutables = []string{
	"field is immutable",
	"updates to statefulset spec for fields other than",
	"spec is immutable after creation except",
	"spec is immutable after creation",
	"cannot change roleRef",
	"may not change once set",
	"primary clusterIP can not be unset",
	"pod updates may not change fields other than",
	"updates to parameters are forbidden",
	"updates to provisioner are forbidden",
	"updates to reclaimPolicy are forbidden",
	"updates to volumeBindingMode are forbidden",
	"is immutable",
	"may not be changed in an update",
}

// undeclared says that the server's schema lacks a field of ours.
func undeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// noDryRun says that somebody between us and storage can't do dry runs: an
// admission webhook with side effects. The same request for real may be fine.
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go
func noDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run") ||
		apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "dryRun is not supported") ||
		err != nil && strings.Contains(err.Error(), "the dryRun alpha feature is disabled")
}

// noNamespace says that the object's namespace doesn't exist.
func noNamespace(err error, id kube.ID) bool {
	return notFound(err) && strings.Contains(err.Error(), "namespaces \""+id.Namespace+"\" not found")
}
