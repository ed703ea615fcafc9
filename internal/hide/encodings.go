package hide

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"

	"deployer/internal/lazyregexp"
)

// maxEncoded is the length, in bytes, up to which all spellings of a text are searched for.
// A longer text is searched for as it is, in base64, and by its lines.
const maxEncoded = 64 << 10

// spellings returns terms for all forms in which a text may be written elsewhere. Forms with the letters of the text,
// such as escaped ones, get the options of like; base64 and hexadecimal have options of their own.
func spellings(text string, like term) []term {
	var out []term
	plain := func(texts ...string) {
		for _, t := range texts {
			like.text = t
			out = append(out, like)
		}
	}
	plain(text)
	if len(text) > maxEncoded {
		return append(out, term{text: base64.StdEncoding.EncodeToString([]byte(text)), caseSensitive: true})
	}
	// Servers quote values in messages, and what writes the message escapes it again.
	for _, quoted := range append(escaped(text), text) {
		plain(quoted, html.EscapeString(quoted)) // as XML has it
		plain(escaped(quoted)...)                // as JSON has it
	}
	plain(inSingleQuotes(text)...)
	plain(numbers(text)...)
	plain(url.QueryEscape(text), url.PathEscape(text))
	for _, t := range []string{percent(text), hex.EncodeToString([]byte(text))} {
		out = append(out, term{text: t})
	}
	if hasNonASCII(text) {
		plain(inASCII(text), strings.Trim(strconv.QuoteToASCII(text), `"`))
		plain(escaped(inASCII(text))...) // in a text that is quoted once more
	}
	if upper, lower := strings.ToUpper(text), strings.ToLower(text); len(upper) != len(text) || hasNonASCII(text) {
		plain(upper, lower) // letters beyond ASCII
	}
	out = append(out, base64Cores(text)...)
	for _, inBase64 := range base64Cores(text) { // base64 of base64: Secrets that contain encoded text
		if len(inBase64.text) >= minTwice && len(text) <= maxTwice {
			for _, twice := range base64Cores(inBase64.text) {
				twice.widen = widenTwice
				out = append(out, twice)
			}
		}
	}
	return out
}

// Limits for searching base64 of base64.
const (
	minTwice   = 4
	maxTwice   = 4 << 10 // bytes of a text
	widenTwice = 3       // an adjacent character of the inner base64, and the bits of the outer
)

// base64Cores returns what is the same in the base64 of all longer texts that contain a text. Base64 encodes groups of
// three bytes, so there is one core for each of the three offsets that the text may have in a group. Characters that
// depend on adjacent bytes aren't part of it. https://www.rfc-editor.org/rfc/rfc4648#section-4
func base64Cores(text string) []term {
	var out []term
	seen := map[string]bool{}
	for before := range 3 {
		data := append(make([]byte, before), text...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all := alphabet.EncodeToString(data)
			first, last := (before*8+5)/6, len(data)*8/6
			core := all[min(first, last):last]
			if len(core) >= minCore && !seen[core] {
				seen[core] = true
				out = append(out, term{text: core, caseSensitive: true, widen: 1})
			}
		}
	}
	return out
}

// minCore is the length of the shortest core that is searched for.
const minCore = 4

// inASCII is a text in JSON, with all characters beyond ASCII escaped. https://www.rfc-editor.org/rfc/rfc8259#section-7
func inASCII(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text
	}
	var b strings.Builder
	for _, r := range string(quoted[1 : len(quoted)-1]) {
		if r <= 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// inSingleQuotes returns the forms that a text with single quotes takes between single quotes; none for other texts.
func inSingleQuotes(text string) []string {
	if !strings.Contains(text, "'") {
		return nil
	}
	// Errors of JSON schemas: github.com/santhosh-tekuri/jsonschema/v6/kind, quote
	quoted := strconv.Quote(text)
	inSchemaErrors := strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(quoted[1 : len(quoted)-1])
	return []string{inSchemaErrors, strings.ReplaceAll(text, "'", "''"), strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `\'`)} // YAML and SQL, shells, others
}

// number matches a number of JSON.
var number = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numbers returns the scientific notations of a number of six digits or more: 1e+06, as templates print it, and 1×10⁶,
// as errors of JSON schemas do.
func numbers(text string) []string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !number().MatchString(text) || math.Abs(value) < 1e5 {
		return nil
	}
	scientific := strconv.FormatFloat(value, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(scientific, "e+")
	return []string{scientific, mantissa + "×10" + superscript.Replace(exponent)}
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// percent is a text with every byte escaped as in URLs.
func percent(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02X", text[i])
	}
	return b.String()
}

// hasNonASCII reports whether a text has non-ASCII characters.
func hasNonASCII(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f })
}

// escaped returns the forms of a text between double quotes: of JSON, with <, > and & escaped or not, and of %q.
func escaped(text string) []string {
	var out []string
	for _, angles := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(angles)
		if e.Encode(text) == nil {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`))
		}
	}
	quoted := strconv.Quote(text) // as %q writes it
	return append(out, quoted[1:len(quoted)-1])
}
