package deploy

import (
	"slices"
	"sort"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// hookEvents are the events before and after each verb's change.
// https://helm.sh/docs/topics/charts_hooks/
var hookEvents = map[Verb][2]helmrelease.HookEvent{
	Install:   {helmrelease.HookPreInstall, helmrelease.HookPostInstall},
	Upgrade:   {helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade},
	Rollback:  {helmrelease.HookPreRollback, helmrelease.HookPostRollback},
	Uninstall: {helmrelease.HookPreDelete, helmrelease.HookPostDelete},
}

// hooksFor returns the hooks of one event in the order in which they run: by weight, then
// by name. Equal ones keep Helm's order of kinds.
// (helm.sh/helm/v3/pkg/action/hooks.go)
func hooksFor(event helmrelease.HookEvent, hooks []*helmrelease.Hook) []*helmrelease.Hook {
	var out []*helmrelease.Hook
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			out = append(out, h)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].Weight != out[j].Weight {
			return out[i].Weight < out[j].Weight
		}
		return out[i].Name < out[j].Name
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
