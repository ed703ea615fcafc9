package kube

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// firstFaultPause before the second try; it doubles with each.
	firstFaultPause = 100 * time.Millisecond

	// faultTries is how often a request is sent while it meets faults: for a second and a half.
	faultTries = 5

	// refusalTries is the same for refusals to an account, which an API server gives for some seconds after
	// it has started, and one of several for some seconds longer than the others: for three seconds.
	refusalTries = 6

	// faultTime limits all tries but the first: what takes long to fail isn't a short fault.
	faultTime = 5 * time.Second

	// statusLimit is how much of an answer that is an error is read to find out what it says.
	statusLimit = 64 << 10
)

// A shortFaults sends requests again that meet a fault that passes in a second or so: an API server that has just started, and
// knows neither accounts nor roles nor all kinds yet; the token of a credential plugin that has expired; a connection that
// breaks; a server that is busy. It is around the transport that adds credentials, because each try may need others.
//
// A write is sent again only if it certainly wasn't carried out. Otherwise its caller has to find out.
type shortFaults struct {
	next http.RoundTripper

	// review asks, without another try, whether the account may make a request.
	review func(context.Context, *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)
	denied sync.Map // what a review has denied: authorizationv1.ResourceAttributes without a name, or NonResourceAttributes
}

func (f *shortFaults) RoundTrip(r *http.Request) (*http.Response, error) {
	if lastsLong(r) || r.URL.Path == "/readyz" || r.Body != nil && r.GetBody == nil {
		return f.next.RoundTrip(r) // tracking has its own patience with these
	}
	began, pause := time.Now(), firstFaultPause
	for try := 1; ; try++ {
		attempt := r.Clone(r.Context()) // whoever adds credentials to a request doesn't replace those that it has
		if r.GetBody != nil {
			var err error
			if attempt.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		answer, err := f.next.RoundTrip(attempt)
		tries := f.triesFor(r, answer, err)
		if try >= tries || time.Since(began)+pause > faultTime || Sleep(r.Context(), pause) != nil {
			return answer, err
		}
		pause *= 2
		if answer != nil {
			answer.Body.Close()
		}
	}
}

// triesFor returns how often a request may be sent in all if it is answered like that.
func (f *shortFaults) triesFor(r *http.Request, answer *http.Response, err error) int {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead || isReview(r)
	switch {
	case err != nil:
		unsent := utilnet.IsConnectionRefused(err)
		broken := utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
		if unsent || broken && isRead {
			return faultTries
		}
		return 1
	case answer.StatusCode < http.StatusBadRequest || answer.Header.Get("Retry-After") != "": // client-go heeds that
		return 1
	case answer.StatusCode == http.StatusUnauthorized:
		return refusalTries
	}
	status := peekStatus(answer)
	if isAdmissionDenial(status.Message) {
		return 1
	}
	switch answer.StatusCode {
	case http.StatusForbidden:
		if f.mayPass(r, status) {
			return refusalTries
		}
	case http.StatusNotFound: // without a name it isn't about an object
		if status.Details == nil || status.Details.Name == "" {
			return faultTries
		}
	case http.StatusTooManyRequests:
		return faultTries
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if isRead && !strings.Contains(status.Message, "conversion webhook") {
			return faultTries
		}
	}
	return 1
}

// mayPass reports whether a 403 may be a fault: the authorizer, not admission, refuses what a review doesn't deny.
func (f *shortFaults) mayPass(r *http.Request, status metav1.Status) bool {
	var spec authorizationv1.SelfSubjectAccessReviewSpec
	var key any
	if what := DeniedRequest(status.Message); what != nil {
		key, spec.ResourceAttributes = *what, what
		if status.Details != nil {
			spec.ResourceAttributes.Name = status.Details.Name
		}
	} else if strings.Contains(status.Message, " cannot ") && strings.Contains(status.Message, ` path "`) {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
		key = *spec.NonResourceAttributes
	} else {
		return !strings.Contains(status.Message, "is forbidden: ") // as admission and storage say
	}
	if _, known := f.denied.Load(key); known || isReview(r) {
		return false
	}
	answer, err := f.review(r.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: spec})
	if err != nil || answer.Status.Allowed {
		return true
	}
	f.denied.Store(key, true)
	return false
}

// peekStatus returns what an answer that is an error says; zero if it isn't a Status, as of a proxy. The body can
// be read again.
func peekStatus(answer *http.Response) (status metav1.Status) {
	head, _ := io.ReadAll(io.LimitReader(answer.Body, statusLimit))
	rest := answer.Body
	answer.Body = readCloser{io.MultiReader(bytes.NewReader(head), rest), rest} // an error comes again
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(head, nil, nil)
	if found, ok := decoded.(*metav1.Status); ok && err == nil {
		status = *found
	}
	return status
}

type readCloser struct {
	io.Reader
	io.Closer
}
