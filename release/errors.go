package release

import (
	"cmp"
	"fmt"
	"strings"
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
		return fmt.Sprintf("to see the releases there: "+program.Name+" list -a -n %s", e.Namespace)
	}
	return fmt.Sprintf("to see the revisions: "+program.Name+" history -n %s %s", e.Namespace, e.Name)
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
	install := program.Name + " upgrade --install"
	if e.NoNamespace {
		install += " --create-namespace"
	}
	return fmt.Sprintf("to install it: %s -n %s %s CHART", install, e.Namespace, e.Name)
}

// NoSuccessError says that rollback found no revision to go back to.
type NoSuccessError struct{ Namespace, Name string }

func (e *NoSuccessError) Error() string {
	return fmt.Sprintf("release %s/%s has no successful revision before the current one", e.Namespace, e.Name)
}

// Hint says what to do about it.
func (e *NoSuccessError) Hint() string {
	return fmt.Sprintf("to go to a revision anyway, name it: "+program.Name+" rollback -n %s %s REVISION", e.Namespace, e.Name)
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
	return fmt.Sprintf("see what was done, then run again: "+program.Name+" history -n %s %s", e.Namespace, e.Name)
}

// LeaseRefusedError says that the Lease of a release is refused: by a quota, a policy,
// or a webhook that denies it or doesn't answer.
type LeaseRefusedError struct {
	Namespace, Name string
	Err             error
}

func (e *LeaseRefusedError) Error() string {
	return fmt.Sprintf("release %s/%s can't be locked: Lease/%s/%s is refused: %v", e.Namespace, e.Name, e.Namespace, leaseName(e.Name), e.Err)
}

func (e *LeaseRefusedError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *LeaseRefusedError) Hint() string {
	return "let the quota, policy or webhook admit the Lease; to go on without it, so that only the release record keeps other runs out: --no-lock"
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
	return fmt.Sprintf("see who has it now: "+program.Name+" status -n %s %s", e.Namespace, e.Name)
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
	return fmt.Sprintf("restore it from a backup; or, to forget this revision: kubectl -n %s delete secret %s", e.Namespace, e.Secret)
}

// StoredElsewhereError says that the record of a release is in another namespace than the release. Flux stores it in that of
// the HelmRelease, or in its storageNamespace. deployer reads such a release, and leaves changing it to the tool that has it.
type StoredElsewhereError struct {
	Name              string
	Revision          int
	Stored, Namespace string // of the record and of the release
}

func (e *StoredElsewhereError) Error() string {
	return fmt.Sprintf("revision %d of release %s is stored in namespace %s, but its objects are in namespace %s, as of a HelmRelease of Flux with targetNamespace or storageNamespace, or of a backup that was restored elsewhere",
		e.Revision, e.Name, e.Stored, e.Namespace)
}

// Hint says what to do about it.
func (e *StoredElsewhereError) Hint() string {
	return fmt.Sprintf("change the release with the tool that has it: kubectl -n %s get helmreleases; a record that belongs to namespace %s can be moved there", e.Stored, e.Namespace)
}

// SizeError says that a record is too large even for several Secrets.
type SizeError struct {
	Namespace, Name string
	Size            string // how large it is, and what it consists of
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("release %s/%s is too large to be recorded: %s", e.Namespace, e.Name, e.Size)
}

// Hint says what to do about it.
func (e *SizeError) Hint() string {
	return "make the chart smaller (the largest entries come first), or split it into several releases"
}

// DriverError says that HELM_DRIVER asks for another storage than Secrets.
type DriverError struct{ Driver string }

func (e *DriverError) Error() string {
	why := "it isn't a storage driver"
	switch strings.TrimSuffix(e.Driver, "s") {
	case "configmap":
		why = "release records hold secret values, so deployer keeps them in Secrets only"
	case "sql":
		why = "deployer keeps records in the cluster they are about, where locks can protect them"
	case "memory":
		why = "records in memory are forgotten when the command ends"
	}
	return fmt.Sprintf("HELM_DRIVER=%s is not supported: %s", e.Driver, why)
}

// Hint says what to do about it.
func (e *DriverError) Hint() string {
	return "unset HELM_DRIVER or set it to secret; releases recorded elsewhere have to be moved into Secrets first"
}
