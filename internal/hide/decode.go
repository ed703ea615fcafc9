package hide

import (
	"encoding/base64"
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

// decoded returns all other ways to read a view: without one kind of escapes, with words that go on in the next line, and what is in
// base64 or hexadecimal digits that stand for at least shortest bytes.
func (v view) decoded(shortest int) []view {
	out := []view{v.replaced(lineEnds(v.text), func(string) string { return "" })}
	for _, e := range escapes {
		if strings.Contains(v.text, e.sign) {
			out = append(out, v.replaced(e.pattern().FindAllStringIndex(v.text, -1), e.plain))
		}
	}
	// Where encoded text begins isn't known: a password may follow others. So groups of digits begin at any digit.
	for before := range 4 {
		out = append(out, v.encoded(isBase64, 6, before, shortest))
	}
	for before := range 2 {
		out = append(out, v.encoded(isHex, 4, before, shortest))
	}
	return out
}

// escapes are the kinds of escaped characters, with the sign in all of them, and what they stand for.
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

// minWrapped is the length, in bytes, from which the word of a line may go on in the next line.
const minWrapped = 16

// lineEnds returns where lines of one word each end, with the indentation of the next line: base64 is often written in lines of 64 or
// 76 characters.
func lineEnds(text string) [][]int {
	var out [][]int
	isWord := func(line string) bool { return line != "" && !strings.ContainsAny(line, " \t") }
	before, end, at := "", 0, 0
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		start := at + strings.Index(line, word)
		if len(before) >= minWrapped && isWord(before) && isWord(word) {
			out = append(out, []int{end, start})
		}
		before, end, at = word, start+len(word), at+len(line)
	}
	return out
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
func (v view) encoded(isDigit func(byte) bool, bits, leftOut, shortest int) view {
	d := decoder{of: v}
	for start, end := 0, 0; start < len(v.text); start = end + 1 {
		for end = start; end < len(v.text) && isDigit(v.text[end]); {
			end++
		}
		if start += leftOut; (end-start)*bits < shortest*8 {
			continue
		}
		data := bytesOf(v.text[start:end], bits)
		for end < len(v.text) && v.text[end] == '=' { // padding
			end++
		}
		for i := range data {
			from, to := start+i*8/bits, start+(i*8+7)/bits+1
			if i == len(data)-1 {
				to = end
			}
			d.add(string(data[i:i+1]), from, to)
		}
		d.add("\x00", end-1, end) // ends the word
	}
	return d.view(true)
}

func isHex(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'f' }

// isBase64 reports whether a byte is a digit of base64, in the alphabet for URLs, too: https://www.rfc-editor.org/rfc/rfc4648
func isBase64(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' || b == '+' || b == '/' || b == '-' || b == '_'
}

// bytesOf returns the bytes that digits of so many bits stand for.
func bytesOf(digits string, bits int) []byte {
	if bits == 4 {
		data, _ := hex.DecodeString(digits[:len(digits)&^1])
		return data
	}
	data, _ := base64.RawStdEncoding.DecodeString(ofURLs.Replace(digits[:len(digits)&^3]))
	tail, _ := base64.RawStdEncoding.DecodeString(ofURLs.Replace(digits[len(digits)&^3:]))
	return append(data, tail...)
}

// ofURLs replaces the digits of the alphabet for URLs.
var ofURLs = strings.NewReplacer("-", "+", "_", "/")
