package deploy

import (
	"cmp"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
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

// hasDeletePolicy reports whether a hook has a delete policy. A hook without any is deleted
// before its next creation.
// https://helm.sh/docs/topics/charts_hooks/#hook-deletion-policies
func hasDeletePolicy(h *helmrelease.Hook, policy helmrelease.HookDeletePolicy) bool {
	if len(h.DeletePolicies) == 0 {
		return policy == helmrelease.HookBeforeHookCreation
	}
	return slices.Contains(h.DeletePolicies, policy)
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
