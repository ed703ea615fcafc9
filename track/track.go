// Package track watches Kubernetes objects until they are ready, have failed, or time
// is up.
//
// A [Tracker] starts from what the API server answered when each object was applied, so
// an object that is ready already costs no request. The others are watched, by kind and
// namespace; pods and events are watched only for rollouts that take longer than three
// seconds. [Tracker.Wait] reports what it sees while it waits. Its error is a
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
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/rules"
)

// Until is the state that a target has to reach.
type Until string

// The states to wait for.
const (
	UntilReady    Until = ""         // ready by the rules of its kind
	UntilComplete Until = "complete" // a hook: Job complete, Pod succeeded; other kinds as UntilReady
	UntilGone     Until = "gone"     // deleted
	UntilPresent  Until = "present"  // there, in whatever state
)

// LogMode says which logs of a target's pods are wanted. The object's annotation
// deployer.io/logs overrides it.
type LogMode string

// The log modes.
const (
	LogsDefault LogMode = ""       // LogsLive for Jobs, LogsFailed for others
	LogsFailed  LogMode = "failed" // the last lines of failed containers, in the report of the failure
	LogsLive    LogMode = "live"   // each line as it is written, in addition to LogsFailed
	LogsNone    LogMode = "none"
)

// A Target is an object to wait for.
type Target struct {
	ID    kube.ID
	GVK   schema.GroupVersionKind // as applied; the baseline's when empty
	Until Until

	// Baseline is the object as the apply's response showed it. For UntilGone
	// it is the object as last seen, of which only the uid matters; nil then
	// means any object of the name. In all other cases nil means that nothing
	// is known, and the object is read first.
	Baseline *unstructured.Unstructured
	// Changed is false when the apply changed nothing. The baseline is then
	// evaluated at once, and conditions in it are not taken for old ones.
	Changed bool
	// Previous is the live object before this release; nil when it is new or
	// not known.
	Previous *unstructured.Unstructured

	// MayAppearLater says that the object isn't part of the release and may be created later.
	// While it doesn't exist it is waited for, and failures that may heal don't fail it.
	MayAppearLater bool

	Logs LogMode
}

// Options say how to track. Every zero value is the default behaviour.
type Options struct {
	// Rules are the user's own rules for kinds, from ParseRules; nil for none.
	Rules *rules.Set
	// Logs replaces the log mode of targets that have the default one.
	Logs LogMode
	// TolerateFailures keeps failures that may heal from failing an object before the
	// deadline.
	TolerateFailures bool
	// FailuresAllowed is how many crashes of a container are no failure yet.
	// nil means 2: the third fails. Annotations go first.
	FailuresAllowed *int
	// NoProgressTimeout is how long an object may be without progress. 0 means 10 minutes, or
	// the Deployment's own progressDeadlineSeconds. Annotations override it.
	NoProgressTimeout time.Duration
	// Declares reports whether the release states an object: what its ConfigMaps and Secrets
	// lack nobody will add. nil for none but the targets, which count without it.
	Declares func(kube.ID) bool
	// Now is the clock; nil means time.Now. For tests.
	Now func() time.Time
}

// A Tracker waits for objects of one cluster. It is safe for concurrent use.
type Tracker struct {
	cluster   *kube.Cluster
	opts      Options
	kindRules sync.Map // of kindRule, by schema.GroupKind
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

// Wait returns nil when every target has reached its state. It returns a *FailedError with
// the causes when some targets can't any more, and a *TimeoutError with all unready targets
// when ctx ends first; that wraps the context's error and cause. It returns an
// *UnreachableError when the API server was unreachable for two minutes.
//
// Targets that are ready by their baselines cost no request; with all of them
// ready Wait returns at once. saw is called for each change, by one goroutine
// at a time; nil is fine. All goroutines of Wait have ended when it returns.
func (t *Tracker) Wait(ctx context.Context, targets []Target, saw func(Report)) error {
	return newWait(t, targets, saw).run(ctx)
}
