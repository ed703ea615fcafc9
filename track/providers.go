package track

import (
	_ "embed" // for the table
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/rules"
)

const (
	// providedByControllerWithin is how long after an object became ready its controller may take to create what
	// belongs to it.
	providedByControllerWithin = 30 * time.Second
	// providedByAnyWithin is how long a Job, or an object of a custom kind that isn't in the table, may take to create
	// anything: nobody knows what.
	providedByAnyWithin = time.Minute
)

// A provider is a kind whose objects make ConfigMaps or Secrets appear. Its fields are described in the table.
type provider struct {
	Group, Kind, Makes  string
	NameIn              []string
	PrefixedWithOwnName bool
}

//go:embed providers.yaml
var providersData []byte

// providers are the rows of the table. It is read when something is first missed.
var providers = sync.OnceValue(func() (all []provider) {
	if err := yaml.UnmarshalStrict(providersData, &all); err != nil {
		panic("providers.yaml: " + err.Error()) // a test reads it
	}
	return all
})

// providerOf returns the row of a kind.
func providerOf(gk schema.GroupKind) (provider, bool) {
	i := slices.IndexFunc(providers(), func(p provider) bool { return rules.IsOfKind(gk, p.Group, p.Kind) })
	if i < 0 {
		return provider{}, false
	}
	return providers()[i], true
}

// makesFor reports whether an object of the kind makes something.
func (p provider) makesFor(o *unstructured.Unstructured, what finding.Missing) bool {
	if p.Makes != "" && p.Makes != what.Kind {
		return false
	}
	var names []string
	for _, path := range p.NameIn {
		names = append(names, textsAt(o.Object, path)...)
	}
	if p.PrefixedWithOwnName {
		return slices.Contains(names, what.Name) || strings.HasPrefix(what.Name, o.GetName()+"-")
	}
	return slices.Contains(names, what.Name) || len(names) == 0 && what.Name == o.GetName()
}

// textsAt returns the texts at a path of fields that aren't empty.
func textsAt(value any, path string) []string {
	if path == "" {
		if text, _ := value.(string); text != "" {
			return []string{text}
		}
		return nil
	}
	step, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(step, "[]")
	fields, _ := value.(map[string]any)
	if !isList {
		return textsAt(fields[name], rest)
	}
	items, _ := fields[name].([]any)
	var texts []string
	for _, item := range items {
		texts = append(texts, textsAt(item, rest)...)
	}
	return texts
}

// isOrMakes reports whether something is an object, or by the table made for it by its controller.
func isOrMakes(o *unstructured.Unstructured, what finding.Missing) bool {
	p, isProvider := providerOf(o.GroupVersionKind().GroupKind())
	return what.Kind == o.GetKind() && what.Name == o.GetName() || isProvider && p.makesFor(o, what) || what.Kind == "Secret" && what.Name == connectionSecretOf(o)
}

// connectionSecretOf is the Secret in which an object of Crossplane, or of a kind made with it, has what one needs to
// connect to it; empty when it has none.
// https://docs.crossplane.io/latest/managed-resources/managed-resources/#writeconnectionsecrettoref
func connectionSecretOf(o *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// mayMakeAnything reports whether nobody knows what a namespaced object makes: it is a Job, or of a custom kind that isn't in
// the table.
func mayMakeAnything(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	_, isProvider := providerOf(gk)
	return gk == kube.JobKind || rules.IsCustom(gk) && !isProvider
}

// willAppear reports whether what is missing is expected to be created soon: another tracked object is that or its controller
// creates it, or there is one of which nobody knows what it creates, and which was applied not long ago.
func (w *wait) willAppear(namespace string, what finding.Missing) bool {
	now := w.opts.Now()
	return slices.ContainsFunc(w.objects, func(obj *trackedObject) bool {
		o := obj.observed.object
		switch {
		case o == nil || obj.target.ID.Namespace != namespace && obj.target.ID.Namespace != "":
			return false
		case !isOrMakes(o, what):
			misses := obj.status.Finding != nil && obj.status.Finding.Missing != nil // a Job that can't start creates nothing
			return mayMakeAnything(o) && obj.target.ID.Namespace == namespace && !misses && obj.status.State != Failed && obj.clock.at(now).Sub(obj.timers.appliedAt) < providedByAnyWithin
		}
		limit := providedByControllerWithin
		if obj.target.ID.Kind == what.Kind {
			limit = noticedByKubeletWithin
		}
		isRecent := obj.status.State == Ready && obj.clock.at(now).Sub(obj.timers.appliedAt)-obj.status.Waited < limit
		return isRecent || !obj.status.State.IsFinal()
	})
}
