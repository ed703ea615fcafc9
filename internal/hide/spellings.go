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

const (
	// maxEncoded is the length, in bytes, up to which all spellings of a text are searched for.
	// A longer text is searched for as it is, in base64, and by its lines.
	maxEncoded = 64 << 10
	// maxTwice is that for base64 of base64.
	maxTwice = 4 << 10
)

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
	plain(url.QueryEscape(text), url.PathEscape(text))
	plain(scientific(text)...)
	if strings.Contains(text, "'") { // between single quotes: errors of JSON schemas, YAML and SQL, shells, others
		inDoubleQuotes := strings.ReplaceAll(strconv.Quote(text), `\"`, `"`) // github.com/santhosh-tekuri/jsonschema/v6/kind, quote
		plain(strings.ReplaceAll(inDoubleQuotes[1:len(inDoubleQuotes)-1], `'`, `\'`))
		for _, quote := range []string{"''", `'\''`, `\'`} {
			plain(strings.ReplaceAll(text, "'", quote))
		}
	}
	if ascii := inASCII(text); ascii != text {
		plain(ascii, strings.Trim(strconv.QuoteToASCII(text), `"`), strings.ToUpper(text), strings.ToLower(text))
		plain(escaped(ascii)...) // in a text that is quoted once more
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
			for _, twice := range base64Cores(once.text) {
				twice.widen = 3 // an adjacent character of the inner base64, and the bits of the outer
				out = append(out, twice)
			}
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
			out = append(out, term{text: all[min(first, last):last], caseSensitive: true, widen: 1})
		}
	}
	return out
}

// escaped returns the forms of a text between double quotes: of JSON, with <, > and & escaped or not, and of %q.
func escaped(text string) []string {
	out := []string{strconv.Quote(text)}
	for _, angles := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(angles)
		if e.Encode(text) == nil {
			out = append(out, strings.TrimSpace(b.String()))
		}
	}
	for i, quoted := range out {
		out[i] = quoted[1 : len(quoted)-1]
	}
	return out
}

// inASCII is a text in JSON, with all characters beyond ASCII escaped. https://www.rfc-editor.org/rfc/rfc8259#section-7
func inASCII(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f }) {
		return text
	}
	var b strings.Builder
	for _, r := range escaped(text)[1] {
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

// number matches a number of JSON.
var number = lazyregexp.New(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// scientific returns the scientific notations of a number: 1e+06, as templates print it, and 1×10⁶, as errors of JSON schemas do.
func scientific(text string) []string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !number().MatchString(text) || math.Abs(value) < 1e5 {
		return nil
	}
	short := strconv.FormatFloat(value, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(short, "e+")
	return []string{short, mantissa + "×10" + superscript.Replace(exponent)}
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
