package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// answer is what client-go makes of an answer with this code; text is the
// server's, or a proxy's that knows no Status.
func serverAnswer(code int, text string, status bool) error {
	if status {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: text}}
	}
	return apierrors.NewGenericServerResponse(code, "patch", schema.GroupResource{Resource: "configmaps"}, "a", text, 0, true)
}

// Each failure is tried again for as long as it may pass: not at all, for
// seconds, or for as long as the options say.
func TestHowLongFailuresAreRetried(t *testing.T) {
	const limit = 2 * time.Minute
	const converter = `conversion webhook for example.com/v2, Kind=Foo failed: connection refused`
	const quota = `Operation cannot be fulfilled on resourcequotas "q": the object has been modified`
	for _, c := range []struct {
		name   string
		err    error
		want   time.Duration
		target target
	}{
		{"invalid", serverAnswer(422, "spec.x: Invalid value", true), 0, target{}},
		{"forbidden", serverAnswer(403, "forbidden", true), 0, target{}},
		{"conflict", serverAnswer(409, "the object has been modified", true), 0, target{}},
		{"typed patch", serverAnswer(500, "failed to create typed patch object (default/a; v1, Kind=ConfigMap): .x: field not declared in schema", true), 0, target{}},
		{"live object of another type", serverAnswer(500, "failed to create typed live object: .spec.x: expected map, got &{y}", true), 0, target{}},
		{"too large", serverAnswer(500, "etcdserver: request is too large", true), 0, target{}},
		{"quota", serverAnswer(429, "exceeded quota: q", true), 0, target{}},
		{"nothing said", serverAnswer(500, "oops", false), unexplainedErrorWindow, target{}},
		{"an unknown reason", serverAnswer(500, "Internal error occurred: something", true), unexplainedErrorWindow, target{}},
		{"a webhook that is down", serverAnswer(500, "Internal error occurred: failed calling webhook \"x\": connection refused", true), limit, target{}},
		{"a webhook that hangs up", serverAnswer(500, "Internal error occurred: failed calling webhook \"x\": Post \"https://x\": unexpected EOF", true), limit, target{}},
		{"no leader", serverAnswer(500, "etcdserver: leader changed", true), limit, target{}},
		{"busy", serverAnswer(429, "too many requests", true), limit, target{}},
		{"bad gateway", serverAnswer(502, "<html>", false), limit, target{}},
		{"unavailable", serverAnswer(503, "", false), limit, target{}},
		{"timeout", serverAnswer(504, "", false), limit, target{}},
		{"reset", &url.Error{Op: "Patch", URL: "https://x", Err: syscall.ECONNRESET}, limit, target{}},
		{"refused", &url.Error{Op: "Patch", URL: "https://x", Err: syscall.ECONNREFUSED}, limit, target{}},
		{"unreachable", &url.Error{Op: "Patch", URL: "https://x", Err: syscall.EHOSTUNREACH}, limit, target{}},
		{"half an answer", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), limit, target{}},
		{"a stream that ended", &url.Error{Op: "Patch", URL: "https://x", Err: errors.New("stream error: stream ID 7; INTERNAL_ERROR; received from peer")}, limit, target{}},
		{"no answer in time", &url.Error{Op: "Patch", URL: "https://x", Err: context.DeadlineExceeded}, limit, target{}},
		{"a quota that others use", serverAnswer(409, quota, true), limit, target{}},
		{"a quota that others write", serverAnswer(409, quota, true), 0, target{id: kube.ID{Kind: "ResourceQuota", Name: "q"}}},
		{"a port that was let go", serverAnswer(422, "spec.ports[0].nodePort: Invalid value: 30085: provided port is already allocated", true), AdmissionLag, target{}},
		{"a kind that isn't there", serverAnswer(404, "the server could not find the requested resource", true), 0, target{}},
		{"a kind just made", serverAnswer(404, "the server could not find the requested resource", true), discoveryLagWindow, target{waits: waiting{deferral: &Deferral{}}}},
		{"a converter of others", serverAnswer(500, converter, true), limit, target{}},
		{"a converter that the release is about to mend", serverAnswer(500, converter, true), 0, target{waits: waiting{converter: []kube.ID{{Kind: "Service", Name: "hook"}}}}},
		{"a converter that runs by now", serverAnswer(500, converter, true), limit, target{waits: waiting{deferral: &Deferral{}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, began, tries := New(nil, provenance.Owner{}, Options{RetryTimeout: limit}), time.Now(), 0
				err := a.tryFor(t.Context(), &c.target, asWrite, func() error { tries++; return c.err })
				took := time.Since(began)
				switch {
				case !errors.Is(err, c.err):
					t.Errorf("got %v", err)
				case c.want == 0 && tries != 1:
					t.Errorf("%d tries", tries)
				case c.want > 0 && (took > c.want+8*time.Second || took < c.want/3): // 8s is the longest pause
					t.Errorf("%d tries in %s, want about %s", tries, took, c.want)
				}
			})
		})
	}
}

// A server that says when to come again isn't asked before.
func TestRetryAfterIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began, tries := New(nil, provenance.Owner{}, Options{}), time.Now(), 0
		busy := apierrors.NewTooManyRequests("later", 20)
		if err := a.tryWhile(t.Context(), isTransient, func() error {
			if tries++; tries == 1 {
				return busy
			}
			return nil
		}); err != nil || time.Since(began) < 20*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		began = time.Now()
		if err := a.tryWhile(t.Context(), isTransient, func() error { return apierrors.NewTooManyRequests("tomorrow", 86400) }); err == nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// A server that stays away isn't waited for by each of a thousand objects.
func TestAllObjectsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := New(nil, provenance.Owner{}, Options{RetryTimeout: time.Minute}), time.Now()
		err := kube.ForEach(1000, 16, func(int) error {
			return a.tryWhile(t.Context(), isTransient, func() error { return serverAnswer(http.StatusServiceUnavailable, "", false) })
		})
		if took := time.Since(began); err == nil || took < time.Minute || took > 3*time.Minute {
			t.Errorf("%d objects took %s", 1000, took)
		}
	})
}

// What the caller stops is not tried again.
func TestTheCallersDeadlineEndsRetrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		a, began := New(nil, provenance.Owner{}, Options{}), time.Now()
		if err := a.tryWhile(ctx, isTransient, func() error { return serverAnswer(503, "", false) }); err == nil || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
