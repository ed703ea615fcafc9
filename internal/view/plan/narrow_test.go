package plan

import (
	"bytes"
	"strings"
	"testing"

	"deployer/internal/deploy"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
	"deployer/internal/view/viewtest"
)

func TestNarrowTerminals(t *testing.T) {
	for name, op := range map[string]*deploy.Operation{"plan": longWords(t), "many": manyChanges(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := viewtest.CheckNarrow(t, func(columns int, coloured bool, env func(string) string) string {
				colour := map[bool]output.Colour{false: output.ColourNever, true: output.ColourAlways}[coloured]
				var out bytes.Buffer
				s := output.Streams{Out: &out, Err: &out, OutTTY: true, Width: columns, Height: 24}
				if err := Show(s, op, page.Options{Colour: colour, Context: 1, ShowUnchanged: true, Getenv: env}); err != nil {
					t.Fatal(err)
				}
				return out.String()
			})
			if name != "many" {
				viewtest.Golden(t, name+"-80.txt.golden", []byte(plain))
			}
		})
	}
}

// What goes to a file keeps its lines, whatever the width of the terminal.
func TestFilesKeepLines(t *testing.T) {
	if text := planOf(t, longWords(t), page.Options{}); !strings.Contains(text, strings.Repeat("x", 120)) {
		t.Errorf("a value is broken:\n%s", text)
	}
}
