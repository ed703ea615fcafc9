package release

import (
	"cmp"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/program"
)

// inProgress is Helm 3's message, which scripts search for.
const inProgress = "another operation (install/upgrade/rollback) is in progress"

// NotFoundError says that a release, or one revision of it, has no record.
type NotFoundError struct {
	Namespace, Name string
	Revision        int // 0 for the release as a whole
	// Vanished says that there was such a revision when the history was read.
	Vanished bool
}

func (e *NotFoundError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("release: not found: %s/%s", e.Namespace, e.Name)
	}
	return fmt.Sprintf("%s/%s has no revision %d", e.Namespace, e.Name, e.Revision)
}

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	if e.Revision == 0 {
		return fmt.Sprintf("to see the releases there: "+program.OnCluster+" list -a -n %s; everywhere: "+program.OnCluster+" list -a -A", e.Namespace)
	}
	return fmt.Sprintf("to see the revisions: "+program.OnCluster+" history -n %s %s", e.Namespace, e.Name)
}

// NoDeployedError says that there is no deployed revision to upgrade from.
type NoDeployedError struct {
	Namespace, Name string
	NoNamespace     bool // there isn't even the namespace
}

func (e *NoDeployedError) Error() string {
	return fmt.Sprintf("%q has no deployed releases", e.Name)
}

// Hint says what to do about it.
func (e *NoDeployedError) Hint() string {
	install := program.OnCluster + " upgrade --install"
	if e.NoNamespace {
		install += " --create-namespace"
	}
	return fmt.Sprintf("to install it: %s -n %s %s CHART", install, e.Namespace, e.Name)
}

// BusyError says that another run works on the release right now.
type BusyError struct {
	Namespace, Name string
	Holder          Holder
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: release %s/%s is held by %s", inProgress, e.Namespace, e.Name, e.Holder)
}

// Hint says what to do about it.
func (e *BusyError) Hint() string {
	return "to wait for it: --lock-timeout 10m; if it is killed, the next run takes over by itself"
}

// PendingError says that a revision is pending, and it is unknown whether the run that
// works on it is alive.
type PendingError struct {
	Namespace, Name string
	Revision        int
	Status          helmrelease.Status
	Holder          string        // empty for Helm's records
	Age             time.Duration // since the record was last written, by the server's clock
	Grace           time.Duration // at this age it is recovered automatically
}

func (e *PendingError) Error() string {
	who := cmp.Or(e.Holder, "Helm or another tool, so deployer can't tell whether it still runs")
	since := ""
	if e.Age > 0 {
		since = " for " + e.Age.Round(time.Second).String()
	}
	return fmt.Sprintf("%s: release %s/%s has been %s at revision %d%s; it was begun by %s",
		inProgress, e.Namespace, e.Name, e.Status, e.Revision, since, who)
}

// Hint says what to do about it.
func (e *PendingError) Hint() string {
	hint := "if it no longer runs: --takeover-pending"
	if e.Grace > 0 {
		hint += fmt.Sprintf("; after %s the next run takes over by itself", e.Grace)
	}
	return hint
}

// HistoryChangedError says that somebody else has changed the release since it was read,
// so the decision no longer fits. Nothing was written.
type HistoryChangedError struct {
	Namespace, Name string
	Revision        int    // the one we wanted to write
	By              string // who wrote what we found; may be empty
}

func (e *HistoryChangedError) Error() string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	return fmt.Sprintf("%s: release %s/%s was changed%s before revision %d could be recorded", inProgress, e.Namespace, e.Name, by, e.Revision)
}

// Hint says what to do about it.
func (e *HistoryChangedError) Hint() string {
	return fmt.Sprintf("see what was done, then run again: "+program.OnCluster+" history -n %s %s", e.Namespace, e.Name)
}

// LockLostError says that this run may no longer change the release: it couldn't renew
// its Lease for too long, or another run took over. It stops the run.
type LockLostError struct {
	Namespace, Name string
	Why             string
}

func (e *LockLostError) Error() string {
	return fmt.Sprintf("this run no longer holds release %s/%s: %s", e.Namespace, e.Name, e.Why)
}

// Hint says what to do about it.
func (e *LockLostError) Hint() string {
	return fmt.Sprintf("see who has it now: "+program.OnCluster+" status -n %s %s", e.Namespace, e.Name)
}

// CorruptError says that a Secret looks like a release's record and can't be
// read as one.
type CorruptError struct {
	Namespace, Secret string
	Reason            string
	Err               error // may be nil
}

func (e *CorruptError) Error() string {
	text := fmt.Sprintf("Secret/%s/%s can't be read as a release record: %s", e.Namespace, e.Secret, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *CorruptError) Hint() string {
	return fmt.Sprintf("restore it from a backup; or, to forget this revision: "+program.Kubectl+" -n %s delete secret %s", e.Namespace, e.Secret)
}
