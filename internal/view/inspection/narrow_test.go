package inspection

import (
	"bytes"
	"testing"

	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

func TestNarrowTerminals(t *testing.T) {
	for name, show := range map[string]func(output.Streams, page.Options) error{
		"drift":   func(s output.Streams, o page.Options) error { return ShowDrift(s, driftOfAll(t), o) },
		"explain": func(s output.Streams, o page.Options) error { return ShowExplanation(s, explanationOfAll(t), o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := viewtest.CheckNarrow(t, func(columns int, coloured bool, env func(string) string) string {
				colour := map[bool]output.Colour{false: output.ColourNever, true: output.ColourAlways}[coloured]
				var out bytes.Buffer
				s := output.Streams{Out: &out, Err: &out, OutTTY: true, Width: columns, Height: 24}
				if err := show(s, page.Options{Colour: colour, Context: 1, ShowUnchanged: true, Getenv: env}); err != nil {
					t.Fatal(err)
				}
				return out.String()
			})
			viewtest.Golden(t, name+"-80.txt.golden", []byte(plain))
		})
	}
}
