package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// The definition of a kind decides what of an object comes back from storage: a
// field that it lacked for a while may be gone, and no metadata tells. So a mark
// of a custom resource is about one generation of its CustomResourceDefinition.

// fixedGroups are served by the API server itself, though client-go's scheme
// lacks them.
var fixedGroups = []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}

// defined tells which generation of its CustomResourceDefinition the kind of a
// target has; ok is false when that can't be known, and no mark proves anything.
func (p *planning) defined(t *target) (state string, ok bool) {
	gvk := t.mapping.GVK
	if scheme.Scheme.Recognizes(gvk) || slices.Contains(fixedGroups, gvk.Group) {
		return "", true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, ok := p.states[t.mapping.Resource.GroupResource()]
	return seen.state, ok && seen.before == p.kindChanges(t)
}

// A kindState is the state of a definition, and whether it was read before the
// release wrote it.
type kindState struct {
	state  string
	before bool
}

// lookAtKinds reads the metadata of the definitions of the targets' kinds, each
// once.
func (p *planning) lookAtKinds(ctx context.Context, targets []*target) error {
	var open []schema.GroupResource
	for _, t := range targets {
		gr := t.mapping.Resource.GroupResource()
		if _, known := p.defined(t); !known && p.notYet(t) == nil && !slices.Contains(open, gr) {
			open = append(open, gr)
		}
	}
	return p.a.each(ctx, len(open), func(i int) error { return p.lookAtKind(ctx, open[i]) })
}

func (p *planning) lookAtKind(ctx context.Context, gr schema.GroupResource) error {
	id := definitionOf(gr)
	meta, err := p.a.getMeta(ctx, crdMapping, id)
	switch {
	case apierrors.IsForbidden(err):
		return nil // not known
	case err != nil:
		return &ObjectError{ID: id, Doing: "reading", Err: err}
	}
	seen := kindState{before: p.arrivals.missing(id)} // no state: of an aggregated API server
	if meta != nil {
		seen.state = fmt.Sprintf("%s/%d", meta.UID, meta.Generation)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[gr] = seen
	return nil
}

// proof is the hash of what the object would be made from; empty when nothing
// could be proven with it.
func (p *planning) proof(t *target) string {
	state, ok := p.defined(t)
	if !ok || t.raw == "" {
		return ""
	}
	return t.raw + state
}
