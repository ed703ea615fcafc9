package release

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientretry "k8s.io/client-go/util/retry"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

func (s *site) lease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	lease, err := s.Client().CoordinationV1().Leases(s.namespace).Get(t.Context(), leaseName(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestManyRunsOneAtATime(t *testing.T) {
	s := newSite(t)
	const runs = 20
	var inside atomic.Int32
	var all sync.WaitGroup
	errs := make([]error, runs)
	for i := range runs {
		all.Go(func() { errs[i] = contend(t, s, &inside) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 1; i < runs; i++ {
		want = append(want, fmt.Sprintf("%d:superseded", i))
	}
	wantStatuses(t, s.store, "web", strings.Join(append(want, fmt.Sprintf("%d:deployed", runs)), " "))
	if lease := s.lease(t, "web"); lease != nil {
		t.Errorf("Lease left: %v", lease)
	}
}

// contend is one of many runs; each has its own connection.
func contend(t *testing.T, s *site, inside *atomic.Int32) error {
	store := s.as(s.Config())
	opts := quick(t, LockOptions{Timeout: 2 * time.Minute})
	opts.Duration = time.Minute // nobody dies, and a busy machine mustn't make it look so
	l, err := store.Lock(t.Context(), "web", opts)
	if err != nil {
		return err
	}
	if n := inside.Add(1); n != 1 {
		t.Errorf("%d runs have the lock", n)
	}
	if s.lease(t, "web").Spec.LeaseTransitions != nil {
		t.Error("took over from somebody who lives")
	}
	h, recovered, err := l.Recover(t.Context())
	if err != nil || len(recovered) != 0 {
		return fmt.Errorf("recovered %v: %w", recovered, err)
	}
	rec := sample("web", h.Next(), pending)
	if err := l.Begin(t.Context(), rec, h.Identity()); err != nil {
		return err
	}
	if got := strings.Count(statuses(t, store, "web"), "pending"); got != 1 {
		t.Errorf("%d revisions are pending", got)
	}
	if err := l.Finish(t.Context(), rec, deployed, "done"); err != nil {
		return err
	}
	inside.Add(-1)
	return l.Unlock(t.Context())
}

func TestBusy(t *testing.T) {
	s := newSite(t)
	first := lock(t, s.store, "web", LockOptions{Operation: "upgrade to revision 7"})

	t.Run("at once, and by whom", func(t *testing.T) {
		_, err := s.store.Lock(t.Context(), "web", quick(t, LockOptions{}))
		var busy *BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("Lock = %v, want a *BusyError", err)
		}
		for _, part := range []string{inProgress, first.holder.ProcessDescription, "upgrade to revision 7", "since 20"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q doesn't say %q", err, part)
			}
		}
	})
	t.Run("other releases are free", func(t *testing.T) {
		unlock(t, lock(t, s.store, "api", LockOptions{}))
	})
	t.Run("whoever waits gets it next", func(t *testing.T) {
		waiting := make(chan Holder, 1)
		got := make(chan error, 1)
		go func() {
			second, err := s.store.Lock(t.Context(), "web", quick(t, LockOptions{Timeout: time.Minute, OnWaiting: func(h Holder) { waiting <- h }}))
			if err == nil {
				err = second.Unlock(t.Context())
			}
			got <- err
		}()
		if h := <-waiting; h.Run != first.holder.Run {
			t.Errorf("waits for %v, want %v", h, first.holder)
		}
		unlock(t, first)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
	if lease := s.lease(t, "web"); lease != nil {
		t.Errorf("Lease left: %v", lease)
	}
}

// When the answer to a heartbeat was lost, the next one renews the Lease. To see that it is still ours
// isn't enough: others count from its last renewal.
func TestHeartbeatAfterALostAnswer(t *testing.T) {
	s := newSite(t)
	l, err := s.store.Lock(t.Context(), "web", LockOptions{Renew: time.Hour}) // no heartbeats but the test's
	if err != nil {
		t.Fatal(err)
	}
	before := l.current.Load()
	if err := l.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewed := s.lease(t, "web").ResourceVersion
	l.current.Store(before)
	if err := l.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.lease(t, "web").ResourceVersion == renewed {
		t.Error("the Lease wasn't renewed")
	}
	unlock(t, l)
}

func TestHeartbeatGoesOnAfterCancel(t *testing.T) {
	s := newSite(t)
	ctx, cancel := contextWithCancel(t)
	l, err := s.store.Lock(ctx, "web", quick(t, LockOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	rec := begun(t, l)
	cancel() // Ctrl-C
	if err := l.Save(ctx, rec); err == nil {
		t.Error("Save succeeded after the context had ended")
	}
	version := s.lease(t, "web").ResourceVersion
	s.Eventually(t, time.Minute, "another heartbeat", func(_ctx) error {
		if s.lease(t, "web").ResourceVersion == version {
			return errors.New("none yet")
		}
		return nil
	})
	if err := l.Finish(ctx, rec, failed, "interrupted by SIGINT: "+strings.Repeat("x", 2*maxDescription)); err != nil {
		t.Errorf("Finish after the context had ended: %v", err)
	}
	if got := rec.Info.Description; len(got) != maxDescription || !strings.HasPrefix(got, "interrupted by SIGINT") {
		t.Errorf("a failure is described by %q", got)
	}
	if err := l.Unlock(ctx); err != nil {
		t.Errorf("Unlock after the context had ended: %v", err)
	}
	wantStatuses(t, s.store, "web", "1:failed")
}

// helperEnv makes the test program a run that holds a release until it's killed.
const helperEnv = "RELEASE_TEST_HOLD"

func TestHelperHold(t *testing.T) {
	where := os.Getenv(helperEnv)
	if where == "" {
		t.Skip("for TestKilledRuns only")
	}
	kubeconfig, namespace, _ := strings.Cut(where, " ")
	cluster, err := kube.Connect(kube.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	l := lock(t, NewStore(cluster, namespace), "web", LockOptions{Operation: "upgrade"})
	rec := begun(t, l)
	rec.Journal.Step = "main"
	if err := l.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	fmt.Println("holding", l.holder.Run)
	select {} // until killed
}

// kill9 starts a run that is at work in step main, and kills it.
func kill9(t *testing.T, s *site) (run string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperHold$", "-test.v")
	cmd.Env = append(os.Environ(), helperEnv+"="+s.Kubeconfig(t, s.namespace)+" "+s.namespace, "CI_JOB_URL=https://ci.example/job/7", "GITHUB_RUN_ID=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for run == "" && lines.Scan() {
		said = append(said, lines.Text())
		run, _ = strings.CutPrefix(lines.Text(), "holding ")
		if run == lines.Text() {
			run = ""
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if run == "" {
		t.Fatalf("the run to be killed said %q", said)
	}
	return run
}

func TestKilledRuns(t *testing.T) {
	s := newSite(t)
	run(t, s.store, "web", deployed)

	for _, c := range []struct {
		name     string
		sameHost bool
	}{{"of this machine", true}, {"of another machine", false}} {
		t.Run(c.name, func(t *testing.T) {
			dead := kill9(t, s)
			if !c.sameHost {
				s.forgetProcess(t, "web")
			}
			waited := false
			l := lock(t, s.store, "web", LockOptions{OnWaiting: func(Holder) { waited = true }}) // no flag
			defer unlock(t, l)
			if waited == c.sameHost {
				t.Errorf("it waited: %v", waited)
			}
			if s.lease(t, "web").Spec.LeaseTransitions == nil {
				t.Fatalf("didn't take over from run %s", dead)
			}
			h, recovered, err := l.Recover(t.Context())
			if err != nil || len(recovered) != 1 {
				t.Fatalf("Recover = %v, %v", recovered, err)
			}
			for _, part := range []string{"in step main", "https://ci.example/job/7", "pending-upgrade"} {
				if !strings.Contains(recovered[0].String(), part) {
					t.Errorf("%q doesn't say %q", recovered[0], part)
				}
			}
			rec, err := h.Load(t.Context(), recovered[0].Revision)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Info.Status != failed || !strings.Contains(rec.Info.Description, "interrupted in step main") || rec.Journal.Run != dead {
				t.Errorf("recovered record: %s, %q, %+v", rec.Info.Status, rec.Info.Description, rec.Journal)
			}
			next := begun(t, l)
			finish(t, l, next, deployed)
		})
	}
	wantStatuses(t, s.store, "web", "1:superseded 2:failed 3:superseded 4:failed 5:deployed")
}

// The Lease of a release without records is deleted, unless its holder is alive.
func TestClearLock(t *testing.T) {
	s := newSite(t)
	kill9(t, s)
	rec, err := s.store.Get(t.Context(), "web", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.deleteSecret(t.Context(), SecretName("web", 1), string(rec.stored.uid)); err != nil {
		t.Fatal(err)
	}
	if s.lease(t, "web") == nil {
		t.Fatal("the dead run has left no Lease")
	}
	if err := s.store.DeleteDeadLease(t.Context(), "web"); err != nil || s.lease(t, "web") != nil {
		t.Errorf("ClearLock = %v, and leaves %v", err, s.lease(t, "web"))
	}
	if err := s.store.DeleteDeadLease(t.Context(), "web"); err != nil {
		t.Errorf("ClearLock without a lock = %v", err)
	}
	defer unlock(t, lock(t, s.store, "web", LockOptions{}))
	if err := s.store.DeleteDeadLease(t.Context(), "web"); err != nil || s.lease(t, "web") == nil {
		t.Errorf("ClearLock = %v, and the Lease of a living run is %v", err, s.lease(t, "web"))
	}
}

// forgetProcess makes a Lease look as if it came from another machine.
func (s *site) forgetProcess(t *testing.T, name string) {
	t.Helper()
	err := clientretry.RetryOnConflict(clientretry.DefaultBackoff, func() error { // its holder may be renewing it
		lease := s.lease(t, name)
		lease.Annotations[annotationProcess] = "another-boot pid:[1] 1 1"
		_, err := s.Client().CoordinationV1().Leases(s.namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cut gives a store whose requests fail while cut is set; refused is called for each.
func (s *site) cut() (store *Store, cut *atomic.Bool, refused <-chan struct{}) {
	cut, told := new(atomic.Bool), make(chan struct{})
	return s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if !cut.Load() {
				return next.RoundTrip(r)
			}
			select {
			case told <- struct{}{}:
			default:
			}
			return nil, errors.New("test: cut off")
		})
	}), cut, told
}

// A run that only waits outlives an outage that is longer than its Lease, if nobody
// has taken over. One with a change under way stops: the change might still happen.
func TestOutage(t *testing.T) {
	s := newSite(t)
	store, cut, refused := s.cut()
	change := func(l *Lock) func() {
		t.Helper()
		over, err := l.BeginWrite(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return over
	}
	waits := lock(t, store, "waits", LockOptions{Warn: func(string) {}})
	defer unlock(t, waits)
	changes := lock(t, store, "changes", LockOptions{Warn: func(string) {}})
	defer unlock(t, changes)
	change(waits)()
	defer change(changes)()
	cut.Store(true)
	if err := waitDone(t, changes.Context()); !errors.As(err, new(*LockLostError)) {
		t.Errorf("the context of a change ended by %v, want a *LostError", err)
	}
	for n := 0; n < 3; { // heartbeats of a silent run, one of which at least was whole
		select {
		case <-refused:
			if waits.mayBeTakenOver() {
				n++
			}
		case <-waits.Context().Done():
			t.Fatalf("who only waits has stopped: %v", context.Cause(waits.Context()))
		}
	}
	if _, err := waits.BeginWrite(t.Context()); err == nil || errors.As(err, new(*LockLostError)) {
		t.Errorf("Change in the outage = %v, want that the Lease can't be renewed", err)
	}
	cut.Store(false)
	change(waits)()
}

func TestPausedRunIsFencedOut(t *testing.T) {
	s := newSite(t)
	store, paused, _ := s.cut()
	sleeper := lock(t, store, "web", LockOptions{Warn: func(string) {}})
	rec := begun(t, sleeper)
	paused.Store(true)
	s.forgetProcess(t, "web") // our own process lives, and can't be told from a paused one

	next := lock(t, s.store, "web", LockOptions{})
	if _, recovered, err := next.Recover(t.Context()); err != nil || len(recovered) != 1 {
		t.Fatalf("Recover = %v, %v", recovered, err)
	}
	second := begun(t, next)
	paused.Store(false)

	if err := waitDone(t, sleeper.Context()); !errors.As(err, new(*LockLostError)) {
		t.Errorf("the sleeper's context ended by %v, want a *LostError", err)
	}
	for what, err := range map[string]error{
		"Save":   sleeper.Save(t.Context(), rec),
		"Begin":  sleeper.Begin(t.Context(), sample("web", 0, pending), ""),
		"Finish": sleeper.Finish(t.Context(), rec, deployed, "I did it"),
	} {
		if !errors.As(err, new(*LockLostError)) {
			t.Errorf("the sleeper's %s = %v, want a *LostError", what, err)
		}
	}
	unlock(t, sleeper)
	if lease := s.lease(t, "web"); lease == nil || *lease.Spec.HolderIdentity != next.holder.Run {
		t.Errorf("the sleeper's Unlock changed the Lease: %v", lease)
	}
	finish(t, next, second, deployed)
	unlock(t, next)
	wantStatuses(t, s.store, "web", "1:failed 2:deployed")
}

// TestPausedRunDoesNotRestoreWhatWasUninstalled fails if a paused run writes its record again, as if somebody
// had deleted it by mistake, after the run that took over has uninstalled the release.
func TestPausedRunDoesNotRestoreWhatWasUninstalled(t *testing.T) {
	for _, installedAgain := range []bool{false, true} {
		t.Run(fmt.Sprintf("installed again %v", installedAgain), func(t *testing.T) {
			s := newSite(t)
			run(t, s.store, "web", deployed)
			store, paused, _ := s.cut()
			sleeper := lock(t, store, "web", LockOptions{Warn: func(string) {}})
			rec := begun(t, sleeper)
			paused.Store(true)
			s.forgetProcess(t, "web") // our own process lives, and can't be told from a paused one

			next := lock(t, s.store, "web", LockOptions{})
			h, _, err := next.Recover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			latest, err := h.Load(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := next.BeginUninstall(t.Context(), latest, current(t, s.store, "web")); err != nil {
				t.Fatal(err)
			}
			if err := next.FinishUninstall(t.Context(), latest, false, "gone"); err != nil {
				t.Fatal(err)
			}
			unlock(t, next)
			want := ""
			if installedAgain {
				run(t, s.store, "web", deployed)
				want = "1:deployed"
			}
			paused.Store(false)

			if err := sleeper.Finish(t.Context(), rec, deployed, "I did it"); !errors.As(err, new(*LockLostError)) {
				t.Errorf("the sleeper's Finish = %v, want a *LockLostError", err)
			}
			unlock(t, sleeper)
			wantStatuses(t, s.store, "web", want)
		})
	}
}

// TestDeletedLease fails if a run begins while another one, whose Lease somebody has just deleted to
// stop it, hasn't noticed that yet: nobody would delete what it still creates.
func TestDeletedLease(t *testing.T) {
	s := newSite(t)
	first := lock(t, s.store, "web", LockOptions{Warn: func(string) {}})
	defer unlock(t, first)
	begun(t, first)
	if err := s.Client().CoordinationV1().Leases(s.namespace).Delete(t.Context(), leaseName("web"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next, err := s.store.Lock(t.Context(), "web", LockOptions{Renew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(t, next)
	if _, recovered, err := next.Recover(t.Context()); err != nil || len(recovered) != 1 {
		t.Fatalf("Recover = %v, %v", recovered, err)
	}
	if first.Context().Err() == nil {
		t.Error("the first run goes on")
	}
}

func TestRecordIsTheFenceWhenTheLeaseIsNot(t *testing.T) {
	s := newSite(t)
	l := lock(t, s.store, "web", LockOptions{})
	rec := begun(t, l)
	// Somebody recovers it while we're paused, before our heartbeat notices.
	_, secret, err := s.store.read(t.Context(), "web", 1)
	if err == nil {
		err = s.store.patchRecord(t.Context(), secret, failed, "settled")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Save(t.Context(), rec); !errors.As(err, new(*LockLostError)) {
		t.Errorf("Save = %v, want a *LostError", err)
	}
	if err := waitDone(t, l.Context()); !errors.As(err, new(*LockLostError)) {
		t.Errorf("the context ended by %v, want a *LostError", err)
	}
	if err := l.Finish(t.Context(), rec, deployed, "done"); !errors.As(err, new(*LockLostError)) {
		t.Errorf("Finish = %v, want a *LostError", err)
	}
	unlock(t, l)
	wantStatuses(t, s.store, "web", "1:failed")
}

func TestWithoutPermissionForLeases(t *testing.T) {
	s := newSite(t)
	user := s.User(t, s.namespace, kubetest.Rule("", "get,list,create,update,delete", "secrets"))
	store := s.as(user.Config())
	var warned warnings
	first := lock(t, store, "web", LockOptions{Warn: warned.add})
	second := lock(t, store, "web", LockOptions{Warn: warned.add})
	if first.hasLease() || !strings.Contains(warned.String(), "leases.coordination.k8s.io") {
		t.Errorf("leased %v, warned %q", first.hasLease(), &warned)
	}
	rec := sample("web", 1, pending)
	if err := first.Begin(t.Context(), rec, current(t, s.store, "web")); err != nil {
		t.Fatal(err)
	}
	if err := second.Begin(t.Context(), sample("web", 1, pending), current(t, s.store, "web")); !errors.As(err, new(*HistoryChangedError)) {
		t.Errorf("the second run's Begin = %v, want a *MovedError", err)
	}
	// The first run lives, as far as anybody knows.
	var pendingErr *PendingError
	if _, _, err := second.Recover(t.Context()); !errors.As(err, &pendingErr) {
		t.Errorf("Recover = %v, want a *PendingError", err)
	}
	finish(t, first, rec, deployed)
	for _, l := range []*Lock{first, second} {
		unlock(t, l)
	}
	wantStatuses(t, store, "web", "1:deployed")
}

// While the API server counts another object for a quota, it refuses even writes that the quota allows:
// they are tried again.
func TestContendedQuota(t *testing.T) {
	s := newSite(t)
	var refused sync.Map
	store := s.through(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPost {
				return next.RoundTrip(r)
			}
			if _, again := refused.LoadOrStore(r.URL.Path, true); again {
				return next.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusConflict, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,` +
					`"message":"Operation cannot be fulfilled on resourcequotas \"q\"","details":{"name":"q","kind":"resourcequotas"}}`))}, nil
		})
	})
	l := lock(t, store, "web", LockOptions{})
	finish(t, l, begun(t, l), deployed)
	unlock(t, l)
	wantStatuses(t, s.store, "web", "1:deployed")
	for _, kind := range []string{"leases", "secrets"} {
		found := false
		refused.Range(func(path, _ any) bool {
			found = found || strings.HasSuffix(path.(string), "/"+kind)
			return true
		})
		if !found {
			t.Errorf("no creation of %s was refused: the test tests nothing", kind)
		}
	}
}

func TestLostAnswers(t *testing.T) {
	s := newSite(t)
	to := func(method, path string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, path) }
	}
	for name, match := range map[string]func(*http.Request) bool{
		"lock":            to(http.MethodPost, "/leases"),
		"heartbeat":       to(http.MethodPut, "/leases"),
		"unlock":          to(http.MethodDelete, "/leases"),
		"begin":           to(http.MethodPost, "/secrets"),
		"save-and-finish": to(http.MethodPut, "/secrets"),
		"prune":           to(http.MethodDelete, "/secrets"),
	} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Int32
			store := s.through(losesAnswers(2, &lost, match))
			run(t, s.store, name, deployed)
			l := lock(t, store, name, LockOptions{})
			rec := begun(t, l)
			rec.Journal.Step = "main"
			if err := l.Save(t.Context(), rec); err != nil {
				t.Errorf("Save: %v", err)
			}
			if name == "heartbeat" {
				s.Eventually(t, time.Minute, "lost heartbeats", func(_ctx) error {
					if lost.Load() < 4 {
						return fmt.Errorf("%d", lost.Load())
					}
					return nil
				})
			}
			finish(t, l, rec, deployed)
			if err := trim(t.Context(), store, name, 1); err != nil && name != "prune" {
				t.Error(err)
			}
			if err := l.Context().Err(); err != nil {
				t.Errorf("the lock was lost: %v", err)
			}
			unlock(t, l)
			if s.lease(t, name) != nil {
				t.Error("the Lease is left")
			}
			wantStatuses(t, s.store, name, "2:deployed")
			if lost.Load() == 0 {
				t.Error("no answer was lost: the test tests nothing")
			}
		})
	}
}

// Clocks differ. A holder that renews its Lease lives, whatever time it
// writes into it, and one that doesn't is dead.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			leases := s.Client().CoordinationV1().Leases(s.namespace)
			holder := Holder{Run: "elsewhere", ProcessDescription: "somebody", Since: time.Now().Add(off), process: "another-boot pid:[1] 1 1 another-host"}
			lease, err := leases.Create(t.Context(), newLease(s.namespace, "web", holder, 2*time.Second), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			renewing, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				for n := int64(0); renewing.Err() == nil; n++ {
					at := metav1.NewMicroTime(holder.Since.Add(time.Duration(n) * time.Microsecond))
					lease.Spec.RenewTime = &at
					if lease, err = leases.Update(context.WithoutCancel(renewing), lease, metav1.UpdateOptions{}); err != nil {
						break // somebody has taken it
					}
					_ = kube.Sleep(renewing, 50*time.Millisecond)
				}
				ended <- err
			}()
			_, busy := s.store.Lock(t.Context(), "web", quick(t, LockOptions{}))
			stop()
			if err := <-ended; err != nil || !errors.As(busy, new(*BusyError)) {
				t.Fatalf("while it was renewed: Lock = %v, the renewal %v", busy, err)
			}
			l := lock(t, s.store, "web", LockOptions{})
			if s.lease(t, "web").Spec.LeaseTransitions == nil {
				t.Errorf("didn't take over from run %s", holder.Run)
			}
			unlock(t, l)
		})
	}
}

// A quota that refuses the Lease isn't a missing permission: the run must not go on without a lock unasked.
func TestLeaseRefusedByQuota(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	quotas := s.Client().CoreV1().ResourceQuotas(s.namespace)
	none := corev1.ResourceList{"count/leases.coordination.k8s.io": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-leases"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Eventually(t, time.Minute, "the quota is in force", func(ctx context.Context) error { // admission knows it a moment after its status is there
		probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		_, err := s.Client().CoordinationV1().Leases(s.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("a Lease is answered with %v", err)
		}
		return nil
	})
	var warned warnings
	_, err := s.store.Lock(ctx, "web", quick(t, LockOptions{Warn: warned.add}))
	if err == nil || !strings.Contains(err.Error(), "can't be locked") || !strings.Contains(err.Error(), "exceeded quota: no-leases") || warned.String() != "" {
		t.Errorf("Lock = %v, want an error with the quota's words; warned %q", err, &warned)
	}
	without := lock(t, s.store, "web", LockOptions{NoLease: true})
	if without.hasLease() {
		t.Error("it has a Lease with NoLease")
	}
	unlock(t, without)
}
