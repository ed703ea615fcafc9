package inspection

import (
	"strings"
	"testing"
	"time"

	"deployer/apply/decide"
	"deployer/apply/inspect"
	"deployer/apply/ownership"
	"deployer/internal/deploy"
	"deployer/internal/view/viewtest"
)

// edited is when somebody was at work in the fixtures.
var edited = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// driftOfAll is a drift with one of everything.
func driftOfAll(t testing.TB) *deploy.Drift {
	edit := ownership.FieldManager{Manager: "kubectl-edit", Operation: "Update", Time: edited}
	scaler := ownership.FieldManager{Manager: "HorizontalPodAutoscaler/web", Operation: "Update", Subresource: "scale"}
	web := viewtest.ID("apps", "Deployment", "web")
	found := &inspect.Drift{Same: 14, Estimated: 2, Objects: []inspect.DriftedObject{
		{ID: web, Source: "web/templates/web.yaml", State: inspect.DriftChanged, Live: viewtest.Web(t).Live, Desired: viewtest.Web(t).Desired, Fields: []inspect.DriftField{
			{Path: "spec.replicas", Names: []string{"spec", "replicas"}, Desired: int64(3), Live: int64(1), HasDesired: true, HasLive: true, Origin: inspect.OriginController, Owner: scaler, Expected: true},
			{Path: `spec.template.spec.containers[name="web"].image`, Names: []string{"spec", "template", "spec", "containers", "[]", "image"},
				Desired: "registry.example/web:1.9.9", Live: "registry.example/web:1.9.8", HasDesired: true, HasLive: true, Origin: inspect.OriginFailedRelease, Owner: ownership.FieldManager{Manager: "helm", Operation: "Apply", Time: edited}, Revision: 7},
			{Path: `spec.template.spec.containers[name="sidecar"]`, Names: []string{"spec", "template", "spec", "containers", "[]"},
				Live: map[string]any{"name": "sidecar", "image": "proxy:1"}, HasLive: true, Origin: inspect.OriginManual, Owner: edit},
			{Path: "spec.minReadySeconds", Names: []string{"spec", "minReadySeconds"}, Desired: int64(5), HasDesired: true, Origin: inspect.OriginManual},
		}},
		{ID: viewtest.ID("", "Secret", "db"), Source: "web/templates/secret.yaml", State: inspect.DriftChanged,
			Live: viewtest.SecretObject(t, "password: "+viewtest.PlantedBase64), Desired: viewtest.SecretObject(t, "password: "+viewtest.PlantedBase64+"MQ=="), Fields: []inspect.DriftField{
				{Path: "data.password", Names: []string{"data", "password"}, Desired: viewtest.PlantedBase64 + "MQ==", Live: viewtest.PlantedBase64, HasDesired: true, HasLive: true, Origin: inspect.OriginManual, Owner: edit},
			}},
		{ID: viewtest.ID("", "Service", "web"), State: inspect.DriftMissing, Origin: inspect.OriginDeleted, Reason: "not in the cluster", Source: "web/templates/service.yaml"},
		{ID: viewtest.ID("", "ConfigMap", "theirs"), State: inspect.DriftTakenOver, Origin: inspect.OriginOtherRelease, Reason: "belongs to release prod/other now"},
		{ID: viewtest.ID("", "ConfigMap", "leftover"), State: inspect.DriftExtra, Origin: inspect.OriginFailedRelease, Reason: "left by failed revision 7", Revision: 7},
		{ID: viewtest.ID("", "Secret", "closed"), State: inspect.DriftUnknown, Unverified: "no permission to read it"},
	}}
	return &deploy.Drift{Release: "web", Namespace: "prod", Place: deploy.Place{Context: "prod-eu", Server: "https://k8s.example.com"}, Record: viewtest.Record(6, "deployed"), Latest: viewtest.Summary(7, "failed"), Drift: found}
}

// explanationOfAll is an explanation with one of everything.
func explanationOfAll(t testing.TB) *deploy.Explanation {
	helm := ownership.FieldManager{Manager: "helm", Operation: "Apply", Time: edited}
	edit := ownership.FieldManager{Manager: "kubectl-edit", Operation: "Update", Time: edited}
	const template = "web/templates/web.yaml"
	field := func(path string, is any, outcome decide.FieldOutcome, revision int, owners ...ownership.FieldManager) inspect.FieldExplanation {
		f := inspect.FieldExplanation{Path: path, Names: strings.Split(path, "."), Live: is, HasLive: is != nil, Outcome: outcome, Revision: revision, Owners: owners}
		if revision > 0 {
			f.Source = template
		}
		return f
	}
	becomes := func(f inspect.FieldExplanation, will any) inspect.FieldExplanation {
		f.Predicted, f.HasPredicted = will, true
		return f
	}
	earlier := field("spec.selector.matchLabels.app", "web", decide.OutcomeKept, 2, helm)
	earlier.Earlier = true
	found := &inspect.Explanation{
		Object: inspect.DriftedObject{ID: viewtest.ID("apps", "Deployment", "web"), Source: template, State: inspect.DriftChanged, Live: viewtest.Web(t).Live, Desired: viewtest.Web(t).Desired,
			Unverified: "no permission to patch it, so there was no dry run"},
		Fields: []inspect.FieldExplanation{
			field("metadata.labels.app", "web", decide.OutcomeKept, 5, helm),
			earlier,
			field("spec.minReadySeconds", int64(5), decide.OutcomeKept, 5, helm, edit),
			becomes(field("spec.paused", true, decide.OutcomeTaken, 0, edit), false),
			becomes(field("spec.replicas", int64(4), decide.OutcomeYielded, 0, ownership.FieldManager{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale"}), int64(2)),
			becomes(field("spec.strategy.type", "Recreate", decide.OutcomeRefused, 4, edit), "RollingUpdate"),
			becomes(field("spec.template.metadata.labels.tier", nil, decide.OutcomeSet, 0), "front"),
			field("spec.template.spec.hostname", "left", decide.OutcomeRemoved, 3, helm),
			field("spec.template.spec.dnsPolicy", "ClusterFirst", decide.OutcomeIgnored, 0),
		},
	}
	return &deploy.Explanation{Release: "web", Namespace: "prod", Record: viewtest.Record(6, "deployed"), Explanation: found}
}
