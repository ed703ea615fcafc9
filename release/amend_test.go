package release

import (
	"errors"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAmend(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	rec := begun(t, l, func(r *Record) {
		r.Hooks = []*helmrelease.Hook{{Name: "smoke", Events: []helmrelease.HookEvent{helmrelease.HookTest}}}
		r.Labels = map[string]string{"team": "shop"}
	})
	var pendingError *PendingError
	if _, err := l.Amend(t.Context(), rec, func(*Record) {}); !errors.As(err, &pendingError) {
		t.Errorf("Amend of a pending revision: %v, want a *PendingError", err)
	}
	finish(t, l, rec, helmrelease.StatusDeployed)

	ctx, cancel := contextWithCancel(t)
	cancel() // Ctrl-C
	calls := 0
	_, err := l.Amend(ctx, rec, func(r *Record) {
		if calls++; calls == 1 {
			s.relabel(t, SecretName("web", rec.Version), "touched")
		}
		r.Hooks[0].LastRun = helmrelease.HookExecution{StartedAt: helmtime.Time{Time: time.Unix(1e9, 0)}, Phase: helmrelease.HookPhaseFailed}
	})
	if err != nil || calls != 2 {
		t.Fatalf("Amend, while somebody else writes: %v after %d edits, want success after 2", err, calls)
	}
	got, err := s.store.Get(t.Context(), "web", rec.Version)
	if err != nil {
		t.Fatal(err)
	}
	if phase := got.Hooks[0].LastRun.Phase; phase != helmrelease.HookPhaseFailed {
		t.Errorf("phase of the hook %q, want Failed", phase)
	}
	if got.Info.Status != helmrelease.StatusDeployed || got.Labels["team"] != "shop" || got.Journal == nil || got.Journal.Run != l.holder.Run {
		t.Errorf("the rest of the record has changed: %+v %+v", got.Info, got.Journal)
	}
	if err := s.Client().CoreV1().Secrets(s.namespace).Delete(t.Context(), SecretName("web", rec.Version), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var missing *NotFoundError
	if _, err := l.Amend(t.Context(), rec, func(*Record) {}); !errors.As(err, &missing) {
		t.Errorf("Amend of a revision that is gone: %v, want a *NotFoundError", err)
	}
	wantStatuses(t, s.store, "web", "")
}

// relabel changes a Secret behind the lock's back.
func (s *site) relabel(t *testing.T, name, label string) {
	t.Helper()
	secrets := s.Client().CoreV1().Secrets(s.namespace)
	var secret *corev1.Secret
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err == nil {
		secret.Labels[label] = "yes"
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
