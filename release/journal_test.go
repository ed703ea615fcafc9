package release

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// saved begins a revision, and saves that its object and its hook are done.
func saved(t *testing.T, l *Lock) *Record {
	t.Helper()
	rec := begun(t, l, func(rec *Record) {
		rec.Hooks = []*helmrelease.Hook{{Name: "first", Path: "web/templates/first.yaml"}}
		rec.Journal = &Journal{Objects: map[string]ObjectState{"ConfigMap/prod/settings": {}}}
	})
	rec.Journal.Step, rec.Journal.Objects["ConfigMap/prod/settings"] = "apply", ObjectState{UID: "u-1", Created: true}
	rec.Hooks[0].LastRun.Phase = helmrelease.HookPhaseSucceeded
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatalf("Save: %v", err)
	}
	return rec
}

func (s *site) wantSaved(t *testing.T, want *Record) {
	t.Helper()
	rec, err := s.store.Get(t.Context(), want.Name, want.Version)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rec.Journal, want.Journal) || rec.Hooks[0].LastRun.Phase != helmrelease.HookPhaseSucceeded {
		t.Errorf("read journal %+v and hook %+v\nsaved %+v", rec.Journal, rec.Hooks[0].LastRun, want.Journal)
	}
}

func TestJournalIsApartWhileTheRunWorks(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	rec := saved(t, l)
	head, err := s.store.getSecret(t.Context(), SecretName("web", 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(head.ManagedFields) != 1 || head.Labels["modifiedAt"] != "" {
		t.Errorf("Helm's Secret was written between the beginning and the end: %v", head.Labels)
	}
	journal, err := s.store.getSecret(t.Context(), journalName("web", 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(journal.OwnerReferences) != 1 || journal.OwnerReferences[0].UID != head.UID {
		t.Errorf("the journal doesn't go with its record: %v", journal.OwnerReferences)
	}
	if all, err := s.helm().ListReleases(); err != nil || len(all) != 1 || all[0].Name != "web" {
		t.Errorf("Helm lists %v, %v", all, err)
	}
	s.wantSaved(t, rec)
	finish(t, l, rec, deployed)
	s.wantSaved(t, rec)
	if left := s.secretsWith(t, "owner=deployer"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestJournalOfAKilledRunBecomesPartOfItsRecord(t *testing.T) {
	s := newSite(t)
	dead := lock(t, s.store, "web", LockOptions{})
	rec := saved(t, dead)
	unlock(t, dead)
	l := lock(t, s.store, "web", LockOptions{TakeoverPending: true})
	defer unlock(t, l)
	if _, recovered, err := l.Recover(t.Context()); err != nil || len(recovered) != 1 || recovered[0].Step != "apply" {
		t.Fatalf("Recover = %v, %v", recovered, err)
	}
	rec.Journal.Interrupted = true
	s.wantSaved(t, rec)
	if left := s.secretsWith(t, "owner=deployer"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if last, err := s.helm().Last("web"); err != nil || last.Info.Status != failed || last.Hooks[0].LastRun.Phase != helmrelease.HookPhaseSucceeded {
		t.Errorf("Helm reads %+v, %v", last, err)
	}
}

// A journal that a run has left behind doesn't count for a later one, which writes over it; trimming deletes it.
func TestJournalOfAnEarlierRun(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	rec := saved(t, l)
	left, err := s.store.getSecret(t.Context(), journalName("web", 1))
	if err != nil {
		t.Fatal(err)
	}
	finish(t, l, rec, deployed)
	left.ResourceVersion, left.UID = "", ""
	leave := func() {
		t.Helper()
		if _, err := s.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), left, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	if err := trim(t.Context(), s.store, "web", 10); err != nil {
		t.Fatal(err)
	}
	if found := s.secretsWith(t, "owner=deployer"); len(found) > 0 {
		t.Errorf("trimming has left %v", found)
	}

	leave() // and the same run uninstalls the revision
	rec.Journal.Objects = map[string]ObjectState{"ConfigMap/prod/other": {UID: "u-2"}}
	if err := l.BeginUninstall(t.Context(), rec, current(t, s.store, "web")); err != nil {
		t.Fatal(err)
	}
	s.wantSaved(t, rec)
	rec.Journal.Step = "prune"
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	s.wantSaved(t, rec)
	if err := l.FinishUninstall(t.Context(), rec, false, "gone"); err != nil {
		t.Fatal(err)
	}
	if found := s.secretsWith(t, ""); slices.ContainsFunc(found, func(name string) bool { return name == journalName("web", 1) }) {
		t.Errorf("an uninstall leaves %v", found)
	}
}

func TestDeletedAndDamagedJournals(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{Warn: func(string) {}})
	defer unlock(t, l)
	rec := saved(t, l)
	for _, name := range []string{journalName("web", 1), SecretName("web", 1)} {
		if err := s.Client().CoreV1().Secrets(s.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		rec.Journal.Step += " again"
		if err := l.Save(t.Context(), rec); err != nil {
			t.Errorf("Save after Secret %s was deleted: %v", name, err)
		}
		s.wantSaved(t, rec)
	}
	if err := l.Save(t.Context(), rec); err != nil { // the former journal goes with the deleted record
		t.Fatal(err)
	}
	s.edit(t, journalName("web", 1), func(secret *corev1.Secret) { secret.Data[journalKey] = []byte("damaged") })
	damaged := new(CorruptError)
	if _, err := s.store.Get(t.Context(), "web", 1); !errors.As(err, &damaged) || damaged.Secret != journalName("web", 1) {
		t.Errorf("Get = %v, want a *CorruptError about the journal", err)
	}
}
