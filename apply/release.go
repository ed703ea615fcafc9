package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// What Helm writes on the objects of a release.
// helm.sh/helm/v3/pkg/action/validate.go
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedBy           = "Helm"
	releaseName         = "meta.helm.sh/release-name"
	releaseNamespace    = "meta.helm.sh/release-namespace"
	managedByHelmFilter = managedByLabel + "=" + managedBy
)

// stamp writes our ownership on obj.
func (o Owner) stamp(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedByLabel] = managedBy
	obj.SetLabels(labels)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[releaseName] = o.Release
	annotations[releaseNamespace] = o.Namespace
	obj.SetAnnotations(annotations)
}

// ownerOf reads who an object belongs to; nobody is the empty Owner.
func ownerOf(obj *unstructured.Unstructured) Owner {
	a := obj.GetAnnotations()
	return Owner{Release: a[releaseName], Namespace: a[releaseNamespace]}
}

// checkOwnership checks that a live object is ours, or may become ours; adopting is true
// in the latter case. The words are those of Helm's checkOwnership.
func (p *planning) checkOwnership(t *target, live *unstructured.Unstructured) (adopting bool, err error) {
	if t.fromCRDs {
		return false, nil
	}
	us, owner := p.a.owner, ownerOf(live)
	if owner == (Owner{Release: us.Release}) || owner == (Owner{Namespace: us.Namespace}) {
		owner = Owner{} // somebody began to adopt it by hand
	}
	if owner == us || owner == (Owner{}) && p.history.wasHook(t.id) && isHook(live) {
		// Helm puts no ownership on what its hooks make. (helm#8944)
		return false, nil
	}
	if p.mayAdopt(t, owner) {
		return true, nil
	}
	return false, &OwnershipError{ID: t.id, Owner: owner, Text: ownershipText(us, live)}
}

func (p *planning) mayAdopt(t *target, owner Owner) bool {
	opts := p.a.opts
	if adoptable(opts.Adopt, t.id) {
		return true
	}
	if owner == (Owner{}) {
		return opts.TakeOwnership
	}
	return slices.Contains(opts.TakeOwnershipFrom, "*") || slices.Contains(opts.TakeOwnershipFrom, owner.String())
}

// unusedAdoptions warns of objects that may be adopted and that the chart
// doesn't have: a misspelt one would be looked for in vain.
func (p *planning) unusedAdoptions() {
	for _, entry := range p.a.opts.Adopt {
		used := false
		for id := range p.targetsByID {
			used = used || adoptable([]string{entry}, id)
		}
		if !used {
			p.warnings.add(kube.ID{}, "", "%s was to be adopted, and the chart has no object of that kind and name (kind/name or kind/namespace/name)", entry)
		}
	}
}

func ownershipText(us Owner, live *unstructured.Unstructured) string {
	var errs []string
	check := func(what, key, got, want string) {
		switch got {
		case want:
		case "":
			errs = append(errs, fmt.Sprintf("%s validation error: missing key %q: must be set to %q", what, key, want))
		default:
			errs = append(errs, fmt.Sprintf("%s validation error: key %q must equal %q: current value is %q", what, key, want, got))
		}
	}
	check("label", managedByLabel, live.GetLabels()[managedByLabel], managedBy)
	check("annotation", releaseName, live.GetAnnotations()[releaseName], us.Release)
	check("annotation", releaseNamespace, live.GetAnnotations()[releaseNamespace], us.Namespace)
	return strings.Join(errs, "; ")
}

// adoptable says whether a list of kind/name or kind/namespace/name has id.
func adoptable(list []string, id kube.ID) bool {
	for _, entry := range list {
		parts := strings.Split(entry, "/")
		switch len(parts) {
		case 2:
			if strings.EqualFold(parts[0], id.Kind) && parts[1] == id.Name {
				return true
			}
		case 3:
			if strings.EqualFold(parts[0], id.Kind) && parts[1] == id.Namespace && parts[2] == id.Name {
				return true
			}
		}
	}
	return false
}

// keeps reads helm.sh/resource-policy as Helm does.
// helm.sh/helm/v3/pkg/action/resource_policy.go
func keeps(annotations map[string]string) bool { return resourcePolicy(annotations) == "keep" }

func resourcePolicy(annotations map[string]string) string {
	return strings.ToLower(strings.TrimSpace(annotations[KeepAnnotation]))
}

// hasUnknownPolicy says that a resource policy is none that Helm knows: a misspelt keep must
// not cost an object its life.
func hasUnknownPolicy(annotations map[string]string) bool {
	switch resourcePolicy(annotations) {
	case "", "keep", "delete":
		return false
	}
	return true
}

// mayBeKept says that an object isn't to be deleted, or that its policy may have
// meant that.
func mayBeKept(annotations map[string]string) bool {
	return keeps(annotations) || hasUnknownPolicy(annotations)
}

func isHook(obj *unstructured.Unstructured) bool {
	_, ok := obj.GetAnnotations()[hookAnnotation]
	return ok
}

const hookAnnotation = "helm.sh/hook"
