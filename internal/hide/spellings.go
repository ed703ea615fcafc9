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
	"unicode"
	"unicode/utf16"
)

const (
	// maxEncoded is the length, in bytes, up to which all spellings of a text are searched for.
	// A longer text is searched for as it is, in base64, and by its lines.
	maxEncoded = 64 << 10
	// maxTwice is that for base64 of base64.
	maxTwice = 4 << 10
)

// escapes are the ways in which others write a text so that its letters stay.
var escapes = []func(string) string{
	func(s string) string { return inside(strconv.Quote(s)) },
	func(s string) string { return inside(strconv.QuoteToASCII(s)) },
	func(s string) string { return inJSON(s, true) },
	func(s string) string { return inJSON(s, false) },
	jsonInASCII,
	html.EscapeString, // as XML has it
	url.QueryEscape,
	url.PathEscape,
	strings.ToUpper,
	strings.ToLower,
	// Between single quotes: YAML and SQL, shells, others.
	strings.NewReplacer(`'`, `''`).Replace,
	strings.NewReplacer(`'`, `'\''`).Replace,
	strings.NewReplacer(`'`, `\'`).Replace,
	// Errors of JSON schemas: github.com/santhosh-tekuri/jsonschema/v6/kind, quote
	func(s string) string {
		return strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(inside(strconv.Quote(s)))
	},
}

// spellings returns all forms in which a text may be written elsewhere. What writes an escaped text may escape it
// again: servers quote values in messages, and the messages are quoted in JSON.
func spellings(text string) []term {
	if len(text) > maxEncoded {
		return []term{{text: text}, {text: base64.StdEncoding.EncodeToString([]byte(text)), inBase64: true}}
	}
	forms := map[string]bool{text: true}
	for _, first := range escapes {
		if once := first(text); !forms[once] {
			forms[once] = true
			for _, second := range escapes {
				forms[second(once)] = true
			}
		}
	}
	for _, form := range scientific(text) {
		forms[form] = true
	}
	wholeWord := len(text) < minSearched || !strings.ContainsFunc(text, unicode.IsLetter)
	var out []term
	for form := range forms {
		out = append(out, term{text: form, wholeWord: wholeWord})
	}
	inHex := hex.EncodeToString([]byte(text))
	percent := ""
	for i := 0; i < len(inHex); i += 2 {
		percent += "%" + inHex[i:i+2]
	}
	out = append(out, term{text: percent}, term{text: inHex})
	for _, once := range base64Cores(text) {
		out = append(out, once)
		if len(text) <= maxTwice { // base64 of base64: Secrets that contain encoded text
			out = append(out, base64Cores(once.text)...)
		}
	}
	return out
}

// base64Cores returns what is the same in the base64 of all longer texts that contain a text. Base64 encodes groups of
// three bytes, so there is one core for each of the three offsets that the text may have in a group. Characters that
// depend on adjacent bytes aren't part of it. https://www.rfc-editor.org/rfc/rfc4648#section-4
func base64Cores(text string) []term {
	var out []term
	for before := range 3 {
		data := append(make([]byte, before), text...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all := alphabet.EncodeToString(data)
			first, last := (before*8+5)/6, len(data)*8/6
			out = append(out, term{text: all[min(first, last):last], inBase64: true})
		}
	}
	return out
}

// inside is a text without its quotes.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }

// inJSON is a text between the quotes of JSON.
func inJSON(text string, escapeHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	_ = e.Encode(text) // a text can be encoded
	return inside(strings.TrimSpace(b.String()))
}

// jsonInASCII is a text in JSON, with all characters beyond ASCII escaped. https://www.rfc-editor.org/rfc/rfc8259#section-7
func jsonInASCII(text string) string {
	var b strings.Builder
	for _, r := range inJSON(text, false) {
		if r <= unicode.MaxASCII {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// scientific returns the scientific notations of a number: 1e+06, as templates print it, and 1×10⁶, as errors of JSON schemas do.
func scientific(text string) []string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "-0123456789.e+E") != "" || math.Abs(value) < 1e5 {
		return nil
	}
	short := strconv.FormatFloat(value, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(short, "e+")
	return []string{short, mantissa + "×10" + superscript.Replace(exponent)}
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
