package deploy

import (
	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/release"
)

// newRecord returns the record of a new revision.
func newRecord(content helmrelease.Release, notes, description string) *release.Record {
	content.Info = &helmrelease.Info{Notes: notes, Description: description}
	content.Hooks = withoutLastRuns(content.Hooks)
	return &release.Record{Release: content, Journal: &release.Journal{}}
}

// withoutLastRuns copies hooks without the outcomes of an earlier run.
func withoutLastRuns(hooks []*helmrelease.Hook) []*helmrelease.Hook {
	out := make([]*helmrelease.Hook, 0, len(hooks))
	for _, h := range hooks {
		hook := *h
		hook.LastRun = helmrelease.HookExecution{}
		out = append(out, &hook)
	}
	return out
}
