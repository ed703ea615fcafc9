package kube

import (
	"context"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// initialRequests is how many requests are made at once before anything is known about
	// the API server.
	initialRequests = 16

	// mostRequests is well below the number of streams that an API server allows on a connection
	// (100 or more), and limits the memory that the answers take.
	mostRequests = 64

	// answersPerProbe is the number of answers after which the limit grows by one, once the API
	// server has rejected a request. It is large because the request that exceeds what is allowed
	// waits for a second or more before it is repeated.
	answersPerProbe = 64

	// slowdown is how many times as long as the fastest one of its kind an answer may take. If it takes
	// longer, requests wait for each other, and more of them at once don't help.
	slowdown = 2
)

// A requestLimit is how many requests are made at once. It grows while answers don't become slow,
// as on a server that is far away. It is halved when priority and fairness of the API server
// rejects a request, and grows slowly from there. It is safe for concurrent use.
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
type requestLimit struct {
	mu       sync.Mutex
	limit    int
	inFlight int
	waiting  []chan struct{} // first come, first served

	rejections int // how often the limit was halved
	answers    int // since the limit was changed, after a rejection
	fastest    map[string]time.Duration
}

func newRequestLimit() *requestLimit {
	return &requestLimit{limit: initialRequests, fastest: map[string]time.Duration{}}
}

// A slot is the right to make one request.
type slot struct {
	rejections int  // of the limit, when the slot was taken
	full       bool // most slots were taken
}

// acquire waits for a slot, or for the end of ctx.
func (l *requestLimit) acquire(ctx context.Context) (slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight < l.limit {
		l.inFlight++
		return l.newSlot(), nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	l.mu.Lock()
	if i := slices.Index(l.waiting, turn); i >= 0 { // ctx has ended
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return slot{}, context.Cause(ctx)
	}
	return l.newSlot(), nil
}

func (l *requestLimit) newSlot() slot {
	return slot{rejections: l.rejections, full: 2*l.inFlight > l.limit}
}

// release frees a slot, and lets those that wait have what is free.
func (l *requestLimit) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	for len(l.waiting) > 0 && l.inFlight < l.limit {
		l.inFlight++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// rejected halves the limit. Requests that were made before the limit was halved don't halve it again.
func (l *requestLimit) rejected(s slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.rejections != l.rejections {
		return
	}
	l.rejections++
	l.limit, l.answers = max(1, l.limit/2), 0
}

// answered adapts the limit to an answer to a request of some kind. The first answer of a kind only
// says what the others are compared with. While the limit isn't reached, it doesn't grow.
func (l *requestLimit) answered(s slot, kind string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	best, known := l.fastest[kind]
	if !known || took < best {
		l.fastest[kind] = took
	}
	slow := took > slowdown*best
	switch {
	case !known:
	case slow && l.limit > initialRequests:
		l.limit--
	case slow && l.limit == initialRequests, !s.full, l.limit == mostRequests:
	case l.rejections == 0:
		l.limit++
	default:
		if l.answers++; l.answers == answersPerProbe {
			l.limit, l.answers = l.limit+1, 0
		}
	}
}

func (l *requestLimit) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// RequestsAtOnce is how many requests the cluster now takes at once. It changes with each
// answer.
func (c *Cluster) RequestsAtOnce() int { return c.requests.current() }

// send sends a request when it has a slot.
func (l *requestLimit) send(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if isUnlimited(r) {
		return next.RoundTrip(r)
	}
	s, err := l.acquire(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	defer l.release()
	sent := time.Now()
	answer, err := next.RoundTrip(r)
	switch {
	case err != nil: // a connection that breaks says nothing about how much is allowed
	case isRejection(answer):
		l.rejected(s)
	case answer.StatusCode < http.StatusBadRequest:
		l.answered(s, kindOfRequest(r), time.Since(sent))
	}
	return answer, err
}

// isUnlimited reports whether a request needs no slot: a watch or a log that is followed, which may last
// long; the question whether the server is ready; and requests for the Lease, which a run must renew in
// time, also while it holds a slot.
func isUnlimited(r *http.Request) bool {
	return lastsLong(r) || r.URL.Path == "/readyz" || strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/")
}

// lastsLong reports whether a request is a watch, or a log that is followed.
func lastsLong(r *http.Request) bool {
	query := r.URL.Query()
	return query.Has("watch") || query.Has("follow")
}

// isRejection reports whether priority and fairness, or a proxy on the way, has rejected a request. Such a
// rejection is plain text. A Status, in JSON or protobuf, is about an object, such as one of a kind whose
// storage is still being set up.
// k8s.io/apiserver/pkg/server/filters/maxinflight.go
func isRejection(answer *http.Response) bool {
	if answer.StatusCode != http.StatusTooManyRequests {
		return false
	}
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // empty if there is none
	return media != "application/json" && media != "application/vnd.kubernetes.protobuf"
}

// kindOfRequest returns the same text for requests that should take equally long: those with the same
// method and collection that store something, or that don't.
func kindOfRequest(r *http.Request) string {
	collection := r.URL.Path
	if r.Method != http.MethodPost {
		collection = path.Dir(collection)
	}
	kind := r.Method + " " + collection
	if r.URL.Query().Has("dryRun") {
		kind += " dry run"
	}
	return kind
}
