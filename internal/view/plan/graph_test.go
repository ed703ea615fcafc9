package plan

import (
	"html"
	"regexp"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

// mermaidLines are the lines that a picture of ours may have, by the grammar of
// https://mermaid.js.org/syntax/flowchart.html: text stands between quotes, and
// in it nothing that ends it, or that is Markdown or an entity by chance.
var mermaidLines = regexp.MustCompile("^(flowchart LR|  subgraph s\\d+\\[\"TEXT\"\\]|    direction TB|    s\\d+o\\d+\\[\"TEXT\"\\]|  end|  s\\d+ --> s\\d+)$")

// TestMermaid reads pictures by their grammar, and their labels as they are shown.
func TestMermaid(t *testing.T) {
	odd := `end [a] "b" #35; {c} (d) ; &lt; <e> *f* __g__ ` + "`h`" + ` 50% $x$ ünï→`
	op := &deploy.Operation{
		Verb: deploy.Upgrade, Release: "web", Namespace: "prod", Basis: deploy.Basis{Latest: viewtest.Summary(6, helmrelease.StatusDeployed)}, Next: viewtest.Record(7, helmrelease.StatusPendingUpgrade),
		Plan: &apply.Plan{Prune: []apply.Change{{ID: viewtest.ID("", "Service", odd), Action: decide.Delete}, {ID: viewtest.ID("", "Service", "end"), Action: decide.Delete}}},
	}
	label := regexp.MustCompile(`\["((?:[^"#<>&;\x60\\*_~\[\](){}|%$+-]|#\d+;)(?:[^"#<>&;\x60\\*_~\[\](){}|%$]|#\d+;)*)"\]$`)
	entity := regexp.MustCompile(`#(\d+);`)
	var labels []string
	for name, op := range map[string]*deploy.Operation{"odd": op, "plan": upgradePlan(t), "hostile": hostileOperation(t), "many": manyChanges(t)} {
		for _, l := range strings.Split(strings.TrimSuffix(planOf(t, op, page.Options{Format: page.FormatMermaid}), "\n"), "\n") {
			if m := label.FindStringSubmatch(l); m != nil {
				labels = append(labels, html.UnescapeString(entity.ReplaceAllString(m[1], "&#$1;")))
				l = strings.TrimSuffix(l, m[0]) + `["TEXT"]`
			}
			if !mermaidLines.MatchString(l) {
				t.Errorf("%s: not a line of a picture: %s", name, l)
			}
		}
	}
	for _, want := range []string{"- Service/prod/" + odd, "- Service/prod/end", "> Pod/prod/smoke"} {
		if all := strings.Join(labels, "\n"); !strings.Contains("\n"+all+"\n", "\n"+want+"\n") {
			t.Errorf("no label is %s:\n%s", want, all)
		}
	}
}
