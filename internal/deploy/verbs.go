package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Verb is what an operation does to a release.
type Verb string

// The verbs.
const (
	Install   Verb = "install"
	Upgrade   Verb = "upgrade"
	Rollback  Verb = "rollback"
	Uninstall Verb = "uninstall"
	Test      Verb = "test"  // run its tests
	Watch     Verb = "watch" // follow what is there

	// recoverOnly is the verb of an operation without a plan, which is never carried out.
	recoverOnly Verb = "recover"
)

// verbs has what a verb writes into its record, in Helm's words, and the events of its hooks.
// https://helm.sh/docs/topics/charts_hooks/
var verbs = map[Verb]struct {
	before, after    helmrelease.HookEvent
	pending          helmrelease.Status // of a record whose run hasn't ended
	success, failure string             // descriptions
}{
	Install:   {helmrelease.HookPreInstall, helmrelease.HookPostInstall, helmrelease.StatusPendingInstall, "Install complete", "Release %q failed: %s"},
	Upgrade:   {helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade, helmrelease.StatusPendingUpgrade, "Upgrade complete", "Upgrade %q failed: %s"},
	Rollback:  {helmrelease.HookPreRollback, helmrelease.HookPostRollback, helmrelease.StatusPendingRollback, "Rollback to %d", "Rollback %q failed: %s"},
	Uninstall: {helmrelease.HookPreDelete, helmrelease.HookPostDelete, "", "Uninstallation complete", "Uninstall %q failed: %s"},
}

// HookEvents returns the events of the hooks that run before and after what the verb does;
// empty where there are none.
// https://helm.sh/docs/topics/charts_hooks/
func (v Verb) HookEvents() (before, after helmrelease.HookEvent) {
	if v == Test {
		return helmrelease.HookTest, ""
	}
	return verbs[v].before, verbs[v].after
}

// description returns the description for the record: after success the user's or else
// Helm's, after a failure Helm's with the reason.
func (r *run) description(err error) string {
	op, verb := r.op, verbs[r.op.Verb]
	given := op.Next.Info.Description
	if op.Verb == Uninstall {
		given = op.Removal.Description
	}
	switch {
	case err != nil:
		return fmt.Sprintf(verb.failure, op.Release, oneLine(r.Hidden.Hide(reason(err))))
	case given != "":
		return given
	case op.Verb == Rollback:
		return fmt.Sprintf(verb.success, op.Target)
	}
	return verb.success
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timed out: " + err.Error()
	}
	return err.Error()
}

// oneLine makes one line of a text.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}
