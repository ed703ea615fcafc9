package release

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"

	"deployer/internal/program"
)

// helm is Helm's own storage in the site.
func (s *site) helm() *storage.Storage {
	return storage.Init(driver.NewSecrets(s.Client().CoreV1().Secrets(s.namespace)))
}

func (s *site) helmCreates(t *testing.T, name string, revision int, status helmrelease.Status) *helmrelease.Release {
	t.Helper()
	rel := sample(name, revision, status).Release
	rel.Namespace = s.namespace
	if err := s.helm().Create(&rel); err != nil {
		t.Fatal(err)
	}
	return &rel
}

func TestHelmAndWeReadEachOther(t *testing.T) {
	s := newSite(t)
	theirs := s.helmCreates(t, "web", 1, deployed)

	got, err := s.store.Get(t.Context(), "web", 0)
	if err != nil || !reflect.DeepEqual(got.Release, *theirs) {
		t.Fatalf("Helm wrote %+v\nwe read %+v, %v", theirs, got, err)
	}
	ours := run(t, s.store, "web", deployed)
	read, err := s.helm().Last("web")
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"} {
		if read.Labels[label] == "" {
			t.Errorf("label %s is missing: %v", label, read.Labels)
		}
	}
	want := ours.Release
	read.Labels = want.Labels
	if want.Info.Status != deployed || read.Info.Description != want.Info.Description || !reflect.DeepEqual(read.Chart, want.Chart) ||
		!reflect.DeepEqual(read.Config, want.Config) || read.Manifest != want.Manifest || len(read.Hooks) != 1 || read.Version != 2 {
		t.Errorf("we wrote %+v\nHelm reads %+v", want, read)
	}
	if now, err := s.helm().Deployed("web"); err != nil || now.Version != 2 {
		t.Errorf("Helm finds deployed %v, %v, want revision 2 (and 1 superseded)", now, err)
	}

	t.Run("Helm takes the next revision while we work", func(t *testing.T) {
		l := lock(t, s.store, "web", LockOptions{})
		defer unlock(t, l)
		s.helmCreates(t, "web", 3, pending)
		if err := l.Begin(t.Context(), sample("web", 3, pending), current(t, s.store, "web")); !errors.As(err, new(*HistoryChangedError)) {
			t.Errorf("Begin = %v, want a *MovedError", err)
		}
	})
	t.Run("Helm can't take ours", func(t *testing.T) {
		l := lock(t, s.store, "api", LockOptions{})
		defer unlock(t, l)
		rec := begun(t, l)
		if err := s.helm().Create(&sample("api", 1, pending).Release); !errors.Is(err, driver.ErrReleaseExists) {
			t.Errorf("Helm's Create = %v, want %v", err, driver.ErrReleaseExists)
		}
		finish(t, l, rec, deployed)
	})
}

func TestPendingOfHelm(t *testing.T) {
	s := newSite(t)
	s.helmCreates(t, "web", 1, deployed)
	s.helmCreates(t, "web", 2, pending)

	l := lock(t, s.store, "web", LockOptions{})
	_, _, err := l.Recover(t.Context())
	var pendingErr *PendingError
	if !errors.As(err, &pendingErr) || !strings.Contains(err.Error(), inProgress) || !strings.Contains(pendingErr.Hint(), "--takeover-pending") {
		t.Errorf("Recover of a young one = %v, want a *PendingError", err)
	}
	if err := l.Begin(t.Context(), sample("web", 3, pending), current(t, s.store, "web")); !errors.As(err, new(*PendingError)) {
		t.Errorf("Begin = %v, want a *PendingError", err)
	}
	unlock(t, l)

	for name, opts := range map[string]LockOptions{"told": {TakeoverPending: true}, "old enough": {Grace: time.Nanosecond}} {
		t.Run(name, func(t *testing.T) {
			s.Eventually(t, time.Minute, "an age", func(_ctx) error { // the server's clock has seconds
				l := lock(t, s.store, "web", opts)
				defer unlock(t, l)
				h, recovered, err := l.Recover(t.Context())
				if err == nil && (len(recovered) != 1 || h.Latest().Status != failed) {
					t.Errorf("Recover = %v, %v", h.Revisions, recovered)
				}
				return err
			})
			wantStatuses(t, s.store, "web", "1:deployed 2:failed")
			rec, err := s.helm().Last("web")
			if err != nil || rec.Info.Status != failed || !strings.Contains(rec.Info.Description, "interrupted") {
				t.Errorf("Helm reads %+v, %v", rec, err)
			}
		})
		s.edit(t, SecretName("web", 2), func(secret *corev1.Secret) { // pending again
			text, err := editInfo(secret.Data[dataKey], map[string]any{"status": pending})
			if err != nil {
				t.Fatal(err)
			}
			secret.Data[dataKey], secret.Labels["status"] = text, pending.String()
		})
	}
}

// TestPendingBelowTheLatest fails if a revision that another tool left pending counts as a run although somebody has gone past it: Helm
// looks at the latest one alone.
func TestPendingBelowTheLatest(t *testing.T) {
	s := newSite(t)
	s.helmCreates(t, "web", 1, superseded)
	s.helmCreates(t, "web", 2, pending)
	s.helmCreates(t, "web", 3, deployed)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	h, recovered, err := l.Recover(t.Context())
	if err != nil || len(recovered) != 1 || recovered[0].Revision != 2 || h.Latest().Revision != 3 {
		t.Errorf("Recover = %v, %v, %v", h, recovered, err)
	}
	wantStatuses(t, s.store, "web", "1:superseded 2:failed 3:deployed")
}

func TestLargeReleases(t *testing.T) {
	s := newSite(t)
	large := func(rec *Record) { rec.Manifest = noise(5 << 20) }
	first := run(t, s.store, "web", deployed, large)
	if parts := s.secretsWith(t, "owner=deployer"); len(parts) < 4 {
		t.Fatalf("parts: %v", parts)
	}
	got, err := s.store.Get(t.Context(), "web", 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Manifest != first.Manifest || got.Info.Status != deployed || got.Info.Description != "it is deployed" || got.Info.Notes != "read me" {
		t.Errorf("read back: %s, %q, %d bytes", got.Info.Status, got.Info.Description, len(got.Manifest))
	}
	t.Run("Helm lists it and says why it can't read it", func(t *testing.T) {
		all, err := s.helm().ListReleases()
		if err != nil || len(all) != 1 || !strings.Contains(all[0].Info.Description, "only deployer") || !strings.Contains(all[0].Manifest, largeKind) {
			t.Errorf("Helm lists %v, %v", all, err)
		}
	})
	t.Run("it survives being written by Helm", func(t *testing.T) {
		head, err := s.helm().Last("web")
		if err != nil {
			t.Fatal(err)
		}
		head.Info.Status = superseded
		if err := s.helm().Update(head); err != nil {
			t.Fatal(err)
		}
		got, err := s.store.Get(t.Context(), "web", 1)
		if err != nil || got.Info.Status != superseded || got.Manifest != first.Manifest {
			t.Errorf("read back: %v", err)
		}
	})
	t.Run("a missing part is an error that names it", func(t *testing.T) {
		secrets := s.Client().CoreV1().Secrets(s.namespace)
		part := partNames("web", 1, first.stored.bundles[0])[2]
		if err := secrets.Delete(t.Context(), part, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := s.store.Get(t.Context(), "web", 1)
		if !errors.As(err, new(*CorruptError)) || !strings.Contains(err.Error(), part) {
			t.Errorf("Get = %v, want a *CorruptError that names %s", err, part)
		}
	})
	t.Run("parts go with their revision", func(t *testing.T) {
		run(t, s.store, "web", deployed, large)
		run(t, s.store, "web", deployed)
		if err := trim(t.Context(), s.store, "web", 1); err != nil {
			t.Fatal(err)
		}
		wantStatuses(t, s.store, "web", "3:deployed")
		if parts := s.secretsWith(t, "owner=deployer"); len(parts) > 0 {
			t.Errorf("parts left: %v", parts)
		}
	})
}

// What can't be stored is refused before anything is written.
func TestLargerThanAllIsNeverBegun(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	rec := sample("web", 0, pending)
	rec.Config = map[string]any{"list": make([]any, maxElements+1)}
	if err := l.Begin(t.Context(), rec, current(t, s.store, "web")); !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), "before packing: values given ") {
		t.Errorf("Begin = %v, want errTooLarge that blames the values", err)
	}
	if left := s.secretsWith(t, ""); len(left) > 0 {
		t.Errorf("Secrets were written: %v", left)
	}
}

func TestDamagedRecordsAreErrors(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "good", deployed)
	for name, damage := range map[string]func(*corev1.Secret){
		"content": func(secret *corev1.Secret) { secret.Data[dataKey] = []byte("AAAA") },
		"empty":   func(secret *corev1.Secret) { delete(secret.Data, dataKey) },
		"swapped": func(secret *corev1.Secret) { secret.Data[dataKey] = mustEncode(t, sample("other", 1, deployed)) },
		"labels":  func(secret *corev1.Secret) { secret.Labels["version"] = "7" },
	} {
		run(t, s.store, name, deployed)
		s.edit(t, SecretName(name, 1), damage)
		_, err := s.store.Get(t.Context(), name, 1)
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), SecretName(name, 1)) || !strings.Contains(corrupt.Hint(), program.Kubectl+" -n "+s.namespace+" delete secret") {
			t.Errorf("%s: Get = %v, want a *CorruptError that names the Secret", name, err)
		}
	}
	_, err := s.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName("foreign", 1), Labels: map[string]string{"name": "foreign", "owner": "helm", "version": "1", "status": "deployed"}},
		Data:       map[string][]byte{dataKey: mustEncode(t, sample("foreign", 1, deployed))},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Get(t.Context(), "foreign", 1); !errors.As(err, new(*CorruptError)) {
		t.Errorf("a Secret of another type: Get = %v, want a *CorruptError", err)
	}
	t.Run("a list shows all, and what can't be read", func(t *testing.T) {
		all, err := s.store.List(t.Context(), ListOptions{Filter: regexp.MustCompile("good|labels")})
		if err != nil || len(all) != 2 || all[0].Name != "good" || all[0].Unreadable != nil || all[1].Unreadable == nil || all[1].Revision != 0 {
			t.Errorf("List = %v, %v; want release good and what can't be read", all, err)
		}
	})
	if _, err := s.store.Get(t.Context(), "nobody", 0); !errors.As(err, new(*NotFoundError)) || !strings.Contains(err.Error(), "release: not found") {
		t.Errorf("Get of nobody = %v, want a *NotFoundError", err)
	}
}

// TestLabelsMakeNoRecord: a Secret that somebody has labelled as Helm labels its records doesn't break the release.
func TestLabelsMakeNoRecord(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	for name, labels := range map[string]map[string]string{
		"mine": {"owner": "helm", "name": "web"}, "yours": {"owner": "helm", "name": "web", "version": "7", "status": "deployed"},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := s.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if rec, err := s.store.Get(t.Context(), "web", 0); err != nil || rec.Version != 1 {
		t.Errorf("Get = %v, %v; want revision 1", rec, err)
	}
	run(t, s.store, "web", deployed)
	if all, err := s.store.List(t.Context(), ListOptions{}); err != nil || len(all) != 1 || all[0].Revision != 2 {
		t.Errorf("List = %v, %v; want revision 2 of release web", all, err)
	}
}

// A record in another namespace than its release is read, but nothing may be decided by it.
func TestRecordStoredElsewhere(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "elsewhere", deployed)
	s.edit(t, SecretName("elsewhere", 1), func(secret *corev1.Secret) {
		rec := sample("elsewhere", 1, deployed)
		rec.Namespace = "prod"
		secret.Data[dataKey] = mustEncode(t, rec)
	})
	rec, err := s.store.Get(t.Context(), "elsewhere", 1)
	if err != nil || rec.Namespace != "prod" {
		t.Fatalf("Get = %v, %v; want a record of namespace prod", rec, err)
	}
	if err := rec.CheckStoredInPlace(); err == nil || !strings.Contains(err.Error(), "its objects are in namespace prod") {
		t.Errorf("CheckStoredInPlace = %v, want an error that names the release's namespace", err)
	}
}

func mustEncode(t *testing.T, rec *Record) []byte {
	t.Helper()
	enc, err := encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	return enc.head
}

func TestListOf500DownloadsNoRecords(t *testing.T) {
	s := newSite(t)
	const releases = 500
	err := kube.ForEach(releases, kube.ParallelRequests, func(i int) error {
		rec := sample(fmt.Sprintf("app-%03d", i), 1, deployed)
		rec.Namespace, rec.Manifest = s.namespace, noise(8<<10)
		enc, err := encode(rec)
		if err != nil {
			return err
		}
		_, err = s.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), newSecret(rec, enc, time.Now()), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen traffic
	all, err := s.through(seen.wrap).List(t.Context(), ListOptions{})
	if err != nil || len(all) != releases {
		t.Fatalf("List = %d releases, %v", len(all), err)
	}
	if a := all[7]; a.Name != "app-007" || a.Chart != "web" || a.ChartVersion != "1.2.3" || a.AppVersion != "9" || a.Description != "a test" || a.Labels["team"] != "blue" || a.Updated.Unix() != 1700000001 {
		t.Errorf("all[7] = %+v", a)
	}
	if seen.gets.Load() != 0 || seen.lists.Load() != 1 || seen.bytes.Load() > releases*2<<10 {
		t.Errorf("%d reads of records, %d lists, %d bytes", seen.gets.Load(), seen.lists.Load(), seen.bytes.Load())
	}
	t.Run("records of Helm are read for what is shown", func(t *testing.T) {
		for _, name := range []string{"app-b", "app-c", "app-d"} {
			s.helmCreates(t, name, 1, failed)
		}
		var seen traffic
		got, err := s.through(seen.wrap).List(t.Context(), ListOptions{Statuses: []helmrelease.Status{failed}, Offset: 1, Limit: 1})
		if err != nil || len(got) != 1 || got[0].Name != "app-c" || got[0].Chart != "web" || seen.gets.Load() != 1 {
			t.Errorf("List = %+v, %v, with %d reads", got, err, seen.gets.Load())
		}
	})
	t.Run("selector", func(t *testing.T) {
		got, err := s.store.List(t.Context(), ListOptions{Selector: "team=blue,name=app-010"})
		if err != nil || len(got) != 1 {
			t.Errorf("List = %v, %v", got, err)
		}
	})
}

func TestHistoryMax(t *testing.T) {
	s := newSite(t)
	for _, status := range []helmrelease.Status{deployed, failed, deployed, failed, failed} {
		run(t, s.store, "web", status)
	}
	wantStatuses(t, s.store, "web", "1:superseded 2:failed 3:deployed 4:failed 5:failed")
	l := lock(t, s.store, "ends", LockOptions{MaxHistory: 2})
	for range 3 {
		finish(t, l, begun(t, l), deployed)
	}
	unlock(t, l)
	wantStatuses(t, s.store, "ends", "2:superseded 3:deployed")
	for _, c := range []struct {
		keep int
		want string
	}{
		{0, "1:superseded 2:failed 3:deployed 4:failed 5:failed"},
		{4, "2:failed 3:deployed 4:failed 5:failed"},
		{1, "3:deployed 4:failed 5:failed"},
	} {
		if err := trim(t.Context(), s.store, "web", c.keep); err != nil {
			t.Fatal(err)
		}
		wantStatuses(t, s.store, "web", c.want)
	}
}

func TestRecordDeletedDuringTheRun(t *testing.T) {
	s := newSite(t)
	var warned warnings
	l := lock(t, s.store, "web", LockOptions{Warn: warned.add})
	defer unlock(t, l)
	rec := begun(t, l)
	if err := s.Client().CoreV1().Secrets(s.namespace).Delete(t.Context(), SecretName("web", 1), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	finish(t, l, rec, deployed)
	wantStatuses(t, s.store, "web", "1:deployed")
	if !strings.Contains(warned.String(), SecretName("web", 1)) {
		t.Errorf("warned %q", &warned)
	}
}

func TestNewRevisionIsDeployedBeforeTheOldIsNot(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	l := lock(t, s.store, "web", LockOptions{})
	rec := begun(t, l)
	// Killed between the two: the label and record of 1 still say deployed.
	rec.Info.Status = deployed
	if err := l.save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	unlock(t, l)
	wantStatuses(t, s.store, "web", "1:deployed 2:deployed")
	h, err := s.store.History(t.Context(), "web")
	if err != nil || h.Deployed().Revision != 2 {
		t.Errorf("Deployed = %v, %v, want revision 2", h.Deployed(), err)
	}
	run(t, s.store, "web", deployed)
	wantStatuses(t, s.store, "web", "1:superseded 2:superseded 3:deployed")
}

// Prevents that the records of an uninstalled release stay because the answer to a write is lost: that run can't tell the
// repeated write from somebody else's.
func TestRecordsOfAnUninstalledRelease(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", uninstalled)
	var lost atomic.Bool
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/secrets/") && !lost.Swap(true) {
				answer.Body.Close()
				return nil, io.EOF
			}
			return answer, err
		})
	})
	l := lock(t, store, "web", LockOptions{})
	defer unlock(t, l)
	rec, err := s.store.Get(t.Context(), "web", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ConfirmHistory(t.Context(), rec.Version, current(t, s.store, "web")); err != nil {
		t.Fatal(err)
	}
	if err := l.FinishUninstall(t.Context(), rec, false, "Uninstallation complete"); err != nil {
		t.Error(err)
	}
	if left := s.secretsWith(t, ""); len(left) > 0 {
		t.Errorf("Secrets left: %v", left)
	}
}

func TestUninstall(t *testing.T) {
	s := newSite(t)
	uninstall := func(t *testing.T, keep bool) {
		l := lock(t, s.store, "web", LockOptions{})
		defer unlock(t, l)
		rec, err := s.store.Get(t.Context(), "web", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.BeginUninstall(t.Context(), rec, current(t, s.store, "web")); err != nil {
			t.Fatal(err)
		}
		if got := statuses(t, s.store, "web"); !strings.HasSuffix(got, ":uninstalling") {
			t.Errorf("history while at work: %s", got)
		}
		if err := l.FinishUninstall(t.Context(), rec, keep, "Uninstallation complete"); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s.store, "web", deployed)
	run(t, s.store, "web", failed)
	uninstall(t, true)
	wantStatuses(t, s.store, "web", "1:superseded 2:uninstalled")
	run(t, s.store, "web", deployed) // the name is used again
	wantStatuses(t, s.store, "web", "1:superseded 2:uninstalled 3:deployed")
	uninstall(t, false)
	if left := s.secretsWith(t, ""); len(left) > 0 {
		t.Errorf("Secrets left: %v", left)
	}

	t.Run("interrupted", func(t *testing.T) {
		run(t, s.store, "web", deployed)
		dead := lock(t, s.store, "web", LockOptions{})
		rec, err := s.store.Get(t.Context(), "web", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := dead.BeginUninstall(t.Context(), rec, current(t, s.store, "web")); err != nil {
			t.Fatal(err)
		}
		unlock(t, dead)
		l := lock(t, s.store, "web", LockOptions{})
		defer unlock(t, l)
		if _, recovered, err := l.Recover(t.Context()); err != nil || len(recovered) != 1 || recovered[0].Was != helmrelease.StatusUninstalling {
			t.Errorf("Recover = %v, %v", recovered, err)
		}
		wantStatuses(t, s.store, "web", "1:failed")
		if h, err := s.store.History(t.Context(), "web"); err != nil || !h.Latest().WasDeployed {
			t.Errorf("the history doesn't say that the revision was deployed: %v, %v", h.Latest(), err)
		}
	})
	t.Run("somebody upgraded meanwhile", func(t *testing.T) {
		rec, err := s.store.Get(t.Context(), "web", 0)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s.store, "web", deployed)
		l := lock(t, s.store, "web", LockOptions{})
		defer unlock(t, l)
		if err := l.BeginUninstall(t.Context(), rec, current(t, s.store, "web")); !errors.As(err, new(*HistoryChangedError)) {
			t.Errorf("BeginUninstall = %v, want a *MovedError", err)
		}
	})
}

func TestBeginWantsTheNextRevision(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)
	l := lock(t, s.store, "web", LockOptions{})
	defer unlock(t, l)
	for _, revision := range []int{1, 3} {
		if err := l.Begin(t.Context(), sample("web", revision, pending), current(t, s.store, "web")); !errors.As(err, new(*HistoryChangedError)) {
			t.Errorf("Begin of revision %d after 1 = %v, want a *MovedError", revision, err)
		}
	}
	if err := l.Begin(t.Context(), sample("web", 2, deployed), current(t, s.store, "web")); err == nil {
		t.Error("Begin took a record that isn't pending")
	}
	wantStatuses(t, s.store, "web", "1:deployed")
}

// TestEndlessListEnds: a server that always has another page isn't asked without end.
func TestEndlessListEnds(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"more"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	store := NewStore(kube.New(&rest.Config{Host: server.URL}, "prod"), "prod")
	for what, read := range map[string]func() error{
		"a list":    func() error { _, err := store.List(t.Context(), ListOptions{}); return err },
		"a history": func() error { _, err := store.History(t.Context(), "web"); return err },
	} {
		asked = 0
		if err := read(); err == nil || !strings.Contains(err.Error(), "without end") || asked > maxPages+1 {
			t.Errorf("%s ends after %d requests with %v", what, asked, err)
		}
	}
}

func TestPagesOfHistory(t *testing.T) {
	s := newSite(t)
	const revisions = pageSize + 3
	err := kube.ForEach(revisions, kube.ParallelRequests, func(i int) error {
		rec := sample("web", i+1, superseded)
		rec.Namespace = s.namespace
		enc, err := encode(rec)
		if err != nil {
			return err
		}
		_, err = s.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), newSecret(rec, enc, time.Now()), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.store.History(t.Context(), "web")
	if err != nil || len(h.Revisions) != revisions || h.Next() != revisions+1 {
		t.Fatalf("History = %d revisions, %v", len(h.Revisions), err)
	}
	for i, r := range h.Revisions {
		if r.Revision != i+1 {
			t.Fatalf("Revisions[%d] is %d", i, r.Revision)
		}
	}
}

// runLarge is run for a record that is stored in several Secrets.
func runLarge(t *testing.T, s *Store, name string) *Record {
	t.Helper()
	return run(t, s, name, deployed, func(rec *Record) { rec.Manifest = noise(maxSecret) })
}

// A part that can't be read at the moment isn't damaged: nobody may be told to delete
// the revision.
func TestUnreadPartsAreNotDamaged(t *testing.T) {
	s := newSite(t)
	runLarge(t, s.store, "web")
	broken := errors.New("test: cut off")
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, partPrefix) {
				return nil, broken
			}
			return next.RoundTrip(r)
		})
	})
	if _, err := store.Get(t.Context(), "web", 1); !errors.Is(err, broken) || errors.As(err, new(*CorruptError)) {
		t.Errorf("Get = %v, want the error of the connection and no *CorruptError", err)
	}
	if rec, err := s.store.Get(t.Context(), "web", 1); err != nil || rec.Manifest == "" {
		t.Errorf("Get = %v, %v", rec, err)
	}
}

// The record of a run that ends while the API server restarts is written when that is back, also behind a load balancer: it
// accepts connections, and breaks them or answers itself.
func TestOutagesAreOutlasted(t *testing.T) {
	t.Parallel()
	gateway := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
	}
	for name, fails := range map[string]func(*http.Request) (*http.Response, error){
		"refused": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"reset": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		},
		"ended":   func(*http.Request) (*http.Response, error) { return nil, io.EOF },
		"gateway": gateway,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			var end atomic.Pointer[time.Time]
			store := s.through(func(next http.RoundTripper) http.RoundTripper {
				return transport(func(r *http.Request) (*http.Response, error) {
					if down := end.Load(); down != nil && time.Now().Before(*down) && strings.Contains(r.URL.Path, "/secrets") {
						return fails(r)
					}
					return next.RoundTrip(r)
				})
			})
			l := lock(t, store, "web", LockOptions{})
			defer unlock(t, l)
			rec := begun(t, l)
			outage := func() {
				until := time.Now().Add(8 * time.Second) // longer than a fault that only this request meets
				end.Store(&until)
			}
			outage()
			finish(t, l, rec, deployed)
			wantStatuses(t, s.store, "web", "1:deployed")
			outage()
			if _, _, err := l.Recover(t.Context()); err != nil { // of an undo
				t.Errorf("Recover: %v", err)
			}
		})
	}
}

// A release that is uninstalled while all are listed is left out, without an error.
func TestListWithoutWhatIsDeletedMeanwhile(t *testing.T) {
	s := newSite(t)
	s.helmCreates(t, "stays", 1, deployed)
	s.helmCreates(t, "goes", 1, deployed)
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+SecretName("goes", 1)) {
				err := s.Client().CoreV1().Secrets(s.namespace).Delete(r.Context(), SecretName("goes", 1), metav1.DeleteOptions{})
				if err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	})
	all, err := store.List(t.Context(), ListOptions{})
	if err != nil || len(all) != 1 || all[0].Name != "stays" {
		t.Errorf("List = %v, %v; want the release that stays", all, err)
	}
}

// Parts of a revision whose labels can't be read aren't left over.
func TestTrimmingNeedsToKnowAllRevisions(t *testing.T) {
	s := newSite(t)
	runLarge(t, s.store, "web")
	parts := s.secretsWith(t, "owner=deployer")
	if len(parts) == 0 {
		t.Fatal("the record has no parts")
	}
	var warned warnings
	l := lock(t, s.store, "web", LockOptions{MaxHistory: 1, Warn: warned.add})
	defer unlock(t, l)
	rec := begun(t, l)
	s.edit(t, SecretName("web", 1), func(secret *corev1.Secret) { secret.Labels["version"] = "one" })
	finish(t, l, rec, deployed)
	if want := "removing old revisions: Secret/" + s.namespace + "/" + SecretName("web", 1); !strings.Contains(warned.String(), want) {
		t.Errorf("warned %q, want %q", &warned, want)
	}
	if left := s.secretsWith(t, "owner=deployer"); !slices.Equal(left, parts) {
		t.Errorf("of the parts %v\nthere are %v", parts, left)
	}
}

// TestSlowServerStillRecordsTheEnd: a server that takes several seconds for a write doesn't leave a release pending that was deployed.
func TestSlowServerStillRecordsTheEnd(t *testing.T) {
	s := newSite(t)
	slow := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/secrets/") {
				if err := kube.Sleep(r.Context(), 6*time.Second); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	})
	l := lock(t, slow, "web", LockOptions{})
	defer unlock(t, l)
	finish(t, l, begun(t, l), deployed)
	wantStatuses(t, s.store, "web", "1:deployed")
}

// TestAnnotatedFasterThanItIsWritten fails if a run can't record its end, or an uninstall its beginning, because another program annotates
// the record again and again between reading and writing it.
func TestAnnotatedFasterThanItIsWritten(t *testing.T) {
	s := newSite(t)
	var reads atomic.Int32
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+SecretName("web", 1)) && reads.Add(1) <= 2*maxTries {
				s.annotate(t, SecretName("web", 1))
			}
			return answer, err
		})
	})
	annotated := func() {
		t.Helper()
		if n := reads.Swap(0); n <= 2*maxTries {
			t.Errorf("the record was read %d times, want more than it was annotated", n)
		}
	}
	l := lock(t, store, "web", LockOptions{})
	rec := begun(t, l)
	s.annotate(t, SecretName("web", 1))
	finish(t, l, rec, deployed)
	annotated()
	h, err := store.History(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	s.annotate(t, SecretName("web", 1))
	if err := l.BeginUninstall(t.Context(), rec, h.Identity()); err != nil {
		t.Error(err)
	}
	annotated()
	unlock(t, l)
}

func (s *site) annotate(t *testing.T, secret string) {
	seen := fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":%q}}}`, time.Now())
	if _, err := s.Client().CoreV1().Secrets(s.namespace).Patch(t.Context(), secret, types.MergePatchType, seen, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
