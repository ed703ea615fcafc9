package decide

import "k8s.io/apimachinery/pkg/runtime/schema"

// A Moment says when an object that the chart dropped is deleted. Programs read the words in plans.
type Moment string

// The moments, in the order of a run.
const (
	Before Moment = "before" // the first object is changed: it would act on what is changed
	With   Moment = "with"   // what takes its place: it holds something that only one can have
	After  Moment = "after"  // the wait: until the new is ready, the old may still serve
)

// MomentOf returns when a dropped object is deleted, by its kind alone, and why it isn't deleted after the wait.
func MomentOf(gk schema.GroupKind) (m Moment, why string) {
	if why, acts := actors[gk]; acts {
		return Before, why
	}
	if why, acts := actors[schema.GroupKind{Group: gk.Group, Kind: anyKind}]; acts {
		return Before, why
	}
	return After, ""
}

// anyKind stands for all kinds of a group.
const anyKind = "*"

// actors are the kinds that act on other objects for as long as they are there, and what they do.
var actors = map[schema.GroupKind]string{
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:      scales,
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: "it would go on setting the resources of pods",
	{Group: "keda.sh", Kind: "ScaledObject"}:                     scales,
	{Group: "keda.sh", Kind: "ScaledJob"}:                        scales,
	{Kind: "ResourceQuota"}:                                      limits,
	{Kind: "LimitRange"}:                                         limits,
	{Group: "policy", Kind: "PodDisruptionBudget"}:               "it would go on refusing evictions",
	{Group: admission, Kind: "ValidatingWebhookConfiguration"}:   judges,
	{Group: admission, Kind: "MutatingWebhookConfiguration"}:     judges,
	{Group: admission, Kind: "ValidatingAdmissionPolicy"}:        judges,
	{Group: admission, Kind: "ValidatingAdmissionPolicyBinding"}: judges,
	{Group: admission, Kind: "MutatingAdmissionPolicy"}:          judges,
	{Group: admission, Kind: "MutatingAdmissionPolicyBinding"}:   judges,
	{Group: "constraints.gatekeeper.sh", Kind: anyKind}:          judges,
	{Group: "kyverno.io", Kind: "Policy"}:                        judges,
	{Group: "kyverno.io", Kind: "ClusterPolicy"}:                 judges,
	{Group: "policies.kyverno.io", Kind: anyKind}:                judges,
}

const (
	admission = "admissionregistration.k8s.io"

	scales = "it would go on scaling what the chart scales"
	limits = "it would go on limiting what is created"
	judges = "it would go on judging what is written"
)
