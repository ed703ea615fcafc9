package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

type sent func(*http.Request) (*http.Response, error)

func (f sent) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const denied = `configmaps \"a\" is forbidden: User \"ci\" cannot patch resource \"configmaps\" in API group \"\" in the namespace \"prod\"`

func TestWhatIsAskedAgain(t *testing.T) {
	refused, broken := error(syscall.ECONNREFUSED), error(syscall.ECONNRESET)
	for name, c := range map[string]struct {
		method  string // GET by default
		code    int
		message string // of the Status
		named   bool   // the Status is about an object
		err     error
		review  string // what the API server says of the permission: allowed, denied, or nothing
		again   bool
	}{
		"unauthorized":                      {code: 401, again: true},
		"unauthorized write":                {method: "PATCH", code: 401, again: true},
		"denied, without a review":          {method: "PATCH", code: 403, message: denied, again: true},
		"denied, but the review allows it":  {method: "PATCH", code: 403, message: denied, review: "allowed", again: true},
		"denied, and the review says so":    {method: "PATCH", code: 403, message: denied, review: "denied"},
		"a path that the review denies":     {code: 403, message: `forbidden: User \"ci\" cannot get path \"/version\"`, review: "denied"},
		"quota":                             {method: "POST", code: 403, message: `pods \"a\" is forbidden: exceeded quota: q`},
		"webhook that denies with 409":      {method: "POST", code: 409, message: `admission webhook \"a.b.c\" denied the request: taken`},
		"webhook that denies with 503":      {method: "POST", code: 503, message: `admission webhook \"a.b.c\" denied the request: taken`},
		"webhook that denies with 401":      {method: "POST", code: 403, message: `admission webhook \"a.b.c\" denied the request: who are you`},
		"policy":                            {method: "POST", code: 422, message: `pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`},
		"an object that isn't there":        {code: 404, message: "not found", named: true},
		"a path that isn't served yet":      {code: 404, message: "not found", again: true},
		"busy":                              {method: "POST", code: 429, again: true},
		"internal error of a read":          {code: 500, again: true},
		"internal error of a write":         {method: "PATCH", code: 500},
		"unavailable to a read":             {code: 503, again: true},
		"conversion webhook that is down":   {code: 500, message: "conversion webhook for a.b/v1, Kind=C failed"},
		"connection refused to a write":     {method: "POST", err: refused, again: true},
		"connection reset during a read":    {err: broken, again: true},
		"connection reset during a write":   {method: "POST", err: broken},
		"another error of the connection":   {err: errors.New("no such host")},
		"an object that changed in between": {method: "PUT", code: 409, message: "the object has been modified", named: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			f := &shortFaults{
				next: sent(func(r *http.Request) (*http.Response, error) {
					if tries++; tries > 1 {
						return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
					}
					if r.Body != nil {
						io.Copy(io.Discard, r.Body)
					}
					if c.err != nil {
						return nil, c.err
					}
					details := ""
					if c.named {
						details = `"details":{"name":"a"},`
					}
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure",` + details + `"message":"` + c.message + `"}`
					return &http.Response{StatusCode: c.code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
				}),
				review: func(context.Context, *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
					if c.review == "" {
						return nil, errors.New("forbidden")
					}
					return &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.review == "allowed"}}, nil
				},
			}
			if c.method == "" {
				c.method = http.MethodGet
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, "https://localhost/api/v1/namespaces/prod/configmaps/a", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := f.RoundTrip(r)
			if c.err == nil && err != nil {
				t.Fatal(err)
			}
			if again := tries > 1; again != c.again {
				t.Errorf("asked again: %v, want %v", again, c.again)
			}
			if c.err == nil && !c.again {
				if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), c.message) {
					t.Errorf("the answer can't be read any more: %q, %v", body, err)
				}
			}
		})
	}
}

// TestEachTryGetsItsOwnCredentials: what adds the token of a credential plugin writes it into the request, and leaves a request
// alone that has one.
func TestEachTryGetsItsOwnCredentials(t *testing.T) {
	token, sentWith := "expired", []string(nil)
	f := &shortFaults{next: sent(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", token)
		}
		body, _ := io.ReadAll(r.Body)
		sentWith = append(sentWith, r.Header.Get("Authorization")+" "+string(body))
		token = "new"
		return &http.Response{StatusCode: map[string]int{"expired": 401, "new": 200}[r.Header.Get("Authorization")], Body: http.NoBody}, nil
	})}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://localhost/api/v1/namespaces/prod/configmaps/a", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := f.RoundTrip(r)
	if err != nil || answer.StatusCode != 200 || strings.Join(sentWith, ", ") != "expired {}, new {}" {
		t.Errorf("%v, %v, sent with %q", answer, err, sentWith)
	}
}
