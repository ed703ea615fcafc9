package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"deployer/internal/view/textfmt"
	"deployer/internal/view/viewtest"
)

// TestFilter has all that a terminal or the log of a CI system would obey in text
// that nobody has cleaned.
func TestFilter(t *testing.T) {
	for text, want := range map[string]string{
		"plain ✓ text\n\twith tabs\n": "plain ✓ text\n\twith tabs\n",
		"":                            "",
		viewtest.Hostile:              "",
		"a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b": "alinkb",
		"a\x1b]52;c;ZXZpbA==\x07b":                      "ab",
		"a\x1b[2J\x1b[1;1Hb\x1b[8mhidden\x1b[0m":        "abhidden",
		"good\revil":                                    "good evil",
		"windows\r\nlines\r\n":                          "windows\nlines\n",
		"\u202etxet\u2066 \u200fx":                      "txet x",
		"\x9b31m\u009b31mred":                           "\ufffd31mred",
		"::error::x":                                    ": :error::x",
		"a\n \t ::add-mask::x\n":                        "a\n \t : :add-mask::x\n",
		"std::string, a::b":                             "std::string, a::b",
		":\x00:error::joined":                           ": :error::joined",
		"x ##[error]y":                                  "x # #[error]y",
		"x #\u200e#[error]y":                            "x # #[error]y",
		"##vso[task.setvariable variable=x]y":           "# #vso[task.setvariable variable=x]y",
		"##VSO[task.x]y":                                "# #VSO[task.x]y",
		"###teamcity[buildStatus text='x']":             "## #teamcity[buildStatus text='x']",
		"## heading\n### [link]":                        "## heading\n### [link]",
		"see \uf6d0deployer\uf6d1 status deployer":      "see helm status deployer",
	} {
		if want == "" && text != "" {
			want = strings.NewReplacer("\r", " ").Replace(textfmt.CleanText(text))
		}
		var out bytes.Buffer
		s := Streams{Out: &out, Err: &out}.Filtered("helm")
		if n, err := s.Out.Write([]byte(text)); err != nil || n != len(text) {
			t.Errorf("Write(%q) = %d, %v", text, n, err)
		}
		if text == viewtest.Hostile { // tabs may stay
			want, text = strings.ReplaceAll(want, "\t", " "), strings.ReplaceAll(out.String(), "\t", " ")
			if text != want {
				t.Errorf("hostile text:\n got %q\nwant %q", text, want)
			}
			continue
		}
		if out.String() != want {
			t.Errorf("%q is written as %q, want %q", text, out.String(), want)
		}
	}
}

// commandWords begin commands of CI systems, in letters of either case.
var commandWords = []string{"##[", "##vso[", "##teamcity["}

// TestFilterRemembersTheLine writes a command in pieces.
func TestFilterRemembersTheLine(t *testing.T) {
	var out bytes.Buffer
	s := Streams{Out: &out, Err: &out}.Filtered("deployer")
	for _, piece := range []string{"name", "::x\n", "  ", "::error::y\n", "::end\n"} {
		fmt.Fprint(s.Out, piece)
	}
	if got, want := out.String(), "name::x\n  : :error::y\n: :end\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFilterPassesOurs: colours and commands of ours come through, but not with
// the mark of another run.
func TestFilterPassesOurs(t *testing.T) {
	var out bytes.Buffer
	s := Streams{Out: &out, Err: &out}.Filtered("deployer")
	p := s.ErrPalette(ColourAlways)
	fmt.Fprint(s.Err, p.Bad.Sprint("bad\x1b[5m")+" "+p.Faint.Sprint("faint")+"\x1b[0m\n"+s.MarkTrusted("::group::x\n")+"::group::y\n")
	if got, want := out.String(), "\x1b[31mbad\x1b[0m \x1b[2mfaint\x1b[22m\n::group::x\n: :group::y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	other := Streams{}.Filtered("deployer")
	fmt.Fprint(s.Err, other.ErrPalette(ColourAlways).Bad.Sprint("bad")+other.MarkTrusted("::group::x\n"))
	if got := out.String(); strings.Contains(got, "\x1b") || strings.HasPrefix(got, "::") {
		t.Errorf("the mark of another run is obeyed: %q", got)
	}
}

// TestDataIsNotFiltered: what programs read is whole, and JSON is harmless in the
// log of a CI system all the same.
func TestDataIsNotFiltered(t *testing.T) {
	var out bytes.Buffer
	s := Streams{Out: &out, Err: &out}.Filtered("deployer")
	want := map[string]any{"a": "::error::\u202e##[x] ##vso[y] ##teamcity[z] ##VSO[y]\x1b"}
	for _, format := range []Format{FormatJSON, FormatYAML} {
		out.Reset()
		if err := Encode(s.Out, format, want); err != nil {
			t.Fatal(err)
		}
		if format == FormatYAML {
			if !strings.Contains(out.String(), "##[x]") || !strings.Contains(out.String(), "::error") {
				t.Errorf("YAML is changed: %s", out.String())
			}
			continue
		}
		for _, word := range append([]string{"\u202e", "\x1b"}, commandWords...) {
			if strings.Contains(strings.ToLower(out.String()), word) {
				t.Errorf("JSON has %q: %s", word, out.String())
			}
		}
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["a"] != want["a"] {
			t.Errorf("JSON is changed: %s, %v", out.String(), err)
		}
	}
}

// FuzzFilter holds that nothing that a terminal or a log obeys is left, however
// the text is cut into writes.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{viewtest.Hostile, "::error::x", "#\x00#[x]\n:\x1b[0m:y", "\x1b[\x1b[31m##vso[", "\n\u00a0::x", "a\x1b]8;;x"} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		if cut = min(max(cut, 0), len(text)); !utf8.ValidString(text) {
			cut = 0
		}
		var out bytes.Buffer
		s := Streams{Out: &out, Err: &out}.Filtered("deployer")
		// A line is written at once, as everywhere in the program.
		if i := strings.LastIndexByte(text[:cut], '\n') + 1; i > 0 {
			fmt.Fprint(s.Out, text[:i])
			text = text[i:]
		}
		fmt.Fprint(s.Out, text)
		for _, l := range strings.Split(out.String(), "\n") {
			if strings.ContainsFunc(strings.ReplaceAll(l, "\t", " "), textfmt.IsControl) {
				t.Errorf("a terminal obeys %q", l)
			}
			if strings.HasPrefix(strings.TrimSpace(l), "::") {
				t.Errorf("GitHub obeys %q", l)
			}
			for _, word := range commandWords {
				if strings.Contains(strings.ToLower(l), word) {
					t.Errorf("a CI system obeys %q", l)
				}
			}
		}
	})
}

// TestErrorInCI: what a cluster says in an error is no command to the log.
func TestErrorInCI(t *testing.T) {
	var out strings.Builder
	s := Streams{Out: &out, Err: &out}.Filtered("deployer")
	PrintError(s.Err, s.ErrPalette(ColourNever), errors.New("refused: ##[error]x\n  ::add-mask::y"), nil)
	fmt.Fprint(s.Err, WarningLine(s.ErrPalette(ColourNever), "odd ##[warning]z"))
	want := "Error: refused: # #[error]x\n  : :add-mask::y\nWarning: odd # #[warning]z\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
