package apply

import (
	"context"
	"fmt"
	"slices"

	"deployer/apply/definition"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// A CRD determines which stored fields the server returns. A field missing from the CRD
// for a while may be lost without a trace in the metadata. A fingerprint of a custom
// resource therefore covers one generation of its CRD.

// fixedGroups are served by the API server itself, though client-go's scheme
// lacks them.
var fixedGroups = []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}

// generationOf returns the generation of the CustomResourceDefinition of a target's kind;
// empty for kinds without one. If ok is false, the generation isn't known and no
// fingerprint counts.
func (d *definitions) generationOf(t *target) (state string, ok bool) {
	gvk := t.mapping.GVK
	if scheme.Scheme.Recognizes(gvk) || slices.Contains(fixedGroups, gvk.Group) {
		return "", true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	read, ok := d.generations[t.mapping.Resource.GroupResource()]
	return read.text, ok && read.old == d.prerequisites.kindChanges(t)
}

// A generation identifies one state of a CustomResourceDefinition.
type generation struct {
	text string // uid and number; empty for a kind of an aggregated API server
	old  bool   // it was read before the release wrote the definition
}

// readGenerations reads the metadata of the definitions of the targets' kinds, each
// once.
func (d *definitions) readGenerations(ctx context.Context, targets []*target) error {
	var open []schema.GroupResource
	for _, t := range targets {
		gr := t.mapping.Resource.GroupResource()
		if _, known := d.generationOf(t); !known && d.prerequisites.deferralOf(t) == nil && !slices.Contains(open, gr) {
			open = append(open, gr)
		}
	}
	return d.a.forEach(ctx, len(open), func(i int) error { return d.readGeneration(ctx, open[i]) })
}

func (d *definitions) readGeneration(ctx context.Context, gr schema.GroupResource) error {
	id := definition.ID(gr)
	meta, err := d.a.getMeta(ctx, definition.Mapping, id)
	switch {
	case apierrors.IsForbidden(err):
		return nil // not known
	case err != nil:
		return &ObjectError{ID: id, Doing: "reading", Err: err}
	}
	read := generation{old: d.prerequisites.anyMissing(id)}
	if meta != nil {
		read.text = fmt.Sprintf("%s/%d", meta.UID, meta.Generation)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.generations[gr] = read
	return nil
}

// fingerprintInput returns the hash that a fingerprint covers: the object's manifest and
// the generation of its CRD. Empty when a fingerprint would prove nothing.
func (d *definitions) fingerprintInput(t *target) string {
	state, ok := d.generationOf(t)
	if !ok || t.manifestHash == "" {
		return ""
	}
	return t.manifestHash + state
}
