package track

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
