package track

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	unreachableLimit = 2 * time.Minute // without an answer about any object that is waited for
	silenceLimit     = time.Second     // a server in trouble could not have told anything so lately
	probeTimeout     = 3 * time.Second // for one answer
	probeInterval    = time.Second     // between two questions to a server in trouble
)

// apiHealth is what is known about the API server: which watches have no answer, and
// whether the server reaches its storage. One that doesn't keeps watches open and tells
// nothing, so a failure that time alone has brought may rest on a silence that means
// nothing. The timers of all objects that an outage is about pause until it ends.
type apiHealth struct {
	session *session
	heardAt time.Time // when the server last told something that it had to read
	probing bool
	storage outage

	outages      int       // under way
	outagesSince time.Time // when the first of them began
	lastError    error     // of the last outage
	blindSince   time.Time // since when no object that is waited for is seen; zero when one is
}

// An outage is a time in which something that tells about objects has no answer.
type outage struct {
	doing   string // what has no answer, for people
	objects []*trackedObject
	active  bool
}

func newAPIHealth(s *session) apiHealth {
	return apiHealth{session: s, heardAt: s.opts.Now(), storage: outage{doing: "asking the API server", objects: s.objects}}
}

// heard notes that the API server has told something.
func (h *apiHealth) heard() { h.heardAt = h.session.opts.Now() }

// begin pauses the timers of the objects that the outage is about, at the time when
// something was last known of them. An outage that has begun only changes its error.
func (h *apiHealth) begin(o *outage, at time.Time, err error) {
	h.lastError = err
	if o.active {
		return
	}
	o.active = true
	for _, obj := range o.objects {
		obj.pauseTimers(at)
		h.session.dirty[obj] = true
	}
	if h.outages++; h.outages == 1 {
		h.outagesSince = h.session.opts.Now()
		h.session.report(Report{Kind: APILost, Time: h.outagesSince, Text: o.doing + ": " + strings.TrimSpace(err.Error())})
	}
}

// end lets the timers go on.
func (h *apiHealth) end(o *outage) {
	if !o.active {
		return
	}
	o.active = false
	now := h.session.opts.Now()
	for _, obj := range o.objects {
		obj.resumeTimers(now)
		h.session.dirty[obj] = true
	}
	if h.outages--; h.outages == 0 {
		h.session.report(Report{Kind: APIRegained, Time: now, Lost: now.Sub(h.outagesSince)})
	}
}

// setBlind notes whether none of the objects that are waited for can be seen.
func (h *apiHealth) setBlind(blind bool, now time.Time) {
	switch {
	case !blind:
		h.blindSince = time.Time{}
	case h.blindSince.IsZero():
		h.blindSince = now
	}
}

// failure ends a wait in which nothing has been seen for too long; nil before that.
func (h *apiHealth) failure(now time.Time) error {
	if h.blindSince.IsZero() || now.Sub(h.blindSince) < unreachableLimit {
		return nil
	}
	return &UnreachableError{For: now.Sub(h.blindSince), Err: h.lastError}
}

// silenceIsReliable reports whether silence means that nothing has changed. If that
// isn't known it asks, and the answer has the status of all objects computed again.
func (h *apiHealth) silenceIsReliable(now time.Time) bool {
	if now.Sub(h.heardAt) <= silenceLimit {
		return true
	}
	if !h.probing {
		h.probing = true
		h.session.tasks.group.Go(h.probe)
	}
	return false
}

// probe asks until the API server reaches its storage.
func (h *apiHealth) probe() {
	tasks := &h.session.tasks
	for {
		err := h.readyz(tasks.ctx)
		if !tasks.send(func() { h.handleProbe(err) }) || err == nil {
			return
		}
		select {
		case <-time.After(probeInterval):
		case <-tasks.ctx.Done():
			return
		}
	}
}

// readyz returns an error when the API server says that it doesn't reach its storage,
// or says nothing. Everybody may ask; a server that doesn't know the question, as
// proxies may not, is believed.
// https://kubernetes.io/docs/reference/using-api/health-checks/
func (h *apiHealth) readyz(ctx context.Context) error {
	typed, err := h.session.tracker.cluster.Typed()
	if err != nil {
		return nil // Wait has used the connection already
	}
	ctx, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	_, err = typed.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status):
		return err
	case strings.Contains(err.Error(), "[-]etcd"):
		return errors.New("it doesn't reach its storage")
	}
	return nil
}

func (h *apiHealth) handleProbe(err error) {
	if err != nil {
		h.begin(&h.storage, h.heardAt, err)
		return
	}
	h.heard()
	h.probing = false
	for _, obj := range h.session.objects {
		h.session.dirty[obj] = true
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
	return "renew the credentials of the kubeconfig; the rollout goes on in the cluster"
}
