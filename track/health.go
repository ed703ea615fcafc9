package track

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/kube"
)

const (
	unreachableLimit = 2 * time.Minute // without an answer about any awaited object
	silenceLimit     = time.Second     // a newer answer proves that the server reaches its storage
	probeTimeout     = 3 * time.Second // for one answer
	probeInterval    = time.Second     // between two questions to a server in trouble
)

// apiHealth is what is known about the API server: which watches have no answer, and
// whether the server reaches its storage. A server that does not reach it keeps watches
// open without events. Before time alone makes an object fail, the server is therefore
// asked. During an outage the timers of the objects that it affects pause.
type apiHealth struct {
	*session
	answeredAt time.Time // when the server last answered from its storage
	probing    bool
	storage    outage

	outages      int       // under way
	outagesSince time.Time // when the first of them began
	lastError    error     // of the last outage
	unseenSince  time.Time // since when none of the awaited objects can be observed; zero when one can
}

// An outage is a time in which a watch, or the API server's storage, does not answer.
type outage struct {
	activity string // what has no answer, for people
	objects  []*trackedObject
	active   bool
}

// isNeeded reports whether the status of any of its objects isn't final.
func (o *outage) isNeeded() bool {
	return slices.ContainsFunc(o.objects, func(obj *trackedObject) bool { return !obj.status.State.IsFinal() })
}

// recordAnswer records that the API server has answered from its storage.
func (h *apiHealth) recordAnswer() { h.answeredAt = h.opts.Now() }

// begin pauses the timers of the affected objects at the time of the last observation.
// An outage that is active only gets another error.
func (h *apiHealth) begin(o *outage, at time.Time, err error) {
	h.lastError = err
	if o.active {
		return
	}
	o.active = true
	for _, obj := range o.objects {
		obj.pauseTimers(at)
	}
	if h.outages++; h.outages == 1 {
		h.outagesSince = h.opts.Now()
		h.onEvent(Event{Kind: APILost, Time: h.outagesSince, Text: o.activity + ": " + strings.TrimSpace(err.Error())})
	}
}

// end lets the timers go on.
func (h *apiHealth) end(o *outage) {
	if !o.active {
		return
	}
	o.active = false
	now := h.opts.Now()
	for _, obj := range o.objects {
		obj.resumeTimers(now)
	}
	if h.outages--; h.outages == 0 {
		h.onEvent(Event{Kind: APIRegained, Time: now, Lost: now.Sub(h.outagesSince)})
	}
}

// remove takes an object out of what an outage affects.
func (h *apiHealth) remove(o *outage, obj *trackedObject) {
	i := slices.Index(o.objects, obj)
	if i < 0 {
		return
	}
	o.objects = slices.Delete(o.objects, i, i+1)
	if o.active {
		obj.resumeTimers(h.opts.Now())
	}
}

// setAllUnseen records whether none of the awaited objects can be observed.
func (h *apiHealth) setAllUnseen(allUnseen bool, now time.Time) {
	switch {
	case !allUnseen:
		h.unseenSince = time.Time{}
	case h.unseenSince.IsZero():
		h.unseenSince = now
	}
}

// failure is the error that ends a wait in which nothing could be observed for too long;
// nil before that.
func (h *apiHealth) failure(now time.Time) error {
	if h.unseenSince.IsZero() || now.Sub(h.unseenSince) < unreachableLimit {
		return nil
	}
	return &UnreachableError{For: now.Sub(h.unseenSince), Err: h.lastError}
}

// silenceIsReliable reports whether no event means that nothing has changed. If it isn't
// known, it starts a probe; the answer makes all statuses be computed again.
func (h *apiHealth) silenceIsReliable(now time.Time) bool {
	if now.Sub(h.answeredAt) <= silenceLimit {
		return true
	}
	if !h.probing {
		h.probing = true
		h.tasks.group.Go(h.probe)
	}
	return false
}

// probe asks until the API server reaches its storage.
func (h *apiHealth) probe() {
	tasks := &h.tasks
	for {
		err := h.readyz(tasks.ctx)
		tasks.send(func() { h.handleProbe(err) })
		if err == nil || kube.Sleep(tasks.ctx, probeInterval) != nil {
			return
		}
	}
}

// readyz returns an error if the API server says that it can't reach its storage (etcd), or
// doesn't answer. Any other answer is taken as ready: every account may ask, but a proxy in
// between may not know the path.
// https://kubernetes.io/docs/reference/using-api/health-checks/
func (h *apiHealth) readyz(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	_, err := h.typed.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status):
		return err
	case strings.Contains(err.Error(), "[-]etcd"):
		return errors.New("it can't reach its storage (etcd)")
	}
	return nil
}

func (h *apiHealth) handleProbe(err error) {
	if err != nil {
		h.begin(&h.storage, h.answeredAt, err)
		return
	}
	h.recordAnswer()
	h.probing = false
	for _, obj := range h.objects {
		obj.schedule.isDue = true
	}
	h.end(&h.storage)
}

// unauthorizedError ends a wait: nothing can be learnt without credentials.
type unauthorizedError struct{ err error }

func (e *unauthorizedError) Error() string {
	return "the API server doesn't accept our credentials any more: " + e.err.Error()
}

func (e *unauthorizedError) Unwrap() error { return e.err }

func (e *unauthorizedError) Hint() string {
	return "renew the credentials of the kubeconfig; the rollout continues in the cluster"
}
