package deploy

import (
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"

	"deployer/release"
)

func TestResume(t *testing.T) {
	const event = helmrelease.HookPreUpgrade
	hook := func(manifest string) *helmrelease.Hook {
		return &helmrelease.Hook{Name: "migrate", Kind: "Job", Path: "web/templates/migrate.yaml", Manifest: manifest}
	}
	// dead is a revision whose run died after its hook, or failed by itself.
	dead := func(interrupted bool) *release.Record {
		h := hook("kind: Job")
		h.LastRun = helmrelease.HookExecution{StartedAt: helmtime.Now(), Phase: helmrelease.HookPhaseSucceeded}
		return &release.Record{
			Release: helmrelease.Release{Manifest: "same", Version: 4, Hooks: []*helmrelease.Hook{h}, Info: &helmrelease.Info{Deleted: helmtime.Now()}},
			Journal: &release.Journal{
				RunInfo: release.RunInfo{Run: "run", Attempt: "first", Interrupted: interrupted},
				Hooks:   map[string]string{hookKey(event, h): "Succeeded", hookKey(helmrelease.HookPreDelete, h): "Succeeded"},
			},
		}
	}
	// One that died before it came to uninstall anything.
	upgrading := dead(true)
	upgrading.Info.Deleted = helmtime.Time{}
	for name, c := range map[string]struct {
		verb     Verb
		manifest string
		hook     string
		latest   *release.Record
		event    helmrelease.HookEvent
		finished bool
		attempt  string
	}{
		"goes on":                         {Upgrade, "same", "kind: Job", dead(true), event, true, "first"},
		"another hook of the same name":   {Upgrade, "same", "kind: Pod", dead(true), event, false, "first"},
		"another event":                   {Upgrade, "same", "kind: Job", dead(true), helmrelease.HookPostUpgrade, false, "first"},
		"something else is deployed":      {Upgrade, "other", "kind: Job", dead(true), event, false, ""},
		"it failed by itself":             {Upgrade, "same", "kind: Job", dead(false), event, false, ""},
		"no run before":                   {Upgrade, "same", "kind: Job", nil, event, false, ""},
		"of another tool":                 {Upgrade, "same", "kind: Job", &release.Record{Release: helmrelease.Release{Manifest: "same"}}, event, false, ""},
		"uninstall goes on":               {Uninstall, "", "", dead(true), helmrelease.HookPreDelete, true, "first"},
		"uninstall after another run":     {Uninstall, "", "", upgrading, helmrelease.HookPreUpgrade, false, ""},
		"uninstall after a failed one":    {Uninstall, "", "", dead(false), helmrelease.HookPreDelete, false, ""},
		"tests run each time they're run": {Test, "same", "kind: Job", dead(true), event, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			op := &Operation{Verb: c.verb, Next: c.latest}
			h := hook("kind: Job")
			if c.verb != Uninstall {
				h = hook(c.hook)
				op.Next = &release.Record{
					Release: helmrelease.Release{Manifest: c.manifest, Hooks: []*helmrelease.Hook{h}}, Journal: &release.Journal{},
				}
			}
			if c.verb != Test { // which doesn't decide
				op.resumeAttempt(c.latest)
			}
			r := &hookRunner{run: &run{op: op, emit: func(Event) {}}, event: c.event}
			if got := r.hasFinished(h); got != c.finished {
				t.Errorf("finished = %v, want %v", got, c.finished)
			}
			if got := op.Next.Journal.Attempt; got != c.attempt {
				t.Errorf("attempt = %q, want %q", got, c.attempt)
			}
			if c.finished && c.verb == Upgrade && h.LastRun.Phase != helmrelease.HookPhaseSucceeded {
				t.Errorf("its last run isn't in the new record: %v", h.LastRun)
			}
		})
	}
}
