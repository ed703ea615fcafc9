package decide

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WhyBefore says why a dropped object is deleted before the first object is changed: it would act on what is changed. It is empty for
// an object that goes after the wait, because the old may serve until the new is ready, or with what takes its place: see
// HoldingsOf and IsRenamed.
func WhyBefore(gk schema.GroupKind) string {
	return cmp.Or(actors[gk], actors[schema.GroupKind{Group: gk.Group, Kind: anyKind}])
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
