package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// definitions are the CustomResourceDefinitions that concern a release: those
// that it brings, and those that are in the cluster.
type definitions struct {
	p           *planning
	released    []*unstructured.Unstructured             // of the release, without those that stay as they are
	kinds       map[schema.GroupVersionKind]kube.Mapping // that released define
	kept        map[schema.GroupVersionKind]*Change      // kinds of the definitions that stay as they are, with the decision
	live        memo[kube.ID, *unstructured.Unstructured]
	generations sync.Map // of generation by schema.GroupResource
}

func newDefinitions(p *planning, manifests []kube.Manifest) *definitions {
	d := &definitions{p: p, kept: map[schema.GroupVersionKind]*Change{}}
	for _, m := range manifests {
		if kube.IDOf(m.Object).IsCRD() {
			d.released = append(d.released, m.Object)
		}
	}
	d.kinds = definition.Kinds(d.unsettled()...)
	return d
}

// unsettled are those of the release that are still to be written, or may be. Of the others the cluster's count,
// which may have been changed since.
func (d *definitions) unsettled() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(d.released), func(crd *unstructured.Unstructured) bool { return d.p.settled[kube.IDOf(crd)] != nil })
}

// dropUnused ignores the definitions of crds/ that stay as they are in the cluster: the
// kind is then as the cluster's definition says.
func (d *definitions) dropUnused(crds []*target) {
	kept := map[string]bool{}
	for _, t := range crds {
		if c := t.decided; c != nil && (c.Action == decide.Keep || c.Action == decide.Unchanged && d.p.a.opts.CRDs.leavesExisting()) {
			kept[t.id.Name] = true
			for gvk := range definition.Kinds(t.obj) {
				d.kept[gvk] = c
			}
		}
	}
	d.released = slices.DeleteFunc(d.released, func(crd *unstructured.Unstructured) bool { return kept[crd.GetName()] })
	d.kinds = definition.Kinds(d.unsettled()...)
}

// whyUnused returns the error for a kind that the cluster lacks. If a definition of the
// chart has the kind but isn't used, the error says why.
func (d *definitions) whyUnused(gvk schema.GroupVersionKind, unknown *kube.NoKindMatchError) error {
	c, ok := d.kept[gvk]
	if !ok {
		return unknown
	}
	return fmt.Errorf("%w; %s of %s has it, and is not used: %s", unknown, c.ID, c.Source, c.Reason)
}

// version returns the entry of a target's version in the CustomResourceDefinition of its
// kind, the release's or the cluster's. It is nil for kinds that have none, and when the
// account may not read them.
func (d *definitions) version(ctx context.Context, t *target) (map[string]any, error) {
	gvk, id := t.mapping.GVK, t.definition()
	for _, crd := range d.unsettled() {
		if crd.GetName() == id.Name {
			return definition.Version(crd, gvk.Version), nil
		}
	}
	crd, err := d.inCluster(ctx, id)
	switch {
	case err != nil:
		return nil, &ObjectError{ID: t.id, Source: t.source, Doing: "looking for immutable fields of", Err: err}
	case crd == nil:
		return nil, nil
	}
	return definition.Version(crd, gvk.Version), nil
}

// inCluster reads a CustomResourceDefinition of the cluster, once. It is nil
// where there is none, and when the account may not read it.
func (d *definitions) inCluster(ctx context.Context, id kube.ID) (*unstructured.Unstructured, error) {
	return d.live.get(id, func() (*unstructured.Unstructured, error) {
		crd, err := d.p.a.get(ctx, definition.Mapping, id)
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", id, err)
		}
		return crd, nil
	})
}

// fieldsCalledImmutable returns which fields a refusal by the API server's own validation says are immutable, not one by
// a policy or a webhook, which may forbid the change for another reason; see definition.ImmutableFields.
func (d *definitions) fieldsCalledImmutable(t *target, f *facts, refusal verify.Answer) ([]string, error) {
	isInvalid := apierrors.IsInvalid(refusal.Err)
	if refusal.IsByAdmission || !isInvalid && !apierrors.IsForbidden(refusal.Err) {
		return nil, nil
	}
	var version map[string]any
	if isInvalid && len(refusal.Causes) > 0 && !kube.IsBuiltinGroup(t.id.Group) {
		var err error
		if version, err = f.version.get(func(ctx context.Context) (map[string]any, error) { return d.version(ctx, t) }); err != nil {
			return nil, err
		}
	}
	return definition.ImmutableFields(refusal.Causes, version), nil
}

// isServed reports whether the API server serves all versions that a definition of the release serves.
func (d *definitions) isServed(ctx context.Context, t *target) bool {
	kinds := definition.Kinds(t.obj)
	for gvk := range kinds {
		if _, err := d.p.a.cluster.Mapping(ctx, gvk, false); err != nil {
			return false
		}
	}
	return len(kinds) > 0
}

// servesVersion reports whether the server still serves the
// target's kind in an API version. If the release changes the CRD, the new CRD decides,
// even once it is applied, because discovery lags behind.
func (d *definitions) servesVersion(ctx context.Context, t *target, apiVersion string) bool {
	gvk := schema.FromAPIVersionAndKind(apiVersion, t.mapping.GVK.Kind)
	if d.p.prerequisites.of(t.definition()).isExpected {
		_, comes := d.kinds[gvk]
		return comes
	}
	_, err := d.p.a.cluster.Mapping(ctx, gvk, false)
	return !errors.As(err, new(*kube.NoKindMatchError)) // any other error counts as served
}
