package inspection

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"deployer/apply/decide"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

// shownAs shows something in a format; JSON with indentation.
func shownAs(t *testing.T, format output.Format, show func(output.Streams, page.Options) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := show(output.Streams{Out: &out, Err: &out, Width: 80, Height: 24}, page.Options{Format: format, Context: 3, Getenv: viewtest.NoEnv}); err != nil {
		t.Fatal(err)
	}
	viewtest.CheckSecrets(t, out.String())
	if format != output.FormatJSON {
		return out.Bytes()
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDriftFormats(t *testing.T) {
	for format, file := range map[output.Format]string{
		output.FormatTable: "drift.txt", output.FormatJSON: "drift.json", output.FormatYAML: "drift.yaml", page.FormatMarkdown: "drift.md", page.FormatHTML: "drift.html",
	} {
		viewtest.Golden(t, file+".golden", shownAs(t, format, func(s output.Streams, o page.Options) error { return ShowDrift(s, driftOfAll(t), o) }))
	}
}

func TestExplanationFormats(t *testing.T) {
	for format, file := range map[output.Format]string{output.FormatTable: "explain.txt", output.FormatJSON: "explain.json", output.FormatYAML: "explain.yaml"} {
		viewtest.Golden(t, file+".golden", shownAs(t, format, func(s output.Streams, o page.Options) error {
			return ShowExplanation(s, explanationOfAll(t), o)
		}))
	}
}

// An annotation decides about conflicts whatever the flag says, so the flag isn't offered then.
func TestExplanationNamesWhatDecidesAConflict(t *testing.T) {
	taken := explainedField{has: true, Upgrade: decide.OutcomeTaken}
	if got := taken.heading().Words; !strings.Contains(got, "--conflicts yield") {
		t.Errorf("without an annotation: %q", got)
	}
	taken.policyAnnotation = "deployer.io/conflicts"
	if got := taken.heading().Words; strings.Contains(got, "--conflicts") || !strings.Contains(got, "deployer.io/conflicts") {
		t.Errorf("with an annotation: %q", got)
	}
}
