package kube

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// fill takes slots until the limit is reached.
func fill(t *testing.T, l *requestLimit) []slot {
	t.Helper()
	var slots []slot
	for range l.current() - l.inFlight {
		s, err := l.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, s)
	}
	return slots
}

// answer lets all requests of a full limit be answered after a time.
func answer(t *testing.T, l *requestLimit, took time.Duration) {
	t.Helper()
	for _, s := range fill(t, l) {
		l.answered(s, "GET", took)
		l.release()
	}
}

// An API server that is far away answers many requests as fast as one.
func TestMoreRequestsAtOnceWhileAnswersStayFast(t *testing.T) {
	l := newRequestLimit()
	for range 5 {
		answer(t, l, 80*time.Millisecond)
	}
	if got := l.current(); got != mostRequests {
		t.Errorf("%d requests at once, want %d", got, mostRequests)
	}
}

// Whoever waits for a busy server gains nothing by asking for more at once.
func TestSlowAnswersBringBackTheInitialLimit(t *testing.T) {
	l := newRequestLimit()
	for range 5 {
		answer(t, l, 80*time.Millisecond)
	}
	for range 10 {
		answer(t, l, 200*time.Millisecond)
	}
	if got := l.current(); got != initialRequests {
		t.Errorf("%d requests at once, want %d", got, initialRequests)
	}
}

// A limit that isn't reached says nothing about a higher one.
func TestSingleRequestsDontRaiseTheLimit(t *testing.T) {
	l := newRequestLimit()
	for range 1000 {
		s, err := l.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.answered(s, "GET", time.Millisecond)
		l.release()
	}
	if got := l.current(); got != initialRequests {
		t.Errorf("%d requests at once, want %d", got, initialRequests)
	}
}

// Requests of one moment are rejected together: that is one reason to make fewer, not sixteen.
func TestRejectionsOfOneMomentHalveTheLimitOnce(t *testing.T) {
	l := newRequestLimit()
	for _, want := range []int{8, 4, 2, 1, 1} {
		for _, s := range fill(t, l) {
			l.rejected(s)
			l.release()
		}
		if got := l.current(); got != want {
			t.Fatalf("%d requests at once, want %d", got, want)
		}
	}
}

// After a rejection the limit grows again, by one for many answers.
func TestLimitGrowsSlowlyAfterARejection(t *testing.T) {
	l := newRequestLimit()
	for _, s := range fill(t, l) {
		l.rejected(s)
		l.release()
	}
	before := l.current()
	for range 4 * answersPerProbe / before {
		answer(t, l, time.Millisecond)
	}
	if got := l.current(); got <= before || got > before+4 {
		t.Errorf("%d requests at once after %d answers, want a few more than %d", got, 4*answersPerProbe, before)
	}
}

// Who comes first is served first, and who stops waiting doesn't take a slot with it.
func TestSlotsAreGivenInTurn(t *testing.T) {
	l := newRequestLimit()
	fill(t, l)
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := l.acquire(gone); left <- err }()
	waitFor(t, l, 1)
	served := make(chan int)
	for i := range 2 {
		go func() {
			if _, err := l.acquire(t.Context()); err == nil {
				served <- i
			}
		}()
		waitFor(t, l, 2+i)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	for want := range 2 {
		l.release()
		if got := <-served; got != want {
			t.Errorf("%d was served, want %d", got, want)
		}
	}
}

// waitFor waits until n requests wait for a slot.
func waitFor(t *testing.T, l *requestLimit, n int) {
	t.Helper()
	for {
		l.mu.Lock()
		waiting := len(l.waiting)
		l.mu.Unlock()
		if waiting == n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
		time.Sleep(time.Millisecond)
	}
}

// A watch lasts as long as the run, and a Lease is renewed from within a write: neither may wait for
// a slot.
func TestWatchesAndLeasesDontWait(t *testing.T) {
	for url, want := range map[string]bool{
		"/api/v1/pods?watch=true":                            true,
		"/api/v1/namespaces/a/pods/b/log?follow=true":        true,
		"/apis/coordination.k8s.io/v1/namespaces/a/leases/x": true,
		"/readyz":                   true,
		"/api/v1/namespaces/a/pods": false,
		"/apis/apps/v1/namespaces/a/deployments/x?dryRun=All&force=true": false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com"+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := isUnlimited(r); got != want {
			t.Errorf("isUnlimited(%s) = %t, want %t", url, got, want)
		}
	}
}

// What the API server says about an object isn't about the number of requests.
func TestOnlyPlainRejectionsCount(t *testing.T) {
	for _, c := range []struct {
		code    int
		content string
		want    bool
	}{
		{http.StatusTooManyRequests, "text/plain; charset=utf-8", true},
		{http.StatusTooManyRequests, "", true},
		{http.StatusTooManyRequests, "application/json", false},
		{http.StatusTooManyRequests, "application/vnd.kubernetes.protobuf", false},
		{http.StatusServiceUnavailable, "text/plain; charset=utf-8", false},
	} {
		answer := &http.Response{StatusCode: c.code, Header: http.Header{"Content-Type": {c.content}}}
		if got := isRejection(answer); got != c.want {
			t.Errorf("isRejection(%d %q) = %t, want %t", c.code, c.content, got, c.want)
		}
	}
}
