package inspection

import (
	"bytes"
	"strings"
	"testing"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/plan"
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
	c.Desired.SetAnnotations(map[string]string{"example.com/" + strings.Repeat("long-", 20): "after " + strings.Repeat("x", 120)})
	c.Predicted.SetAnnotations(c.Desired.GetAnnotations())
	return viewtest.Compare(t, op, 6)
}

// on shows something on a terminal.
func on(t *testing.T, columns int, colour output.Colour, env func(string) string, show func(output.Streams, page.Options) error) string {
	t.Helper()
	var out bytes.Buffer
	s := output.Streams{Out: &out, Err: &out, OutTTY: true, Width: columns, Height: 24}
	if err := show(s, page.Options{Colour: colour, Context: 1, ShowUnchanged: true, Getenv: env}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Plans, drifts and explanations fit a terminal of 80 columns, or of fewer, that
// shows neither colours nor UTF-8, and say there what they say elsewhere.
func TestNarrowTerminals(t *testing.T) {
	posix, utf8 := viewtest.Environment(map[string]string{"LANG": "C"}), viewtest.Environment(map[string]string{"LANG": "C.UTF-8"})
	for name, show := range map[string]func(output.Streams, page.Options) error{
		"plan":  func(s output.Streams, o page.Options) error { return plan.Show(s, longWords(t), o) },
		"many":  func(s output.Streams, o page.Options) error { return plan.Show(s, viewtest.ManyChanges(t), o) },
		"drift": func(s output.Streams, o page.Options) error { return ShowDrift(s, driftOfAll(t), o) },
		"explain": func(s output.Streams, o page.Options) error {
			return ShowExplanation(s, explanationOfAll(t), o)
		},
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
	var out bytes.Buffer
	if err := plan.Show(output.Streams{Out: &out, Err: &out, Width: 80, Height: 24}, longWords(t), page.Options{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, strings.Repeat("x", 120)) {
		t.Errorf("a value is broken:\n%s", text)
	}
}
