package deploy

import (
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/release"
)

// resumeAttempt continues the attempt of an interrupted run with the same manifest:
// finished hooks don't run again, and running hooks are awaited. After a run recorded as
// failed, all hooks run again, as in Helm.
func (o *Operation) resumeAttempt(latest *release.Record) {
	var dead *release.Journal // of the run that died
	if latest != nil && latest.Journal != nil && latest.Journal.Interrupted {
		dead = latest.Journal
	}
	switch {
	case o.Verb == Uninstall && o.Next.Journal != nil && (dead == nil || latest.Info.Deleted.IsZero()):
		// It is the journal of the run that deployed the revision, or that died doing so.
		o.Next.Journal.Attempt, o.Next.Journal.Hooks = "", nil
	case o.Verb != Uninstall && dead != nil && latest.Manifest == o.Next.Manifest:
		o.Next.Journal.Attempt, o.Next.Journal.Hooks = dead.Attempt, maps.Clone(dead.Hooks)
		succeeded := slices.DeleteFunc(slices.Clone(latest.Hooks), func(h *helmrelease.Hook) bool { return h.LastRun.Phase != helmrelease.HookPhaseSucceeded })
		copyRuns(succeeded, o.Next.Hooks)
	}
}
