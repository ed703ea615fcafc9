package view

import (
	"bytes"
	"encoding/json"
	"testing"
)

// shownAs shows something in a format; JSON with indentation.
func shownAs(t *testing.T, format Format, show func(Streams, PlanOptions) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := show(Streams{Out: &out, Err: &out, Width: 80, Height: 24}, PlanOptions{Format: format, Context: 3, Env: noEnv}); err != nil {
		t.Fatal(err)
	}
	checkSecrets(t, out.String())
	if format != FormatJSON {
		return out.Bytes()
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDriftFormats(t *testing.T) {
	for format, file := range map[Format]string{
		FormatTable: "drift.txt", FormatJSON: "drift.json", FormatYAML: "drift.yaml", FormatMarkdown: "drift.md", FormatHTML: "drift.html",
	} {
		golden(t, file+".golden", shownAs(t, format, func(s Streams, o PlanOptions) error { return Drift(s, drifted(t), o) }))
	}
}

func TestExplanationFormats(t *testing.T) {
	for format, file := range map[Format]string{FormatTable: "explain.txt", FormatJSON: "explain.json", FormatYAML: "explain.yaml"} {
		golden(t, file+".golden", shownAs(t, format, func(s Streams, o PlanOptions) error { return Explanation(s, explanationOf(t), o) }))
	}
}
