package apply

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/provenance"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// anyName ends the name that stands for all objects that were generated from one name. No Job and no
// Pod can be called so.
const anyName = "*"

// namedLike returns the identity that stands for all objects with a generateName: with the name web-* for web-.
func namedLike(id kube.ID, generateName string) kube.ID {
	id.Name = generateName + anyName
	return id
}

// findGenerated replaces each orphan that stands for objects with generated names by those that
// hooks of this release have made. Nothing is listed if there is no such orphan.
func (p *pruner) findGenerated(ctx context.Context, list []orphan) ([]orphan, error) {
	var out []orphan
	isKnown := func(id kube.ID) bool {
		return slices.ContainsFunc(out, func(o orphan) bool { return o.id == id }) ||
			slices.ContainsFunc(list, func(o orphan) bool { return o.id == id })
	}
	for _, o := range list {
		generateName, isGenerated := strings.CutSuffix(o.id.Name, anyName)
		gk := o.id.GroupKind()
		if !isGenerated || generateName == "" || o.kindUnlisted || gk != kube.JobKind && gk != kube.PodKind {
			out = append(out, o)
			continue
		}
		all, err := p.observer.listMetaPage(ctx, o.collection(), metav1.ListOptions{LabelSelector: provenance.ManagedByHelmSelector})
		if apierrors.IsForbidden(err) {
			o.unlistable = true
			out = append(out, o)
			continue
		}
		if err != nil {
			return nil, listError(o.collection(), err)
		}
		for i := range all.Items {
			found, meta := o, &all.Items[i]
			found.id.Name = meta.Name
			if p.isGeneratedByHook(meta, generateName) && !isKnown(found.id) {
				out = append(out, found)
			}
		}
	}
	return out, nil
}

// isGeneratedByHook reports whether a hook of this release with a generateName has made an object. A copy that somebody
// has made of one has a name of its own.
func (p *pruner) isGeneratedByHook(live metav1.Object, generateName string) bool {
	_, ran := live.GetAnnotations()[annotation.HookRun.Name]
	base := beforeRandom(generateName)
	return ran && live.GetGenerateName() == generateName && strings.HasPrefix(live.GetName(), base) && len(live.GetName()) == len(base)+random && provenance.OwnerOf(live) == p.a.owner
}
