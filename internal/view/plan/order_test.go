package plan

import (
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/internal/deploy"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

// What waits for what is in every format of a plan.
func TestPlanOrder(t *testing.T) {
	db := ordering.Dependency{ID: viewtest.ID("apps", "StatefulSet", "db"), State: ordering.Ready}
	tls := ordering.Dependency{ID: viewtest.ID("", "Secret", "tls"), State: ordering.Present, Outside: true}
	weight := 5
	op := &deploy.Operation{
		Verb: deploy.Install, Release: "web", Namespace: "prod", Next: viewtest.Record(1, helmrelease.StatusPendingInstall),
		Plan: &apply.Plan{
			Waves: []apply.Wave{
				{Changes: []apply.Change{{ID: db.ID, Action: decide.Create}}},
				{Await: []ordering.Dependency{db, tls}, Changes: []apply.Change{{ID: viewtest.WebID(), Action: decide.Create, DependsOn: []ordering.Dependency{db, tls}}}},
				{Await: []ordering.Dependency{{ID: viewtest.WebID(), State: ordering.Ready}}, Changes: []apply.Change{{ID: viewtest.ID("", "ConfigMap", "late"), Action: decide.Create, Weight: &weight}}},
			},
			Prune: []apply.Change{
				{ID: viewtest.ID("", "Service", "user"), Action: decide.Delete, Reason: "removed from the chart"},
				{ID: viewtest.ID("", "ConfigMap", "base"), Action: decide.Delete, Reason: "removed from the chart",
					DependsOn: []ordering.Dependency{{ID: viewtest.ID("", "Service", "user"), State: ordering.Gone}}},
			},
		},
	}
	for format, file := range planFormats {
		viewtest.Golden(t, "order-"+file+".golden", []byte(planOf(t, op, page.Options{Format: format})))
	}
}
