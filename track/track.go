// Package track watches Kubernetes objects until they are ready, have failed, or time
// is up.
//
// A [Tracker] starts from what the API server answered when each object was applied, so
// an object that is ready already costs no request. The others are watched, by kind and
// namespace; pods and events only where a rollout takes longer than a second, or
// where logs are shown as they are written, such as those of Jobs; the events of
// PersistentVolumeClaims after one second. [Tracker.Wait] reports what it sees while it waits. Its error is a
// [*FailedError] with the causes of a failure, a [*TimeoutError] with what is unready, or
// an [*UnreachableError]. [Tracker.ComputeStatus] computes the status of objects once,
// without waiting.
//
// Whether an object is ready follows from its kind, see package rules; annotations of the
// object and rules of the user go before that. When a problem of pods is final follows
// from its class, see package class.
//
// No permission is required. Where a watch is not permitted, objects are watched by name,
// then read, then read by dry runs; where nothing is permitted an object counts as ready
// and [Status].Unverified is true. While the API server is unreachable the timers of
// failures pause.
package track

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/rules"
)

// A Tracker waits for objects of one cluster. It is safe for concurrent use.
type Tracker struct {
	cluster   *kube.Cluster
	opts      Options
	kindRules sync.Map // of kindRule, by schema.GroupKind

	workloadsReadyAt atomic.Pointer[time.Time] // when a wait ended in which workloads became ready that may be controllers; nil before
}

// New returns a Tracker. It does no network I/O.
func New(c *kube.Cluster, opts Options) *Tracker {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Tracker{cluster: c, opts: opts}
}

// ParseRules reads a rules file. Its rules override the built-in ones.
func ParseRules(data []byte) (*rules.Set, error) { return rules.Parse(data) }

// ReadyWhenPresent is that of the tracker's options.
func (t *Tracker) ReadyWhenPresent(obj *unstructured.Unstructured) bool {
	return t.opts.ReadyWhenPresent(obj)
}

// Wait returns nil when every target has reached its state. It returns a *FailedError with
// the causes when some targets can't any more, and a *TimeoutError with all unready targets
// when ctx ends first; that wraps the context's error and cause. It returns an
// *UnreachableError when the API server was unreachable for two minutes.
//
// Targets that are ready by their baselines cost no request; with all of them
// ready Wait returns at once. onEvent is called for each change, by one goroutine
// at a time; nil is fine. All goroutines of Wait have ended when it returns.
func (t *Tracker) Wait(ctx context.Context, targets []Target, onEvent func(Event)) error {
	return newWait(t, targets, onEvent).run(ctx)
}
