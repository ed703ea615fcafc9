package viewtest

import (
	"strings"
	"testing"

	"deployer/apply"
	"deployer/apply/ownership"
	"deployer/internal/deploy"
)

// Drift is a drift with one of everything.
func Drift(t testing.TB) *deploy.Drift {
	edit := ownership.Owner{Manager: "kubectl-edit", Operation: "Update", Time: Edited}
	scaler := ownership.Owner{Manager: "HorizontalPodAutoscaler/web", Operation: "Update", Subresource: "scale"}
	web := ID("apps", "Deployment", "web")
	found := &apply.Drift{Same: 14, Estimated: 2, Objects: []apply.DriftedObject{
		{ID: web, Source: "web/templates/web.yaml", State: apply.Changed, Live: Object(t, LiveWeb), Want: Object(t, WantWeb), Fields: []apply.DriftField{
			{Path: "spec.replicas", Names: []string{"spec", "replicas"}, Was: int64(3), Is: int64(1), Had: true, Has: true, Origin: apply.Controllers, By: scaler, Expected: true},
			{Path: `spec.template.spec.containers[name="web"].image`, Names: []string{"spec", "template", "spec", "containers", "[]", "image"},
				Was: "registry.example/web:1.9.9", Is: "registry.example/web:1.9.8", Had: true, Has: true, Origin: apply.FailedRelease, By: ownership.Owner{Manager: "helm", Operation: "Apply", Time: Edited}, Revision: 7},
			{Path: `spec.template.spec.containers[name="sidecar"]`, Names: []string{"spec", "template", "spec", "containers", "[]"},
				Is: map[string]any{"name": "sidecar", "image": "proxy:1"}, Has: true, Origin: apply.Manual, By: edit},
			{Path: "spec.minReadySeconds", Names: []string{"spec", "minReadySeconds"}, Was: int64(5), Had: true, Origin: apply.Manual},
		}},
		{ID: ID("", "Secret", "db"), Source: "web/templates/secret.yaml", State: apply.Changed,
			Live: SecretObject(t, "password: "+PlantedBase64), Want: SecretObject(t, "password: "+PlantedBase64+"MQ=="), Fields: []apply.DriftField{
				{Path: "data.password", Names: []string{"data", "password"}, Was: PlantedBase64 + "MQ==", Is: PlantedBase64, Had: true, Has: true, Origin: apply.Manual, By: edit},
			}},
		{ID: ID("", "Service", "web"), State: apply.Missing, Origin: apply.Deleted, Reason: "not in the cluster", Source: "web/templates/service.yaml"},
		{ID: ID("", "ConfigMap", "theirs"), State: apply.TakenOver, Origin: apply.OtherRelease, Reason: "belongs to release prod/other now"},
		{ID: ID("", "ConfigMap", "leftover"), State: apply.Extra, Origin: apply.FailedRelease, Reason: "left by failed revision 7", Revision: 7},
		{ID: ID("", "Secret", "closed"), State: apply.Unknown, Unverified: "this account may not read it"},
	}}
	return &deploy.Drift{Release: "web", Namespace: "prod", Record: Record(6, "deployed"), Latest: Summary(7, "failed"), Drift: found}
}

// Explanation is an explanation with one of everything.
func Explanation(t testing.TB) *deploy.Explanation {
	helm := ownership.Owner{Manager: "helm", Operation: "Apply", Time: Edited}
	edit := ownership.Owner{Manager: "kubectl-edit", Operation: "Update", Time: Edited}
	const template = "web/templates/web.yaml"
	field := func(path string, is any, outcome apply.Outcome, revision int, owners ...ownership.Owner) apply.FieldExplanation {
		f := apply.FieldExplanation{Path: path, Names: strings.Split(path, "."), Is: is, Has: is != nil, Outcome: outcome, Revision: revision, Owners: owners}
		if revision > 0 {
			f.Source = template
		}
		return f
	}
	becomes := func(f apply.FieldExplanation, will any) apply.FieldExplanation {
		f.Will, f.WillHave = will, true
		return f
	}
	earlier := field("spec.selector.matchLabels.app", "web", apply.Kept, 2, helm)
	earlier.Earlier = true
	found := &apply.Explanation{
		Object: apply.DriftedObject{ID: ID("apps", "Deployment", "web"), Source: template, State: apply.Changed, Live: Object(t, LiveWeb), Want: Object(t, WantWeb),
			Unverified: "this account may not patch it, so the server was not asked"},
		Fields: []apply.FieldExplanation{
			field("metadata.labels.app", "web", apply.Kept, 5, helm),
			earlier,
			field("spec.minReadySeconds", int64(5), apply.Kept, 5, helm, edit),
			becomes(field("spec.paused", true, apply.Taken, 0, edit), false),
			becomes(field("spec.replicas", int64(4), apply.Yielded, 0, ownership.Owner{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale"}), int64(2)),
			becomes(field("spec.strategy.type", "Recreate", apply.Refused, 4, edit), "RollingUpdate"),
			becomes(field("spec.template.metadata.labels.tier", nil, apply.Set, 0), "front"),
			field("spec.template.spec.hostname", "left", apply.Dropped, 3, helm),
			field("spec.template.spec.dnsPolicy", "ClusterFirst", apply.Ignored, 0),
		},
	}
	return &deploy.Explanation{Release: "web", Namespace: "prod", Record: Record(6, "deployed"), Explanation: found}
}
