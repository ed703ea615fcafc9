package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/hide"
	"deployer/release"
)

func TestHooksRunByWeightThenName(t *testing.T) {
	hook := func(name string, weight int, events ...helmrelease.HookEvent) *helmrelease.Hook {
		return &helmrelease.Hook{Name: name, Weight: weight, Events: events}
	}
	pre, post := helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade
	hooks := []*helmrelease.Hook{
		hook("b", 5, pre), hook("z", -1, pre), hook("a", 5, pre, post), hook("other", -9, post), hook("zero", 0, pre),
	}
	var got []string
	for _, h := range hooksFor(pre, hooks) {
		got = append(got, h.Name)
	}
	if want := "z zero a b"; strings.Join(got, " ") != want {
		t.Errorf("hooksFor(pre-upgrade) = %v, want %s", got, want)
	}
}

// What selects install hooks is that nothing was ever deployed, not a flag.
func TestVerbOfARequest(t *testing.T) {
	deployed, failed, superseded := helmrelease.StatusDeployed, helmrelease.StatusFailed, helmrelease.StatusSuperseded
	uninstalled, uninstalling, pending := helmrelease.StatusUninstalled, helmrelease.StatusUninstalling, helmrelease.StatusPendingInstall
	var (
		none  *release.NoDeployedError
		inUse *NameInUseError
	)
	for _, c := range []struct {
		name    string
		first   InstallPolicy
		replace bool
		history []helmrelease.Status
		want    Verb
		err     any // pointer to the error's type; nil for none
	}{
		{"upgrade of nothing", InstallNever, false, nil, "", &none},
		{"upgrade --install of nothing", InstallIfMissing, false, nil, Install, nil},
		{"install of nothing", InstallOnly, false, nil, Install, nil},
		{"upgrade", InstallNever, false, []helmrelease.Status{deployed}, Upgrade, nil},
		{"upgrade after a failed upgrade", InstallNever, false, []helmrelease.Status{deployed, failed}, Upgrade, nil},
		{"upgrade after a failed install", InstallNever, false, []helmrelease.Status{failed}, Install, nil},
		{"upgrade --install after a killed install", InstallIfMissing, false, []helmrelease.Status{pending}, Install, nil},
		{"upgrade when only superseded are left", InstallNever, false, []helmrelease.Status{superseded, failed}, Upgrade, nil},
		{"upgrade after Helm's uninstall failed", InstallIfMissing, false, []helmrelease.Status{uninstalling}, Upgrade, nil},
		{"install of what is deployed", InstallOnly, false, []helmrelease.Status{deployed}, "", &inUse},
		{"install --replace of what is deployed", InstallOnly, true, []helmrelease.Status{deployed}, "", &inUse},
		{"install --replace after a failed install", InstallOnly, true, []helmrelease.Status{failed}, Install, nil},
		{"upgrade after uninstall --keep-history", InstallNever, false, []helmrelease.Status{superseded, uninstalled}, "", &none},
		{"upgrade --install after uninstall --keep-history", InstallIfMissing, false, []helmrelease.Status{superseded, uninstalled}, Install, nil},
		{"install after uninstall --keep-history", InstallOnly, false, []helmrelease.Status{uninstalled}, "", &inUse},
		{"install --replace after uninstall --keep-history", InstallOnly, true, []helmrelease.Status{uninstalled}, Install, nil},
	} {
		history := &release.History{Namespace: "prod", Name: "web"}
		for i, s := range c.history {
			history.Revisions = append(history.Revisions, release.Summary{Name: "web", Revision: i + 1, Status: s})
		}
		got, err := decideVerb(UpgradeRequest{Name: "web", Install: c.first, Replace: c.replace}, history)
		if got != c.want || (err != nil) != (c.err != nil) || c.err != nil && !errors.As(err, c.err) {
			t.Errorf("%s: verbFor = %q, %v; want %q and an error of %T", c.name, got, err, c.want, c.err)
		}
	}
}

// The reason goes into tables.
func TestDescriptionsAreOneLine(t *testing.T) {
	err := errors.New("2 objects were rejected:\n  Secret/prod/a: no\n  Secret/prod/b: no, too")
	r := &run{d: &Deployer{Hidden: &hide.Texts{}}, op: &Operation{Verb: Upgrade, Release: "web", Next: newRecord(helmrelease.Release{}, "", "")}}
	if got, want := r.description(err), `Upgrade "web" failed: 2 objects were rejected: Secret/prod/a: no; Secret/prod/b: no, too`; got != want {
		t.Errorf("description = %q, want %q", got, want)
	}
}

func TestDescriptionsOfSuccess(t *testing.T) {
	for _, c := range []struct {
		op   *Operation
		want string
	}{
		{&Operation{Verb: Install, Next: newRecord(helmrelease.Release{}, "", "")}, "Install complete"},
		{&Operation{Verb: Upgrade, Next: newRecord(helmrelease.Release{}, "", "hotfix")}, "hotfix"},
		{&Operation{Verb: Rollback, Target: 3, Next: newRecord(helmrelease.Release{}, "", "")}, "Rollback to 3"},
		// The record of an uninstall is that of the last revision, and has its description.
		{&Operation{Verb: Uninstall, Next: newRecord(helmrelease.Release{}, "", "hotfix")}, "Uninstallation complete"},
		{&Operation{Verb: Uninstall, Removal: Removal{Description: "moved"}, Next: newRecord(helmrelease.Release{}, "", "")}, "moved"},
	} {
		if got := (&run{op: c.op}).description(nil); got != c.want {
			t.Errorf("description of %s = %q, want %q", c.op.Verb, got, c.want)
		}
	}
}

// A failure of the step isn't blamed on a signal that came after it, and what
// the step says of a signal is not the reason.
func TestStoppedNamesTheCause(t *testing.T) {
	cause := errors.New("stopped by SIGTERM")
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{step: "wait"}
	if failure := errors.New("boom"); r.stoppedError(ctx, failure) != failure {
		t.Error("a failure of its own was replaced")
	}
	cancel(cause)
	err := r.stoppedError(ctx, fmt.Errorf("applying: %w", context.Canceled))
	if want := "stopped by SIGTERM in step wait"; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("stopped = %v, want %s", err, want)
	}
}

func TestHasChanges(t *testing.T) {
	change := func(a decide.Action) *apply.Plan {
		return &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{{Action: a}}}}}
	}
	for _, c := range []struct {
		op   Operation
		want bool
	}{
		{Operation{Plan: change(decide.Unchanged)}, false},
		{Operation{Plan: change(decide.Keep)}, false},
		{Operation{Plan: change(decide.Update)}, true},
		{Operation{Plan: change(decide.Unchanged), Hooks: Hooks{Before: []*helmrelease.Hook{{}}}}, false},
		{Operation{Plan: change(decide.Unchanged), NewNamespace: true}, true},
	} {
		if got := c.op.HasChanges(); got != c.want {
			t.Errorf("HasChanges(%v) = %v, want %v", c.op.Plan.Waves, got, c.want)
		}
	}
}
