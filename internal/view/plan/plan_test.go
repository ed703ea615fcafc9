package plan

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
	"deployer/internal/view/viewtest"
)

func planOf(t *testing.T, op *deploy.Operation, o page.Options) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if err := Show(output.Streams{Out: &out, Err: &errOut, Width: 80, Height: 24}, op, o); err != nil {
		t.Fatal(err)
	}
	if errOut.Len() > 0 {
		t.Errorf("a plan wrote to standard error: %s", errOut.String())
	}
	return out.String()
}

// planFormats are all formats and how their golden files are called.
var planFormats = map[output.Format]string{
	output.FormatTable: "plan.txt", output.FormatJSON: "plan.json", output.FormatYAML: "plan.yaml", page.FormatMarkdown: "plan.md",
	page.FormatHTML: "plan.html", page.FormatMermaid: "plan.mmd", page.FormatDot: "plan.dot",
}

func TestPlanFormats(t *testing.T) {
	for format, file := range planFormats {
		t.Run(string(format), func(t *testing.T) {
			got := planOf(t, upgradePlan(t), page.Options{Format: format, Context: 1})
			viewtest.CheckSecrets(t, got)
			if format == output.FormatJSON {
				var b bytes.Buffer
				if err := json.Indent(&b, []byte(got), "", "  "); err != nil {
					t.Fatal(err)
				}
				got = b.String()
			}
			viewtest.Golden(t, file+".golden", []byte(got))
		})
	}
}

func TestPlanColours(t *testing.T) {
	got := planOf(t, upgradePlan(t), page.Options{Colour: output.ColourAlways, ShowUnchanged: true, Context: 1})
	viewtest.Golden(t, "plan-colour.txt.golden", []byte(got))
	plain := planOf(t, upgradePlan(t), page.Options{ShowUnchanged: true, Context: 1})
	if textfmt.CleanText(got) != plain {
		t.Errorf("colour tells more than words:\n%s\n%s", textfmt.CleanText(got), plain)
	}
}

// TestReasonOfManyIsToldOnce: on a first install nothing can be verified, for one reason.
func TestReasonOfManyIsToldOnce(t *testing.T) {
	var changes []apply.Change
	for i := range 50 {
		changes = append(changes, apply.Change{ID: viewtest.ID("", "ConfigMap", fmt.Sprint("c", i)), Action: decide.Create, Unverified: "namespace prod doesn't exist yet"})
	}
	install := &deploy.Operation{
		Verb: deploy.Install, Release: "web", Namespace: "prod", NewNamespace: true, Next: viewtest.Record(1, helmrelease.StatusPendingInstall),
		Plan: &apply.Plan{Waves: []apply.Wave{{Changes: changes}}},
	}
	got := planOf(t, install, page.Options{})
	if strings.Count(got, "doesn't exist yet") != 1 || !strings.Contains(got, "not verified: namespace prod doesn't exist yet; the same for 49 more objects") {
		t.Errorf("got\n%s", got)
	}
}

func TestPlanVerbs(t *testing.T) {
	install := &deploy.Operation{
		Verb: deploy.Install, Release: "web", Namespace: "prod", NewNamespace: true, Next: viewtest.Record(1, helmrelease.StatusPendingInstall),
		Plan: &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{{
			ID: viewtest.ID("apps", "Deployment", "web"), Action: decide.Create, Source: "web/templates/web.yaml", Desired: viewtest.Web(t).Desired,
			Unverified: "namespace prod doesn't exist yet",
		}}}}},
	}
	web := viewtest.Web(t)
	delete(web.Live.Object, "status")
	rollback := viewtest.Upgrade(t)
	rollback.Verb, rollback.Target, rollback.Hooks = deploy.Rollback, 5, deploy.Hooks{}
	rollback.Plan = &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{{
		ID: viewtest.ID("apps", "Deployment", "web"), Action: decide.Update, Live: web.Desired, Desired: web.Live,
		Unverified: "the server could not be asked: 403",
	}}}}}
	viewtest.Compare(t, rollback, 0)
	change := &rollback.Plan.Waves[0].Changes[0]
	change.Fields = append(change.Fields, compare.FieldChange{Path: fieldpath.MakePathOrDie("spec", "minReadySeconds"), Type: compare.Removed, Before: int64(5)})
	uninstall := &deploy.Operation{
		Verb: deploy.Uninstall, Release: "web", Namespace: "prod", Basis: deploy.Basis{Latest: viewtest.Summary(6, helmrelease.StatusDeployed)}, Next: viewtest.Record(6, helmrelease.StatusDeployed),
		Removal: deploy.Removal{KeepHistory: true},
		Hooks:   deploy.Hooks{After: []*helmrelease.Hook{{Name: "bye", Kind: "Job"}}},
		Plan: &apply.Plan{Prune: []apply.Change{
			{ID: viewtest.ID("apps", "Deployment", "web"), Action: decide.Delete, Reason: "the release is uninstalled"},
			{ID: viewtest.ID("", "PersistentVolumeClaim", "data"), Action: decide.Keep, Reason: "helm.sh/resource-policy is keep"},
		}},
	}
	same := &deploy.Operation{
		Verb: deploy.Upgrade, Release: "web", Namespace: "prod", Basis: deploy.Basis{Latest: viewtest.Summary(6, helmrelease.StatusDeployed)}, Next: viewtest.Record(7, helmrelease.StatusPendingUpgrade),
		Plan: &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{{ID: viewtest.ID("apps", "Deployment", "web"), Action: decide.Unchanged}, {ID: viewtest.ID("", "Service", "web"), Action: decide.Unchanged}}}}},
	}
	empty := &deploy.Operation{Verb: deploy.Uninstall, Release: "web", Namespace: "prod"}
	var all strings.Builder
	for name, op := range map[string]*deploy.Operation{"install": install, "rollback": rollback, "uninstall": uninstall, "same": same, "empty": empty} {
		viewtest.Golden(t, "plan-"+name+".txt.golden", []byte(planOf(t, op, page.Options{Context: 3})))
		for format := range planFormats {
			all.WriteString(planOf(t, op, page.Options{Format: format, ShowUnchanged: true}))
		}
	}
	viewtest.CheckSecrets(t, all.String())
}

// TestPlanHTML holds that the page is well-formed and refers to nothing outside.
func TestPlanHTML(t *testing.T) {
	op := viewtest.Upgrade(t)
	op.Plan.Waves[0].Changes[0].Action, op.Plan.Waves[0].Changes[0].Reason = decide.Update, `</script><script src="https://evil.example/x.js">`
	op.Warnings = append(op.Warnings, "<img src=x onerror=alert(1)>")
	text := planOf(t, op, page.Options{Format: page.FormatHTML})
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "img" {
			t.Errorf("unexpected element %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			inside := strings.HasPrefix(a.Value, "#") || a.Value == "data:," // without which browsers ask for an icon
			if a.Name.Local == "src" || a.Name.Local == "href" && !inside || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("unexpected attribute %s=%q of %s", a.Name.Local, a.Value, start.Name.Local)
			}
		}
	}
}

func TestPlanInjection(t *testing.T) {
	for format := range planFormats {
		got := planOf(t, hostileOperation(t), page.Options{Format: format})
		if strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), textfmt.IsControl) && format != output.FormatJSON && format != output.FormatYAML {
			t.Errorf("%s: control characters in the output: %q", format, got)
		}
		if strings.ContainsAny(got, "\x1b\x00\x07\r") {
			t.Errorf("%s: escape characters in the output: %q", format, got)
		}
		if (format == page.FormatHTML || format == page.FormatMermaid) && strings.Contains(got, "<script>alert") {
			t.Errorf("%s: markup from outside in the output", format)
		}
		if format == page.FormatMarkdown && strings.Contains(strings.Split(got, "\n\n<details>")[0], "<script>") {
			t.Errorf("markup from outside in the Markdown")
		}
	}
}

func TestParsePlanFormat(t *testing.T) {
	for in, want := range map[string]output.Format{"": output.FormatTable, "text": output.FormatTable, "md": page.FormatMarkdown, "html": page.FormatHTML, "dot": page.FormatDot, "json": output.FormatJSON} {
		if got, err := page.ParsePlanFormat(in); got != want || err != nil {
			t.Errorf("ParsePlanFormat(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	if _, err := page.ParsePlanFormat("pdf"); err == nil {
		t.Error("ParsePlanFormat(pdf) gave no error")
	}
}
