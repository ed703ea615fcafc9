package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"deployer/internal/kube"
)

// A Recovered is a revision that a dead run left unfinished, and that is now recorded as
// failed.
type Recovered struct {
	Revision int
	Was      helmrelease.Status
	Holder   string        // the run that died; empty for other tools
	Step     string        // that it was in; empty if it never said
	Age      time.Duration // since it was last written, by the server's clock; 0 when that wasn't needed
}

// String writes it for people.
func (s Recovered) String() string {
	who := cmp.Or(s.Holder, "another tool")
	where := "before its first step"
	if s.Step != "" {
		where = "in step " + s.Step
	}
	if s.Holder == "" {
		where = "at an unknown point"
	}
	return fmt.Sprintf("revision %d was left %s by %s, interrupted %s", s.Revision, s.Was, who, where)
}

// Recover records as failed what dead runs left pending or uninstalling, and returns the
// resulting history. While this run holds the Lease, no other run of deployer is alive.
// For records of other tools, and of runs without a Lease, that is only assumed after
// LockOptions.Grace, by the server's clock, or with LockOptions.TakeoverPending.
// Otherwise the error is a *PendingError.
func (l *Lock) Recover(ctx context.Context) (*History, []Recovered, error) {
	if err := l.lease.checkHeld(); err != nil {
		return nil, nil, err
	}
	h, err := l.store.History(ctx, l.name)
	if err != nil {
		return nil, nil, err
	}
	unfinished := slices.DeleteFunc(slices.Clone(h.Revisions), func(s Summary) bool { return !isUnfinished(s.Status) })
	var all []Recovered
	for _, s := range unfinished {
		recovered, err := l.recoverRevision(ctx, s)
		if err != nil {
			return nil, all, err
		}
		if recovered != nil {
			all = append(all, *recovered)
		}
	}
	if len(unfinished) > 0 { // perhaps only a label was corrected
		if h, err = l.store.History(ctx, l.name); err != nil {
			return nil, all, err
		}
	}
	l.recoveredHistory = h
	return h, all, nil
}

// recoverRevision recovers one unfinished revision; nil, nil when it needs nothing.
func (l *Lock) recoverRevision(ctx context.Context, s Summary) (*Recovered, error) {
	rec, err := l.store.Get(ctx, l.name, s.Revision)
	if errors.As(err, new(*NotFoundError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !isUnfinished(rec.Info.Status) {
		return nil, l.correctLabel(ctx, rec)
	}
	out, err := l.abandonedRun(ctx, rec, s.LastWrite)
	if out == nil || err != nil {
		return nil, err
	}
	failed := recordPatch{status: helmrelease.StatusFailed, description: l.recoveryDescription(out, rec), interrupted: true}
	stillAbandoned := true
	err = l.store.patchRecord(ctx, l.name, s.Revision, failed, func(current *Record, secret *corev1.Secret) (bool, error) {
		if current.stored.resourceVersion == rec.stored.resourceVersion {
			return true, nil
		}
		// It was written since it was checked: check again.
		stillAbandoned = false
		if !isUnfinished(current.Info.Status) {
			return false, nil
		}
		run, err := l.abandonedRun(ctx, current, lastWrite(&secret.ObjectMeta))
		stillAbandoned = run != nil
		return stillAbandoned, err
	})
	if err != nil || !stillAbandoned {
		return nil, err
	}
	return out, nil
}

// abandonedRun describes the run that wrote rec if it is dead. nil, nil means that the record
// needs no recovery. The error is a *PendingError if the run may be alive.
func (l *Lock) abandonedRun(ctx context.Context, rec *Record, written time.Time) (*Recovered, error) {
	out := &Recovered{Revision: rec.Version, Was: rec.Info.Status}
	if j := rec.Journal; j != nil {
		out.Holder, out.Step = j.Holder, j.Step
		if j.Run == l.lease.holder.Run || parseProcess(j.Process).isDead() {
			return out, nil
		}
		if l.hasLease() && j.Leased {
			if l.lease.waited {
				return out, nil
			}
			// Nobody had the Lease, so somebody may have deleted it to stop the run, which notices that at its
			// next heartbeat.
			return out, kube.Sleep(ctx, l.opts.Renew)
		}
	} else if rec.Info.Status == helmrelease.StatusUninstalling {
		return nil, nil // Helm leaves this after every failed uninstall, and continues from it
	}
	if l.opts.TakeoverPending {
		return out, nil
	}
	now, err := l.store.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	if out.Age = now.Sub(written); out.Age >= l.opts.Grace {
		return out, nil
	}
	pending := l.pendingError(rec.Version, rec.Info.Status)
	pending.Holder, pending.Age = out.Holder, out.Age
	return nil, pending
}

// correctLabel sets the status label of a record to the status in the record. Somebody
// changed the label by hand; Helm, too, uses the record.
func (l *Lock) correctLabel(ctx context.Context, rec *Record) error {
	return l.store.patchRecord(ctx, l.name, rec.Version, recordPatch{status: rec.Info.Status}, func(current *Record, _ *corev1.Secret) (bool, error) {
		return current.stored.resourceVersion == rec.stored.resourceVersion, nil
	})
}

func (l *Lock) recoveryDescription(s *Recovered, rec *Record) string {
	var b strings.Builder
	switch {
	case s.Was == helmrelease.StatusUninstalling:
		b.WriteString("Uninstall failed: interrupted")
	case rec.Journal == nil:
		b.WriteString("failed: interrupted, or given up")
	default:
		b.WriteString("failed: interrupted")
	}
	if s.Step != "" {
		b.WriteString(" in step " + s.Step)
	}
	if s.Holder != "" {
		b.WriteString(" (run by " + s.Holder + ")")
	}
	fmt.Fprintf(&b, "; recovered by deployer on %s", l.lease.holder.ProcessDescription)
	return b.String()
}
