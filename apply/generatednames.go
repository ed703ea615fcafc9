package apply

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"deployer/apply/provenance"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// maxGeneratedName is the length of a generated name at most, and randomSuffix that of its random end.
// k8s.io/apiserver/pkg/storage/names/generate.go
const maxGeneratedName, randomSuffix = 63, 5

// generatedBase is what the names begin with that the API server generates from a generateName.
func generatedBase(generateName string) string {
	return generateName[:min(len(generateName), maxGeneratedName-randomSuffix)]
}

// nameOf returns the name of a hook's object; one that has generateName gets it as from the API server.
// In one attempt it is always the same, so that a hook that a killed run began is found.
func (r hookRun) nameOf(obj *unstructured.Unstructured) string {
	if name := obj.GetName(); name != "" {
		return name
	}
	suffix := rand.String(randomSuffix)
	if r.attempt != "" {
		suffix = fmt.Sprintf("%x", sha256.Sum256([]byte(r.hash+r.attempt)))[:randomSuffix]
	}
	return generatedBase(obj.GetGenerateName()) + suffix
}

// allGenerated ends the name of the identity that stands for all objects of a generateName: web-* for
// web-. It isn't valid in the name of a Job or a Pod.
const allGenerated = "*"

// findGenerated replaces each orphan that stands for all objects of a generateName by those that
// hooks of this release have made. Nothing is listed if there is no such orphan.
func (p *pruner) findGenerated(ctx context.Context, list []*orphan) ([]*orphan, error) {
	var out []*orphan
	isKnown := func(id kube.ID) bool {
		return slices.ContainsFunc(slices.Concat(out, list), func(o *orphan) bool { return o.ID == id })
	}
	for _, o := range list {
		generateName, isGenerated := strings.CutSuffix(o.ID.Name, allGenerated)
		if !isGenerated || generateName == "" || o.obstacle != (obstacle{}) || !kube.RunsToEnd(o.ID.GroupKind()) {
			out = append(out, o)
			continue
		}
		at := collection{mapping: o.mapping, namespace: o.ID.Namespace}
		all, err := p.finder.listMetaPage(ctx, at, metav1.ListOptions{LabelSelector: provenance.ManagedByHelmSelector})
		if apierrors.IsForbidden(err) {
			o.obstacle = obstacle{"there is no permission to list objects with generated names, so it is unknown what the hook has left", "list"}
			out = append(out, o)
			continue
		}
		if err != nil {
			return nil, listError(at, err)
		}
		for i := range all.Items {
			found, meta := *o, &all.Items[i]
			found.ID.Name = meta.Name
			if p.isGeneratedByHook(meta, generateName) && !isKnown(found.ID) {
				out = append(out, &found)
			}
		}
	}
	return out, nil
}

// isGeneratedByHook reports whether a hook of this release with a generateName has made an object. A copy that
// somebody has made of such an object has a name of its own.
func (p *pruner) isGeneratedByHook(live metav1.Object, generateName string) bool {
	_, ran := live.GetAnnotations()[annotation.HookRun.Name]
	base := generatedBase(generateName)
	return ran && provenance.OwnerOf(live) == p.a.owner && live.GetGenerateName() == generateName &&
		strings.HasPrefix(live.GetName(), base) && len(live.GetName()) == len(base)+randomSuffix
}
