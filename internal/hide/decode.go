package hide

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"strconv"
	"strings"

	"deployer/internal/lazyregexp"
)

// A view is a text as somebody reads it who decodes it. Each of its bytes stands at a place in the original.
type view struct {
	text     string
	from, to []int32 // where each byte begins and ends there; nil for the original itself
	inDigits bool    // it was in base64 or hexadecimal digits, so that what stands beside a word may be anything
}

// place returns where a part of a view stands in the original.
func (v view) place(from, to int) (int, int) {
	if v.from == nil {
		return from, to
	}
	return int(v.from[from]), int(v.to[to-1])
}

// A decoder writes a new view of a view.
type decoder struct {
	of       view
	text     []byte
	from, to []int32
}

// add adds what the part of the old view between two places stands for.
func (d *decoder) add(decoded string, from, to int) {
	from, to = d.of.place(from, to)
	for i := range len(decoded) {
		d.text, d.from, d.to = append(d.text, decoded[i]), append(d.from, int32(from)), append(d.to, int32(to))
	}
}

func (d *decoder) view(inDigits bool) view {
	return view{string(d.text), d.from, d.to, inDigits || d.of.inDigits}
}

// decoded returns all other ways to read a view: without one kind of escapes, and what is in base64 or hexadecimal digits that stand for
// at least shortest bytes.
func (v view) decoded(shortest int) []view {
	var out []view
	for _, e := range escapes {
		if strings.Contains(v.text, e.sign) {
			out = append(out, v.replaced(e.pattern().FindAllStringIndex(v.text, -1), e.plain))
		}
	}
	// Where encoded text begins isn't known: a password may follow others. So groups of digits begin at any digit.
	for _, start := range []struct{ bits, leftOut int }{{6, 0}, {6, 1}, {6, 2}, {6, 3}, {4, 0}, {4, 1}} {
		out = append(out, v.encoded(start.bits, start.leftOut, shortest))
	}
	return out
}

// escapes are the kinds of characters that stand for others, with the sign in all of them, and what they stand for.
var escapes = []struct {
	sign    string
	pattern lazyregexp.Regexp
	plain   func(string) string
}{
	{`\`, lazyregexp.New(`(?i)\\u(?:d[89ab][[:xdigit:]]{2}\\ud[c-f][[:xdigit:]]{2}|000[01][[:xdigit:]]{4}|[[:xdigit:]]{4})|\\x[[:xdigit:]]{2}|\\\S`), unquote}, // JSON, %q
	{`%`, lazyregexp.New(`%[[:xdigit:]]{2}`), unhex},                                         // URLs
	{`&`, lazyregexp.New(`&(?:[a-zA-Z]+|#[0-9]+|#[xX][[:xdigit:]]+);`), html.UnescapeString}, // XML
	{`'`, lazyregexp.New(`'\\''|''`), quote},                                                 // shells, YAML, SQL
	{`\'`, lazyregexp.New(`\\'`), quote},                                                     // errors of JSON schemas, others
	{"\n", lazyregexp.New(`\s*\n\s*`), func(string) string { return "" }},                    // base64 in lines of 64 or 76 characters
}

// unquote decodes an escaped character of JSON or %q, also if others have written it in capitals.
func unquote(text string) string {
	switch len(text) {
	case len(`\u00e9`), len(`\xe9`):
		text = strings.ToLower(text)
	case len(`\U0001f600`):
		text = `\U` + text[2:]
	}
	var plain string
	if json.Unmarshal([]byte(`"`+text+`"`), &plain) == nil {
		return plain
	}
	if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
		return plain
	}
	return text[1:]
}

// quote decodes a single quote between others.
func quote(string) string { return "'" }

func unhex(text string) string {
	data, _ := hex.DecodeString(text[1:])
	return string(data)
}

// replaced returns a view with something plain in place of the given parts; an empty view if there are none.
func (v view) replaced(parts [][]int, plain func(string) string) view {
	if parts == nil {
		return view{}
	}
	d := decoder{of: v}
	at := 0
	for _, part := range append(parts, []int{len(v.text), len(v.text)}) {
		for ; at < part[0]; at++ {
			d.add(v.text[at:at+1], at, at+1)
		}
		if at = part[1]; part[0] < at {
			d.add(plain(v.text[part[0]:at]), part[0], at)
		}
	}
	return d.view(false)
}

// encoded returns a view of what words of digits stand for. A digit has a number of bits. The first ones are left out.
func (v view) encoded(bits, leftOut, shortest int) view {
	d := decoder{of: v}
	for start, end := 0, 0; start < len(v.text); start = end + 1 {
		for end = start; end < len(v.text) && digit(v.text[end], bits) >= 0; {
			end++
		}
		if (end-start-leftOut)*bits < shortest*8 {
			continue
		}
		value, held := 0, 0 // in bits that aren't decoded yet
		for i := start + leftOut; i < end; i++ {
			value, held = value<<bits|digit(v.text[i], bits), held+bits
			if held >= 8 {
				held -= 8
				d.add(string([]byte{byte(value >> held)}), i+1-(held+7+bits)/bits, i+1)
			}
		}
		for ; end < len(v.text) && v.text[end] == '='; end++ { // padding belongs to the last byte
			_, to := v.place(end, end+1)
			d.to[len(d.to)-1] = int32(to)
		}
		d.add("\x00", end-1, end) // ends the word
	}
	return d.view(true)
}

// digit returns the value of a digit of 4 bits, hexadecimal, or 6, base64 in either alphabet (https://www.rfc-editor.org/rfc/rfc4648);
// -1 for others.
func digit(b byte, bits int) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b-'0') + (bits-4)*26
	case bits == 4 && 'a' <= b|0x20 && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	case bits == 4:
		return -1
	case 'A' <= b && b <= 'Z':
		return int(b - 'A')
	case 'a' <= b && b <= 'z':
		return int(b-'a') + 26
	case b == '+' || b == '-':
		return 62
	case b == '/' || b == '_':
		return 63
	}
	return -1
}
