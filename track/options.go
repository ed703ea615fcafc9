package track

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/rules"
)

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
	// Declares reports whether the release declares an object. Nobody else is expected to add
	// keys to its ConfigMaps and Secrets. With nil only the targets count as declared.
	Declares func(kube.ID) bool
	// Now is the clock; nil means time.Now. For tests.
	Now func() time.Time
}

// computeStatus computes the status of an object without a baseline. It does no I/O.
// kindRule is the rule in the definition of its kind; nil when it has none.
func (o Options) computeStatus(obj *unstructured.Unstructured, now time.Time, kindRule *rules.Rule) Status {
	status := Status{State: Ready}
	if set := settingsOf(obj); !set.isSkipped() {
		status = statusOf(o.Rules.Evaluate(rules.Input{Object: obj, Changed: true, Now: now, AppliedAt: obj.GetCreationTimestamp().Time, ProgressedAt: obj.GetCreationTimestamp().Time,
			Own: cmp.Or(set.rule, kindRule), RolloutRequired: set.rolloutRequired, MustComplete: set.trackAs == "job", MustServe: set.trackAs == "service"}))
	}
	status.ID, status.UID = kube.IDOf(obj), obj.GetUID()
	return status
}

// ReadyWhenPresent reports whether an object is ready as soon as it exists: its kind says
// so, and neither its annotations nor the user's rules say otherwise. It reads only the
// object's metadata and, if it is known what the release declares, what the object scales.
func (o Options) ReadyWhenPresent(obj *unstructured.Unstructured) bool {
	what, scales := scaleTargetOf(obj)
	scalesOthers := scales && o.Declares != nil && !o.Declares(idOf(obj.GetNamespace(), what))
	return rules.ReadyWhenPresent(obj.GroupVersionKind().GroupKind()) && !scalesOthers && !o.hasRule(obj)
}

// ReadyWhenUnchanged is ReadyWhenPresent for an object that hasn't changed since it was
// deployed. Only its metadata has to be known, and the type of a Service, because a load
// balancer gets its address later.
func (o Options) ReadyWhenUnchanged(obj *unstructured.Unstructured) bool {
	serviceType, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
	isService := obj.GroupVersionKind().GroupKind() == kube.ServiceKind
	return o.ReadyWhenPresent(obj) || isService && serviceType != "" && serviceType != "LoadBalancer" && !o.hasRule(obj)
}

// hasRule reports whether the user's rules or the object's annotations say when it is ready.
func (o Options) hasRule(obj *unstructured.Unstructured) bool {
	return o.Rules.Has(obj.GroupVersionKind().GroupKind()) || settingsOf(obj).rule != nil
}

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

	// MayAppearLater says that somebody else may create the object later. While it doesn't exist it
	// is waited for, and failures that may heal don't fail it.
	MayAppearLater bool

	Logs LogMode
}
