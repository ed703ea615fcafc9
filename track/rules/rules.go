// Package rules evaluates whether an object is ready, by its own fields.
//
// The rules of built-in kinds are Go functions in a table, those of well-known
// custom resources are data, and every other kind is evaluated by the conventions of
// the Kubernetes API: conditions, observedGeneration and phases. Users add
// rules in the same form as the data. Nothing here does I/O or remembers.
package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
	"deployer/track/class"
)

// Phase is the outcome of a rule.
type Phase int

// The phases.
const (
	Progressing Phase = iota
	Ready
	Failed
)

// Input is what a rule may look at.
type Input struct {
	Object          *unstructured.Unstructured // as last seen
	Baseline        *unstructured.Unstructured // the apply's response; nil when there is none
	Changed         bool                       // the apply changed the object
	MustComplete    bool                       // the object must run to its end: a hook's Job or Pod
	MustServe       bool                       // a Pod must be Ready, whatever its restart policy
	AppliedAt       time.Time                  // when the baseline was received, by our clock
	ProgressedAt    time.Time                  // when its status last told of progress, or AppliedAt
	Now             time.Time
	HasStatus       *bool  // objects of the kind have a status; nil when unknown
	RolloutRequired string // rollout-required: "", full, max-unavailable, none, N%
	NewReady        int    // pods of the new revision that are ready, as far as they have been looked at
	Events          EventCounts
	Own             *Rule // the object's own, of its annotations or those of its kind's definition; nil for none

	Workloads Workloads
}

// Workloads is the state of the release's workloads. One of them may be the controller of
// an object, which can't have a status before that workload is ready.
type Workloads struct {
	Busy       bool      // at least one of them isn't ready
	ReadySince time.Time // when the last one became ready, also in an earlier wait for the release; zero when there was none to wait for
}

// EventCounts are the events about the object, by their reason.
type EventCounts map[string]EventCount

// An EventCount is how often an event has come, and its last message.
type EventCount struct {
	Count   int
	Message string
	Since   time.Time // when the first came, by our clock
}

// A Verdict is the outcome of a rule.
type Verdict struct {
	Phase        Phase
	Message      string
	Done, Total  int
	Unverified   bool          // Ready, but nothing proves it
	Notes        []string      // remarks about an object that is ready nevertheless
	Class        class.Class   // with Failed: what kind of failure
	Grace        time.Duration // with Ready and Failed: how long it must last to be final
	Since        time.Time     // with Failed: since when it has lasted; zero is since the rule says so
	Attempts     int           // with Failed: how often it has occurred, if its class is final only after several times; 0 is not counted
	RecheckAfter time.Duration // after this time the verdict may differ by time alone; 0 for never
	Rollout      *Rollout      // counts of a workload
	// NoProgress is how long the object may be without progress: 0 for the default, negative
	// for no limit.
	NoProgress time.Duration
}

// Rollout counts the pods of a workload as its controller does.
type Rollout struct {
	Desired     int
	Updated     int // of the new revision
	NewReady    int // of the new revision, as far as its pods are seen; the caller sets it
	Available   int // of all revisions
	Old         int // of older revisions
	OldServing  int // of older revisions and available: they still serve
	Terminating int // on their way out, when the cluster counts them

	CountsTerminating bool // the cluster counts them
}

// evaluator is the rule of one kind.
type evaluator func(in Input) Verdict

// Evaluate applies the first rule that knows the object: the object's own
// annotations, the user's rules, the rule of its kind, the conventions of the API.
// A nil Set has the built-in rules.
func (s *Set) Evaluate(in Input) Verdict {
	v := s.evaluate(in)
	if v.Class == class.ConditionFailed || v.Class == class.RuleFailed {
		return failedSince(in, v)
	}
	return v
}

func (s *Set) evaluate(in Input) Verdict {
	gk := in.Object.GroupVersionKind().GroupKind()
	if v, decides := in.Own.evaluate(in); decides {
		return v
	}
	if v, decides := s.find(gk).evaluate(in); decides {
		return v
	}
	if rule, ok := builtInRules[gk]; ok {
		return rule(in)
	}
	if ReadyWhenPresent(gk) {
		return ready("")
	}
	if v, decides := wellKnown().find(gk).evaluate(in); decides {
		return v
	}
	return evaluateByConventions(in)
}

// ReadyWhenPresent reports whether objects of the kind are ready once they exist, so that there is nothing to watch: those of
// Kubernetes itself that have no rule. HorizontalPodAutoscalers report failures in the first minutes of any workload, and with
// many controllers Ingresses never get an address, so neither is waited for.
func ReadyWhenPresent(gk schema.GroupKind) bool {
	_, ruled := builtInRules[gk]
	return !ruled && !IsCustom(gk)
}

// IsCustom reports whether a kind is not one of Kubernetes itself.
func IsCustom(gk schema.GroupKind) bool { return !kube.IsBuiltinGroup(gk.Group) }

func ready(message string) Verdict { return Verdict{Phase: Ready, Message: message} }

func progressing(message string) Verdict { return Verdict{Message: message} }

func failed(c class.Class, message string) Verdict {
	return Verdict{Phase: Failed, Class: c, Message: message, Grace: class.InfoOf(c).Grace}
}

// builtInRules holds the rules of built-in kinds with a meaningful status.
var builtInRules = map[schema.GroupKind]evaluator{
	{Group: "apps", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
	{Kind: "ReplicationController"}:                                   replicaSet,
	{Group: "batch", Kind: "Job"}:                                     job,
	{Group: "batch", Kind: "CronJob"}:                                 cronJob,
	{Kind: "Pod"}:                                                     pod,
	{Kind: "PersistentVolumeClaim"}:                                   volumeClaim,
	{Kind: "Service"}:                                                 service,
	{Kind: "Namespace"}:                                               namespace,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: customResourceDefinition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiService,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: webhookConfiguration,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   webhookConfiguration,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                                  disruptionBudget,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:             evaluateByConventions,
}
