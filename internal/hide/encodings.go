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

// mostEncoded is the length, in bytes, up to which all spellings of a text are searched for.
// A longer text is searched for as it is, and by its lines.
const mostEncoded = 64 << 10

// spellings are the forms in which a text is written elsewhere. like has the options of those with the letters of
// the text.
func spellings(text string, like part) []part {
	var out []part
	plain := func(texts ...string) {
		for _, t := range texts {
			like.text = t
			out = append(out, like)
		}
	}
	plain(text)
	if len(text) > mostEncoded {
		return append(out, part{text: base64.StdEncoding.EncodeToString([]byte(text)), caseSensitive: true})
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
		out = append(out, part{text: t})
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
		if len(inBase64.text) >= leastTwice && len(text) <= mostTwice {
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
	leastTwice = 4
	mostTwice  = 4 << 10 // bytes of a text
	widenTwice = 3       // an adjacent character of the inner base64, and the bits of the outer
)

// base64Cores returns the base64 of a text inside any other text: for each of the three offsets
// in a group of three bytes, without the characters that depend on adjacent bytes. https://www.rfc-editor.org/rfc/rfc4648#section-4
func base64Cores(text string) []part {
	var out []part
	seen := map[string]bool{}
	for before := range 3 {
		data := append(make([]byte, before), text...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all := alphabet.EncodeToString(data)
			first, last := (before*8+5)/6, len(data)*8/6
			core := all[min(first, last):last]
			if len(core) >= leastCore && !seen[core] {
				seen[core] = true
				out = append(out, part{text: core, caseSensitive: true, widen: 1})
			}
		}
	}
	return out
}

// leastCore is the shortest part of base64 that is looked for.
const leastCore = 4

// inASCII is a text as it stands in JSON that has only ASCII characters. https://www.rfc-editor.org/rfc/rfc8259#section-7
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

// inSingleQuotes are the forms of a text with single quotes in it between single quotes; none if it has none.
func inSingleQuotes(text string) []string {
	if !strings.Contains(text, "'") {
		return nil
	}
	// Errors of JSON schemas: github.com/santhosh-tekuri/jsonschema/v6/kind, quote
	quoted := strconv.Quote(text)
	inSchemaErrors := strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(quoted[1 : len(quoted)-1])
	return []string{inSchemaErrors, strings.ReplaceAll(text, "'", "''"), strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `\'`)} // YAML and SQL, shells, others
}

// number is what is a number in JSON.
var number = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numbers are the scientific forms of a text that is a number, of six digits or more: templates write numbers of
// JSON so, and errors of JSON schemas with a power of ten.
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

// percent is a text in which each byte is escaped as in URLs.
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

// escaped is a text as it stands in JSON, where <, > and & may be escaped or not.
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
