package deploy

import (
	"cmp"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/kube"
)

// hooksFor returns the hooks of one event in the order in which they run: by weight, then
// by name. Equal ones keep Helm's order of kinds.
// (helm.sh/helm/v3/pkg/action/hooks.go)
func hooksFor(event helmrelease.HookEvent, hooks []*helmrelease.Hook) []*helmrelease.Hook {
	out := slices.DeleteFunc(slices.Clone(hooks), func(h *helmrelease.Hook) bool { return !slices.Contains(h.Events, event) })
	slices.SortStableFunc(out, func(a, b *helmrelease.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// objectsOfHooks returns the objects of hooks, each hook once, even if it runs at two
// events. Helm records invalid hooks, such as ones without a name, and fails only when
// they run; unusable has their errors.
func objectsOfHooks(hooks []*helmrelease.Hook) (out []kube.Manifest, unusable []error) {
	seen := map[*helmrelease.Hook]bool{}
	for _, h := range hooks {
		if seen[h] {
			continue
		}
		seen[h] = true
		objects, err := objectsOfHook(h)
		if err != nil {
			unusable = append(unusable, err)
			continue
		}
		out = append(out, objects...)
	}
	return out, unusable
}

// objectsOfHook returns the objects of a hook: one, unless it is a list. As in Helm, the annotations of the list
// make it a hook and say when its objects are deleted; here each object gets them.
// helm.sh/helm/v3/pkg/releaseutil/manifest_sorter.go
func objectsOfHook(h *helmrelease.Hook) ([]kube.Manifest, error) {
	objects, err := chart.ParseHook(h)
	for _, m := range objects {
		if m.Object.GetKind() == h.Kind {
			continue // the hook itself, and not an item of a list
		}
		annotations := m.Object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[helmrelease.HookAnnotation] = joined(h.Events)
		delete(annotations, helmrelease.HookDeleteAnnotation) // Helm doesn't read it here
		if len(h.DeletePolicies) > 0 {
			annotations[helmrelease.HookDeleteAnnotation] = joined(h.DeletePolicies)
		}
		m.Object.SetAnnotations(annotations)
	}
	return objects, err
}

func joined[T ~string](words []T) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ",")
}

// copyRuns copies the last runs of hooks to the same hooks of a record.
func copyRuns(from, to []*helmrelease.Hook) {
	for _, h := range from {
		for _, same := range to {
			if same.Path == h.Path && same.Kind == h.Kind && same.Name == h.Name && !h.LastRun.StartedAt.IsZero() {
				same.LastRun = h.LastRun
			}
		}
	}
}
