package plan

import (
	"strings"
	"testing"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/view/diff"
	"deployer/internal/view/page"
)

// TestChecksumsSayWhatTheyFollow: 64 digits say nothing; the object that changed does.
func TestChecksumsSayWhatTheyFollow(t *testing.T) {
	field := func(name string) diff.Field {
		return diff.Field{Path: `spec.template.metadata.annotations."checksum/` + name + `"`, Type: compare.Changed, Before: strings.Repeat("a1", 32), After: strings.Repeat("b2", 32)}
	}
	for name, c := range map[string]struct{ changed, annotation, want string }{
		"the only one":   {"ConfigMap/prod/web", "config", "(follows ConfigMap/prod/web)"},
		"of its kind":    {"ConfigMap/prod/web Secret/prod/db", "secret", "(follows Secret/prod/db)"},
		"one of several": {"ConfigMap/prod/web ConfigMap/prod/other", "config", ""},
		"nothing":        {"", "config", ""},
	} {
		var objects []object
		for _, changed := range strings.Fields(c.changed) {
			objects = append(objects, object{Object: changed, Action: decide.Update})
		}
		d := Document{Steps: []step{{Kind: deploy.StepApply, Objects: append(objects, object{Object: "Deployment/prod/web", Action: decide.Update, Fields: []diff.Field{field(c.annotation)}})}}}
		d.markChecksums()
		got := page.FieldLines(d.Steps[0].Objects[len(objects)].Fields[0], 3)[0].Text
		if !strings.Contains(got, "a1a1a1a1a1a1") || strings.Contains(got, "a1a1a1a1a1a1a") || strings.Contains(got, "follows") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
