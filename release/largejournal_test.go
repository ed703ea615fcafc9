package release

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manyObjects are more than one Secret has room for in its journal.
const manyObjects = 20000

func withManyObjects(rec *Record) {
	many := ofObjects(manyObjects)
	rec.Manifest, rec.Journal = many.Manifest, many.Journal
}

// wantJournal checks what a reader of a revision finds in its journal.
func (s *site) wantJournal(t *testing.T, revision int, want *Journal) *Record {
	t.Helper()
	rec, err := s.store.Get(t.Context(), "web", revision)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rec.Journal, want) {
		t.Errorf("the journal of revision %d has %d objects, %+v", revision, len(rec.Journal.Objects), rec.Journal.Objects["ConfigMap/prod/object-7"])
	}
	return rec
}

// The journal of a release with many objects is stored in Secrets of its own. They are replaced when it
// changes, and Helm can still read the release.
func TestLargeJournal(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	rec := begun(t, l, withManyObjects)
	begun := s.secretsWith(t, "owner=deployer")
	if len(begun) == 0 {
		t.Fatal("the journal has no Secrets of its own")
	}
	s.wantJournal(t, 1, rec.Journal)

	rec.done()
	rec.Journal.Step = "prune"
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	s.wantJournal(t, 1, rec.Journal)
	saved := s.secretsWith(t, "owner=deployer")
	for _, name := range begun {
		if strings.Contains(fmt.Sprint(saved), name) {
			t.Errorf("%s of the former journal is left: %v", name, saved)
		}
	}
	finish(t, l, rec, deployed)
	if got, err := s.helm().Last("web"); err != nil || got.Manifest != rec.Manifest || !reflect.DeepEqual(got.Chart, rec.Chart) {
		t.Errorf("Helm doesn't read the whole release: %v", err)
	}
	unlock(t, l)

	run(t, s.store, "web", deployed)
	wantStatuses(t, s.store, "web", "1:superseded 2:deployed")
	s.wantJournal(t, 1, rec.Journal)
	if err := trim(t.Context(), s.store, "web", 1); err != nil {
		t.Fatal(err)
	}
	if left := s.secretsWith(t, "owner=deployer"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// withLargeJournal gives a record a journal that doesn't fit into its head beside the manifest, though
// it is small itself.
func withLargeJournal(rec *Record) {
	many := ofObjects(2000)
	rec.Manifest, rec.Journal = many.Manifest+"# "+noise(maxSecret-64<<10), many.Journal
}

// The journal that a killed run leaves is either the one before or the one after the write at which the run
// died.
func TestLargeJournalOfAKilledRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const writes = 8 // lock; part, head, owner; part, head, former part; head
	for n := int32(1); n <= writes; n++ {
		name := fmt.Sprintf("web-%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, s.store, name, deployed)
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			runs := sample(name, 0, pending)
			withLargeJournal(runs)
			before := maps.Clone(runs.Journal.Objects)
			err := wholeRun(ctx, t, s.through(dies(n, false, kill)), runs, runs.done)
			if ctx.Err() == nil {
				t.Fatalf("the run wasn't killed: %v", err)
			}
			s.bury(t, name)
			l := lock(t, s.store, name, LockOptions{})
			defer unlock(t, l)
			h, _, err := l.Recover(t.Context())
			if err != nil {
				t.Fatalf("Recover: %v", err)
			}
			if h.Latest().Revision == 2 {
				rec, err := s.store.Get(t.Context(), name, 2)
				if err != nil {
					t.Fatal(err)
				}
				if objects := rec.Journal.Objects; !reflect.DeepEqual(objects, before) && !reflect.DeepEqual(objects, runs.Journal.Objects) || !rec.Journal.Interrupted {
					t.Errorf("the dead run's journal: interrupted %v, %d objects", rec.Journal.Interrupted, len(objects))
				}
			}
			finish(t, l, begun(t, l, withLargeJournal), deployed)
			if err := trim(t.Context(), s.store, name, 1); err != nil {
				t.Error(err)
			}
			// The journal of the last revision, in which nothing was done, fits into its head.
			if parts := s.secretsWith(t, "owner=deployer,name="+name); len(parts) > 0 {
				t.Errorf("left: %v", parts)
			}
		})
	}
}

// A journal that is saved again under the same head, which another client has edited, counts.
func TestLargeJournalUnderAnEditedHead(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	rec := begun(t, l, withManyObjects)
	s.edit(t, SecretName("web", 1), func(secret *corev1.Secret) { secret.Annotations["somebody"] = "was here" })
	rec.done()
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	s.wantJournal(t, 1, rec.Journal)
	finish(t, l, rec, deployed)
	s.wantJournal(t, 1, rec.Journal)
}

// If somebody deletes the head of a run, Kubernetes deletes its parts, at any time. The
// record is written again with others.
func TestPartsGoWithADeletedHead(t *testing.T) {
	s := newSite(t)
	var warned warnings
	l := lock(t, s.store, "web", LockOptions{Warn: warned.add})
	defer unlock(t, l)
	rec := begun(t, l, func(rec *Record) { rec.Manifest = noise(maxSecret) })
	former := s.secretsWith(t, "owner=deployer")
	secrets := s.Client().CoreV1().Secrets(s.namespace)
	if err := secrets.Delete(t.Context(), SecretName("web", 1), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	finish(t, l, rec, deployed)
	s.Eventually(t, time.Minute, "the former parts to be deleted", func(context.Context) error {
		now := fmt.Sprint(s.secretsWith(t, "owner=deployer"))
		for _, name := range former {
			if strings.Contains(now, name) {
				return fmt.Errorf("%s is still there", name)
			}
		}
		return nil
	})
	if got, err := s.store.Get(t.Context(), "web", 1); err != nil || got.Manifest != rec.Manifest || got.Info.Status != deployed {
		t.Errorf("the record is not whole: %v", err)
	}
	if !strings.Contains(warned.String(), SecretName("web", 1)) {
		t.Errorf("warned %q", &warned)
	}
}
