package hide

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestQuotedPasswordsStayHidden: between single quotes, as errors of JSON schemas, YAML, SQL and shells have them.
func TestQuotedPasswordsStayHidden(t *testing.T) {
	left, right := canary(t, 8), canary(t, 8)
	for _, password := range []string{left + "'" + right, "'" + left + `"` + right, left + `\'` + right + "'", left + ": '" + right} {
		var texts Texts
		texts.AddValues(map[string]any{"password": password})
		inYAML, err := yaml.Marshal(map[string]any{"a": password})
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{
			"a schema's error": "at '/password': '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "' does not match pattern '^never$'",
			"YAML":             string(inYAML),
			"YAML in quotes":   "a: '" + strings.ReplaceAll(password, "'", "''") + "'",
			"a shell":          "login '" + strings.ReplaceAll(password, "'", `'\''`) + "'",
		} {
			if got := texts.Hide(text); shows(got, left) || shows(got, right) {
				t.Errorf("%s of %s shows it: %s", form, password, got)
			}
		}
	}
}

// TestNumbersStayHidden in scientific notation, in which templates write numbers of JSON, and errors of schemas.
func TestNumbersStayHidden(t *testing.T) {
	number := (10_000_000+rand.IntN(90_000_000))*10 + 1
	for _, value := range []any{number, int64(number), float64(number), fmt.Sprint(number)} {
		var texts Texts
		texts.AddValues(map[string]any{"pin": 1, "password": value})
		digits := strings.TrimRight(fmt.Sprint(number), "0")
		mantissa := digits[:1] + "." + digits[1:]
		for _, text := range []string{fmt.Sprint(number), mantissa + "e+08", mantissa + "E+08", mantissa + "×10⁰⁸"} {
			if got := texts.Hide("maximum: got " + text + ", want 1"); got != "maximum: got (hidden), want 1" {
				t.Errorf("%T: %q shows it: %s", value, text, got)
			}
		}
	}
}

// TestTextsInASCIIStayHidden: JSON of programs that write only ASCII characters.
func TestTextsInASCIIStayHidden(t *testing.T) {
	left, right := canary(t, 8), canary(t, 8)
	var texts Texts
	texts.AddValues(map[string]any{"password": left + "é😀" + right})
	for _, text := range []string{
		`{"a":"` + left + `\u00e9\ud83d\ude00` + right + `"}`, `{"a":"` + left + `\u00E9\uD83D\uDE00` + right + `"}`, `"{\"a\":\"` + left + `\\u00e9\\ud83d\\ude00` + right + `\"}"`,
		fmt.Sprintf("%+q", left+"é😀"+right),
	} {
		if got := texts.Hide(text); shows(got, left) || shows(got, right) {
			t.Errorf("%q shows it: %s", text, got)
		}
	}
}

// TestWrappedTextsStayHidden: base64, hexadecimal digits and long texts that are written in several lines.
func TestWrappedTextsStayHidden(t *testing.T) {
	password := canary(t, 24)
	var texts Texts
	texts.AddValues(map[string]any{"password": password})
	for form, whole := range map[string]string{
		"base64":      base64.StdEncoding.EncodeToString([]byte("a few words before it, " + password + ", and a few after it, so that there is more")),
		"hexadecimal": strings.Repeat("00", 20) + hex.EncodeToString([]byte(password)) + strings.Repeat("00", 20),
		"itself":      strings.Repeat("x", 21) + password + strings.Repeat("y", 21),
	} {
		for width := 16; width <= 76; width++ {
			for _, end := range []string{"\n", "\n    ", "\r\n"} {
				var b strings.Builder
				for i := 0; i < len(whole); i += width {
					b.WriteString(whole[i:min(i+width, len(whole))] + end)
				}
				got := texts.Hide("data: |\n  " + b.String() + "the end\n")
				if joined := strings.Join(strings.Fields(got), ""); shows(joined, password) || !strings.Contains(got, Placeholder) || !strings.HasPrefix(got, "data: |\n  ") || !strings.HasSuffix(got, "the end\n") {
					t.Fatalf("%s in lines of %d: %q", form, width, got)
				}
			}
		}
	}
	lines := "one-long-word-in-a-line\nanother-long-word-in-a-line\n\n  a third-one with more\n"
	if got := texts.Hide(lines); got != lines {
		t.Errorf("%q has changed: %q", lines, got)
	}
}

// TestLongTextsHideWhatIsEscapedInOneLine: of long texts, only lines that have something to decode are decoded.
func TestLongTextsHideWhatIsEscapedInOneLine(t *testing.T) {
	left, right := canary(t, 8), canary(t, 8)
	var texts Texts
	texts.AddValues(map[string]any{"password": left + `"<` + right})
	filling := strings.Repeat("  \"expr\": \"sum(rate(x{job=\\\"a\\\"}[5m]))\", it''s &amp; %20\n", maxWhole/40)
	for _, form := range []string{left + `\"<` + right, left + `\"\u003c` + right, left + `&#34;&lt;` + right, left + `%22%3C` + right, left + `\\\"<` + right} {
		if got, want := texts.Hide(filling+"is "+form+" here\n"+filling), filling+"is (hidden) here\n"+filling; got != want {
			t.Errorf("%s is shown, or what is around it isn't", form)
		}
	}
}
