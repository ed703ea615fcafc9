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

// verbs has what operations differ in, besides where their objects come from. Those that aren't here are never carried out
// under a lock.
var verbs = map[Verb]struct {
	before, after helmrelease.HookEvent // https://helm.sh/docs/topics/charts_hooks/
	renders       bool                  // a chart; the objects and hooks of the others are those of records
	creates       bool                  // a record, whose journal tells of all objects; the others work on the latest one
	running       helmrelease.Status    // of the record until the run has ended; empty: the run leaves it as it is
	requests      []string              // by which records are written
	revision      string                // its preposition where a holder of the lock says what it does; empty: it names none

	success, failure string // descriptions, in Helm's words
}{
	Install: {
		before: helmrelease.HookPreInstall, after: helmrelease.HookPostInstall, renders: true, creates: true, running: helmrelease.StatusPendingInstall,
		requests: []string{"create", "update"}, revision: "to", success: "Install complete", failure: "Release %q failed: %s",
	},
	Upgrade: {
		before: helmrelease.HookPreUpgrade, after: helmrelease.HookPostUpgrade, renders: true, creates: true, running: helmrelease.StatusPendingUpgrade,
		requests: []string{"create", "update"}, revision: "to", success: "Upgrade complete", failure: "Upgrade %q failed: %s",
	},
	Rollback: {
		before: helmrelease.HookPreRollback, after: helmrelease.HookPostRollback, creates: true, running: helmrelease.StatusPendingRollback,
		requests: []string{"create", "update"}, revision: "to", success: "Rollback to %d", failure: "Rollback %q failed: %s",
	},
	Uninstall: {
		before: helmrelease.HookPreDelete, after: helmrelease.HookPostDelete, running: helmrelease.StatusUninstalling,
		requests: []string{"delete", "update"}, success: "Uninstallation complete", failure: "Uninstall %q failed: %s",
	},
	Test: {before: helmrelease.HookTest, requests: []string{"get", "update"}, revision: "of"},
}

// HookEvents returns the events of the hooks that run before and after what the verb does;
// empty where there are none.
func (v Verb) HookEvents() (before, after helmrelease.HookEvent) {
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
		return fmt.Sprintf(verb.failure, op.Release, oneLine(r.d.Hidden.Hide(reason(err))))
	case given != "":
		return given
	case op.Target != 0:
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
