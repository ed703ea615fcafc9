package track

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/pods"
	"deployer/track/rules"
)

const (
	// providedByControllerWithin is how long after an object became ready its controller may take to create what
	// belongs to it.
	providedByControllerWithin = 30 * time.Second
	// providedByJobWithin is how long a Job may run before what somebody misses isn't expected of it any more: nothing
	// says what it creates.
	providedByJobWithin = time.Minute
)

// A product is the ConfigMap or Secret that a custom resource has its controller create: named by a field, otherwise
// as the resource.
type product struct {
	kind string
	path []string
}

func (p product) of(o *unstructured.Unstructured) ref {
	name, _, _ := unstructured.NestedString(o.Object, p.path...)
	return ref{p.kind, cmp.Or(name, o.GetName())}
}

// providers are the kinds of which it is known what they create.
var providers = map[schema.GroupKind]product{
	{Group: "cert-manager.io", Kind: "Certificate"}:               {"Secret", []string{"spec", "secretName"}},
	{Group: "trust.cert-manager.io", Kind: "Bundle"}:              {"ConfigMap", nil},
	{Group: "external-secrets.io", Kind: "ExternalSecret"}:        {"Secret", []string{"spec", "target", "name"}},
	{Group: "external-secrets.io", Kind: "ClusterExternalSecret"}: {"Secret", []string{"spec", "externalSecretName"}},
	{Group: "bitnami.com", Kind: "SealedSecret"}:                  {"Secret", []string{"spec", "template", "metadata", "name"}},
	{Group: "secrets.hashicorp.com", Kind: "VaultStaticSecret"}:   {"Secret", []string{"spec", "destination", "name"}},
	{Group: "secrets.hashicorp.com", Kind: "VaultDynamicSecret"}:  {"Secret", []string{"spec", "destination", "name"}},
	{Group: "secrets.hashicorp.com", Kind: "VaultPKISecret"}:      {"Secret", []string{"spec", "destination", "name"}},
	{Group: "onepassword.com", Kind: "OnePasswordItem"}:           {"Secret", nil},
}

// providedObjects returns an object and what its controller creates for it.
func providedObjects(o *unstructured.Unstructured) []ref {
	out := []ref{{o.GetKind(), o.GetName()}}
	if product, known := providers[o.GroupVersionKind().GroupKind()]; known {
		out = append(out, product.of(o))
	}
	return out
}

// mayProvide reports whether something is the object itself, or may be made by its controller: by the table, and of any
// custom kind that isn't in it, what has the resource's name, alone or followed by a dash, and what its spec names.
func mayProvide(o *unstructured.Unstructured, what ref) bool {
	gk := o.GroupVersionKind().GroupKind()
	if _, known := providers[gk]; known || !rules.IsCustom(gk) {
		return slices.Contains(providedObjects(o), what)
	}
	return what.Name == o.GetName() || strings.HasPrefix(what.Name, o.GetName()+"-") || mentions(o.Object["spec"], what.Name)
}

// mentions reports whether any text of a value is a name.
func mentions(value any, name string) bool {
	switch v := value.(type) {
	case string:
		return v == name
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return mentions(item, name) })
	case map[string]any:
		return mentions(slices.Collect(maps.Values(v)), name)
	}
	return false
}

// willAppear reports whether what is missing is expected to be created soon: another tracked object
// is that, its controller creates it, or it is a Job that has begun to run not long ago.
func (w *wait) willAppear(namespace string, what pods.Missing) bool {
	now := w.opts.Now()
	return slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		switch {
		case obj.observed.object == nil || obj.target.ID.Namespace != namespace:
			return false
		case obj.gk == kube.JobKind:
			isMissing := obj.status.Finding != nil && obj.status.Finding.Missing != nil // such a Job can't create anything
			return !isMissing && obj.status.State != Failed && now.Sub(obj.timers.appliedAt) < providedByJobWithin
		case !mayProvide(obj.observed.object, ref{what.Kind, what.Name}):
			return false
		}
		limit := providedByControllerWithin
		if obj.target.ID.Kind == what.Kind {
			limit = noticedByKubeletWithin
		}
		isRecent := obj.status.State == Ready && now.Sub(obj.timers.appliedAt)-obj.status.Waited < limit
		return isRecent || !obj.status.State.IsFinal()
	})
}
