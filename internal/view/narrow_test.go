package view

import (
	"bytes"
	"strings"
	"testing"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
	"deployer/internal/view/viewtest"
)

// longWords is an upgrade in which nothing fits into 80 columns.
func longWords(t *testing.T) *deploy.Operation {
	op := viewtest.UpgradePlan(t)
	c := &op.Plan.Waves[1].Changes[0]
	c.Source = "web/charts/" + strings.Repeat("sub/charts/", 6) + "templates/web.yaml"
	c.Reason = "the words of a server that has very much to say about an object and says it all on one line"
	c.Live.SetAnnotations(map[string]string{"example.com/" + strings.Repeat("long-", 20): "before größer → 漢字"})
	c.Want.SetAnnotations(map[string]string{"example.com/" + strings.Repeat("long-", 20): "after " + strings.Repeat("x", 120)})
	c.Result.SetAnnotations(c.Want.GetAnnotations())
	return op
}

// on shows something on a terminal.
func on(t *testing.T, columns int, colour output.Colour, env func(string) string, show func(output.Streams, PlanOptions) error) string {
	t.Helper()
	var out bytes.Buffer
	s := output.Streams{Out: &out, Err: &out, OutTTY: true, Width: columns, Height: 24}
	if err := show(s, PlanOptions{Colour: colour, Context: 1, ShowUnchanged: true, Env: env}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Plans, drifts and explanations fit a terminal of 80 columns, or of fewer, that
// shows neither colours nor UTF-8, and say there what they say elsewhere.
func TestNarrowTerminals(t *testing.T) {
	posix, utf8 := viewtest.Environment("LANG", "C"), viewtest.Environment("LANG", "C.UTF-8")
	for name, show := range map[string]func(output.Streams, PlanOptions) error{
		"plan":    func(s output.Streams, o PlanOptions) error { return Plan(s, longWords(t), o) },
		"many":    func(s output.Streams, o PlanOptions) error { return Plan(s, viewtest.ManyChanges(t), o) },
		"drift":   func(s output.Streams, o PlanOptions) error { return Drift(s, drifted(t), o) },
		"explain": func(s output.Streams, o PlanOptions) error { return Explanation(s, explanationOf(t), o) },
	} {
		plain := on(t, 80, output.ColourNever, posix, show)
		if name != "many" {
			viewtest.Golden(t, name+"-80.txt.golden", []byte(plain))
		}
		if i := strings.IndexFunc(plain, func(r rune) bool { return r > 0x7e }); i >= 0 {
			t.Errorf("%s: without UTF-8 it shows %q", name, plain[i:min(i+20, len(plain))])
		}
		for _, columns := range []int{80, 41} {
			for _, l := range strings.Split(on(t, columns, output.ColourNever, utf8, show), "\n") {
				if textfmt.Width(l) > columns {
					t.Errorf("%s: a line of %d cells on %d columns: %s", name, textfmt.Width(l), columns, l)
				}
			}
		}
		if coloured := on(t, 80, output.ColourAlways, utf8, show); textfmt.WithoutColours(coloured) != on(t, 80, output.ColourNever, utf8, show) {
			t.Errorf("%s: colours break lines elsewhere:\n%s", name, coloured)
		}
		words := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if wide := on(t, 100000, output.ColourNever, utf8, show); words(wide) != words(on(t, 80, output.ColourNever, utf8, show)) {
			t.Errorf("%s: something is lost on 80 columns", name)
		}
	}
}

// What goes to a file keeps its lines, whatever the width of the terminal.
func TestFilesKeepLines(t *testing.T) {
	if text := planOf(t, longWords(t), PlanOptions{}); !strings.Contains(text, strings.Repeat("x", 120)) {
		t.Errorf("a value is broken:\n%s", text)
	}
}

// drifted is a drift with one of everything.
func drifted(t *testing.T) *deploy.Drift {
	edit := apply.Writer{Manager: "kubectl-edit", Operation: "Update", Time: viewtest.Edited}
	scaler := apply.Writer{Manager: "HorizontalPodAutoscaler/web", Operation: "Update", Subresource: "scale"}
	web := viewtest.ID("apps", "Deployment", "web")
	found := &apply.Drift{Same: 14, Reckoned: 2, Objects: []apply.Drifted{
		{ID: web, Source: "web/templates/web.yaml", State: apply.Changed, Live: viewtest.Object(t, viewtest.LiveWeb), Want: viewtest.Object(t, viewtest.WantWeb), Fields: []apply.DriftField{
			{Path: "spec.replicas", Names: []string{"spec", "replicas"}, Was: int64(3), Is: int64(1), Had: true, Has: true, Origin: apply.Controllers, By: scaler, Expected: true},
			{Path: `spec.template.spec.containers[name="web"].image`, Names: []string{"spec", "template", "spec", "containers", "[]", "image"},
				Was: "registry.example/web:1.9.9", Is: "registry.example/web:1.9.8", Had: true, Has: true, Origin: apply.FailedRelease, By: apply.Writer{Manager: "helm", Operation: "Apply", Time: viewtest.Edited}, Revision: 7},
			{Path: `spec.template.spec.containers[name="sidecar"]`, Names: []string{"spec", "template", "spec", "containers", "[]"},
				Is: map[string]any{"name": "sidecar", "image": "proxy:1"}, Has: true, Origin: apply.Manual, By: edit},
			{Path: "spec.minReadySeconds", Names: []string{"spec", "minReadySeconds"}, Was: int64(5), Had: true, Origin: apply.Manual},
		}},
		{ID: viewtest.ID("", "Secret", "db"), Source: "web/templates/secret.yaml", State: apply.Changed,
			Live: viewtest.SecretObject(t, "password: "+viewtest.PlantedBase64), Want: viewtest.SecretObject(t, "password: "+viewtest.PlantedBase64+"MQ=="), Fields: []apply.DriftField{
				{Path: "data.password", Names: []string{"data", "password"}, Was: viewtest.PlantedBase64 + "MQ==", Is: viewtest.PlantedBase64, Had: true, Has: true, Origin: apply.Manual, By: edit},
			}},
		{ID: viewtest.ID("", "Service", "web"), State: apply.Missing, Origin: apply.Deleted, Reason: "not in the cluster", Source: "web/templates/service.yaml"},
		{ID: viewtest.ID("", "ConfigMap", "theirs"), State: apply.NotOurs, Origin: apply.OtherRelease, Reason: "belongs to release prod/other now"},
		{ID: viewtest.ID("", "ConfigMap", "leftover"), State: apply.Extra, Origin: apply.FailedRelease, Reason: "left by failed revision 7", Revision: 7},
		{ID: viewtest.ID("", "Secret", "closed"), State: apply.Unlooked, Unverified: "this account may not read it"},
	}}
	return &deploy.Drift{Release: "web", Namespace: "prod", Record: viewtest.Record(6, "deployed"), Latest: viewtest.Summary(7, "failed"), Drift: found}
}

// explanationOf is an explanation with one of everything.
func explanationOf(t *testing.T) *deploy.Explanation {
	helm := apply.Writer{Manager: "helm", Operation: "Apply", Time: viewtest.Edited}
	edit := apply.Writer{Manager: "kubectl-edit", Operation: "Update", Time: viewtest.Edited}
	const template = "web/templates/web.yaml"
	field := func(path string, is any, outcome apply.Outcome, revision int, owners ...apply.Writer) apply.FieldExplained {
		f := apply.FieldExplained{Path: path, Names: strings.Split(path, "."), Is: is, Has: is != nil, Outcome: outcome, Revision: revision, Owners: owners}
		if revision > 0 {
			f.Source = template
		}
		return f
	}
	becomes := func(f apply.FieldExplained, will any) apply.FieldExplained {
		f.Will, f.WillHave = will, true
		return f
	}
	earlier := field("spec.selector.matchLabels.app", "web", apply.Kept, 2, helm)
	earlier.Earlier = true
	found := &apply.Explanation{
		Object: apply.Drifted{ID: viewtest.ID("apps", "Deployment", "web"), Source: template, State: apply.Changed, Live: viewtest.Object(t, viewtest.LiveWeb), Want: viewtest.Object(t, viewtest.WantWeb),
			Unverified: "this account may not patch it, so the server was not asked"},
		Fields: []apply.FieldExplained{
			field("metadata.labels.app", "web", apply.Kept, 5, helm),
			earlier,
			field("spec.minReadySeconds", int64(5), apply.Kept, 5, helm, edit),
			becomes(field("spec.paused", true, apply.Taken, 0, edit), false),
			becomes(field("spec.replicas", int64(4), apply.Yielded, 0, apply.Writer{Manager: "kube-controller-manager", Operation: "Update", Subresource: "scale"}), int64(2)),
			becomes(field("spec.strategy.type", "Recreate", apply.Refused, 4, edit), "RollingUpdate"),
			becomes(field("spec.template.metadata.labels.tier", nil, apply.Set, 0), "front"),
			field("spec.template.spec.hostname", "left", apply.Dropped, 3, helm),
			field("spec.template.spec.dnsPolicy", "ClusterFirst", apply.Ignored, 0),
		},
	}
	return &deploy.Explanation{Release: "web", Namespace: "prod", Record: viewtest.Record(6, "deployed"), Explanation: found}
}
