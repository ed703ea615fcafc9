package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/fields"
	"deployer/internal/hide"
	"deployer/internal/lazyregexp"
)

// A ServerError is the API server's refusal of one object, without the
// object's name and without confidential values.
type ServerError struct {
	Answer
	Reason metav1.StatusReason
	Text   string
	Holder string // of Held: the object that has it; empty when that isn't known
}

func (e *ServerError) Error() string { return e.Text }

// Hint says what to do where that follows from the kind of refusal.
func (e *ServerError) Hint() string {
	switch e.Kind {
	case Quota:
		return "raise the ResourceQuota of the namespace, or ask for less"
	case Limit:
		return "ask for what the LimitRange of the namespace allows, or change that"
	case Policy:
		if strings.Contains(e.Text, "violates PodSecurity") {
			return "set what the pod security level of the namespace asks for, or lower its label pod-security.kubernetes.io/enforce"
		}
		return "change the object as the policy asks, or the policy and its binding"
	case WebhookSays:
		return "change the object as the webhook asks, or ask who runs the webhook"
	case WebhookDown:
		who, behind := "the webhook", "the Service"
		if m := webhookName().FindStringSubmatch(e.Text); m != nil {
			who = m[0]
		}
		if m := webhookService().FindStringSubmatch(e.Text); m != nil {
			behind = "Service/" + m[2] + "/" + m[1]
		}
		return who + " doesn't answer: look at " + behind + " and the pods behind it. If they can't come back before this release is deployed, " +
			"delete the webhook's configuration; if it is part of the release, the release creates it again"
	case Held:
		return cmp.Or(e.Holder, "another object") + " has it: choose another one, or deploy first what gives it up"
	}
	switch {
	case strings.Contains(e.Text, "field can not be less than"):
		return "volumes don't shrink: leave the size in the chart as it is, or move the data to a new claim"
	case strings.Contains(e.Text, "missing from spec.versions"), strings.Contains(e.Text, "must appear in spec.versions"): // the latter before Kubernetes 1.33
		return "keep the version in the definition, with served: false if nobody should use it any more; to leave out a chart's crds/: --crds skip"
	case strings.Contains(e.Text, "must support resize"):
		return "the claim's StorageClass needs allowVolumeExpansion: true for its volumes to grow"
	case e.Reason == metav1.StatusReasonForbidden && strings.Contains(e.Text, "cannot "):
		return "the account deployer runs as needs the permission named above (kubectl auth can-i --list); server-side apply needs patch, and create for new objects"
	case e.Code == http.StatusUnsupportedMediaType:
		return "deployer needs Kubernetes 1.22 or newer; so do the servers of aggregated APIs"
	case e.Reason == metav1.StatusReasonNotFound && strings.Contains(e.Text, "namespaces "):
		return "create the namespace first, or with the chart; --create-namespace makes that of the release"
	}
	return ""
}

var (
	webhookName    = lazyregexp.New(`webhook "[^"]+"`)
	webhookService = lazyregexp.New(`https://([^./]+)\.([^./]+)\.svc[:/]`)
)

// AsServerError turns the answer to a request about an object into a *ServerError.
// Errors that aren't answers of the server are returned as they are.
func AsServerError(obj *unstructured.Unstructured, err error) error {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	s := answer.ErrStatus
	out := &ServerError{Answer: Read(err), Reason: s.Reason, Text: s.Message}
	// Deployment.apps "web" is invalid: spec.x: ... The caller says which object.
	if _, rest, ok := strings.Cut(out.Text, " is invalid: "); ok && s.Reason == metav1.StatusReasonInvalid {
		out.Text = rest
	}
	if s.Code == http.StatusUnsupportedMediaType {
		out.Text = "the server doesn't support server-side apply: " + out.Text
	}
	out.Text = typedPatch().ReplaceAllString(out.Text, "")
	if strings.HasPrefix(out.Text, "failed to convert new object") && strings.Contains(out.Text, "quantities must match") { // it doesn't say which
		out.Text = cmp.Or(strings.Join(invalidQuantities(obj.Object, nil), "; "), out.Text)
	}
	// What the API server says by itself of permissions and of what is missing has no values.
	quotesNothing := s.Reason == metav1.StatusReasonForbidden && strings.Contains(out.Text, " cannot ") || s.Reason == metav1.StatusReasonNotFound
	if !quotesNothing || out.IsByAdmission {
		out.Text = Conceal(obj, out.Text)
	}
	return out
}

// invalidQuantities says which quantities of an object, or of a value inside it, the server can't read.
func invalidQuantities(v any, path []string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, invalidQuantities(v[name], append(slices.Clip(path), name))...)
		}
	case []any:
		for i, item := range v {
			element := fmt.Sprintf("%s[%s]", path[len(path)-1], cmp.Or(fields.ItemName(item), fmt.Sprint(i)))
			out = append(out, invalidQuantities(item, append(slices.Clip(path[:len(path)-1]), element))...)
		}
	default:
		if _, err := resource.ParseQuantity(fields.Scalar(v)); err != nil && fields.IsQuantity(path) {
			out = append(out, fmt.Sprintf("%s: %q is not a quantity, such as 500m, 2 or 128Mi", strings.Join(path, "."), fields.Scalar(v)))
		}
	}
	return out
}

var (
	typedPatch  = lazyregexp.New(`^failed to create typed patch object \([^)]*\): `)
	quoted      = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	typedValues = lazyregexp.New(`(?s)got &value\.valueUnstructured.*`)
	invalid     = lazyregexp.New(`Invalid value: [^:]*: `)
	refusing    = lazyregexp.New(`^(?:admission webhook "[^"]*" denied the request|Internal error occurred: failed calling webhook "[^"]*": failed to call webhook: Post "[^"]*"|[a-z.0-9]+ "[^"]*" is forbidden: )`)
)

// Conceal hides confidential values in a text about an object: those that the object has, and all that look like values if all of its
// are confidential. What the API server itself says of who refuses it stays.
func Conceal(obj *unstructured.Unstructured, text string) string {
	secret := hide.ConfidentialFields(obj)
	if !secret.Any() {
		return text
	}
	who := ""
	if secret.Whole() {
		who = refusing().FindString(text)
		text = typedValues().ReplaceAllString(text[len(who):], "got something else (hidden)")
		text = quoted().ReplaceAllString(text, `"(hidden)"`)
		text = invalid().ReplaceAllString(text, "Invalid value: (hidden): ")
	}
	var known hide.Texts
	known.AddObject(obj)
	return who + known.Hide(text)
}
