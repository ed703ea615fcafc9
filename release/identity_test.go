package release

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What was decided on a history that has changed since isn't begun, also when the
// numbers of its revisions are the same.
func TestBeginWantsTheHistoryThatWasDecidedOn(t *testing.T) {
	others := func(patch string) func(*testing.T, *site) {
		return func(t *testing.T, s *site) {
			secrets := s.Client().CoreV1().Secrets(s.namespace)
			if _, err := secrets.Patch(t.Context(), SecretName("web", 1), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "syncer"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, *site)
		moved     bool
	}{
		"nothing": {func(*testing.T, *site) {}, false},
		"uninstalled and installed again": {func(t *testing.T, s *site) {
			s.forget(t, 1)
			s.forget(t, 2)
			run(t, s.store, "web", deployed)
			run(t, s.store, "web", deployed)
		}, true},
		"a record written again by others":                        {others(`{"data":{"more":"eA=="}}`), true},
		"a label and an annotation, as others put on all Secrets": {others(`{"metadata":{"labels":{"team":"x"},"annotations":{"seen":"today"}}}`), false},
		"an older revision deleted":                               {func(t *testing.T, s *site) { s.forget(t, 1) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			run(t, s.store, "web", deployed)
			run(t, s.store, "web", deployed)
			h, err := s.store.History(t.Context(), "web")
			if err != nil {
				t.Fatal(err)
			}
			c.meanwhile(t, s)
			before := statuses(t, s.store, "web")
			l := lock(t, s.store, "web", LockOptions{})
			defer unlock(t, l)
			rec, err := s.store.Get(t.Context(), "web", 2)
			if err != nil {
				t.Fatal(err)
			}
			errs := map[string]error{"Confirmed": l.ConfirmHistory(t.Context(), 2, h.Identity())}
			if c.moved {
				errs["BeginUninstall"] = l.BeginUninstall(t.Context(), rec, h.Identity())
			}
			errs["Begin"] = l.Begin(t.Context(), sample("web", 3, pending), h.Identity())
			for what, err := range errs {
				if errors.As(err, new(*HistoryChangedError)) != c.moved || !c.moved && err != nil {
					t.Errorf("%s = %v, want a *MovedError: %v", what, err, c.moved)
				}
			}
			if c.moved {
				wantStatuses(t, s.store, "web", before)
			}
		})
	}
}

// TestLabelCorrectedBeforeBegin fails if a run finds its release pending, because of a label that somebody has
// changed by hand, after it has corrected that label itself.
func TestLabelCorrectedBeforeBegin(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	s.edit(t, SecretName("web", 1), func(secret *corev1.Secret) { secret.Labels["status"] = pending.String() })
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	h, recovered, err := l.Recover(t.Context())
	if err != nil || len(recovered) > 0 {
		t.Fatalf("Recover = %v, %v", recovered, err)
	}
	rec := sample("web", 2, pending)
	if err := l.Begin(t.Context(), rec, h.Identity()); err != nil {
		t.Fatal(err)
	}
	finish(t, l, rec, deployed)
	wantStatuses(t, s.store, "web", "1:superseded 2:deployed")
}

// The outcomes of tests aren't written into another release's record of the same
// name and revision.
func TestAmendOfAnotherRecord(t *testing.T) {
	s := newSite(t)
	first := run(t, s.store, "web", deployed)
	s.forget(t, 1)
	run(t, s.store, "web", deployed)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	if _, err := l.Amend(t.Context(), first, func(*Record) {}); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("Amend = %v, want a *NotFoundError", err)
	}
}

// A record that goes between the listing and the reading of a history has
// vanished; one that never was hasn't.
func TestVanishedRecords(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	h, err := s.store.History(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	s.forget(t, 1)
	for revision, want := range map[int]bool{1: true, 7: false} {
		var missing *NotFoundError
		if _, err := h.Load(t.Context(), revision); !errors.As(err, &missing) || missing.Vanished != want {
			t.Errorf("Load(%d) = %v, want a *NotFoundError that says vanished: %v", revision, err, want)
		}
	}
}

// forget deletes a record behind the lock's back.
func (s *site) forget(t *testing.T, revision int) {
	t.Helper()
	if err := s.Client().CoreV1().Secrets(s.namespace).Delete(t.Context(), SecretName("web", revision), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
