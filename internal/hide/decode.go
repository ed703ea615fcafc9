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

// inOriginal returns where a part of a view stands in the original.
func (v view) inOriginal(from, to int) (int, int) {
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
	from, to = d.of.inOriginal(from, to)
	for i := range len(decoded) {
		d.text, d.from, d.to = append(d.text, decoded[i]), append(d.from, int32(from)), append(d.to, int32(to))
	}
}

// copy adds a part of the old view as it is.
func (d *decoder) copy(from, to int) {
	for i := from; i < to; i++ {
		d.add(d.of.text[i:i+1], i, i+1)
	}
}

func (d *decoder) view(inDigits bool) view {
	return view{string(d.text), d.from, d.to, inDigits || d.of.inDigits}
}

// decoded returns all other ways to read a view: with words that go on in the next line, without one kind of escapes, and what is in
// base64 or hexadecimal digits that stand for at least shortest bytes.
func (v view) decoded(shortest int) []view {
	out := []view{v.replaced(lineEnds(v.text), func(string) string { return "" })}
	for _, e := range escapes {
		out = append(out, v.replaced(e.pattern().FindAllStringIndex(v.text, -1), e.plain))
	}
	runs := digitRuns(v.text, 0, 6, shortest) // hexadecimal digits are digits of base64, too
	if len(runs) == 0 {
		return out
	}
	// Where encoded text begins isn't known: a password may follow others. So groups of digits begin at any digit.
	for _, start := range []struct{ bits, leftOut int }{{6, 0}, {6, 1}, {6, 2}, {6, 3}, {4, 0}, {4, 1}} {
		out = append(out, v.encoded(runs, start.bits, start.leftOut, shortest))
	}
	return out
}

// digitRuns returns where digits of so many bits stand that stand for at least shortest bytes. at is added to the places.
func digitRuns(text string, at, bits, shortest int) [][2]int {
	var out [][2]int
	for start, end := 0, 0; start < len(text); start = end + 1 {
		for end = start; end < len(text) && digit(text[end], bits) >= 0; {
			end++
		}
		if (end-start)*bits >= shortest*8 {
			out = append(out, [2]int{at + start, at + end})
		}
	}
	return out
}

// An escapeKind is a kind of escaped characters: how they are written, and what they stand for. All begin with a sign of their own,
// without which a text isn't looked at any further.
type escapeKind struct {
	pattern lazyregexp.Regexp
	plain   func(string) string
}

var escapes = []escapeKind{
	{lazyregexp.New(`\\(?i:u(?:d[89ab][[:xdigit:]]{2}\\ud[c-f][[:xdigit:]]{2}|[[:xdigit:]]{4})|x[[:xdigit:]]{2}|\S)`), unquote}, // JSON, %q
	{lazyregexp.New(`\\(?i:u)000[01][[:xdigit:]]{4}`), unquote},                                                                 // %q; in small letters it may be JSON
	{lazyregexp.New(`%[[:xdigit:]]{2}`), unhex},                                                                                 // URLs
	{lazyregexp.New(`&(?:[a-zA-Z]+|#[0-9]+|#[xX][[:xdigit:]]+);`), html.UnescapeString},                                         // XML
	{lazyregexp.New(`'(?:\\''|')`), quote},                                                                                      // shells, YAML, SQL
	{lazyregexp.New(`\\'`), quote},                                                                                              // errors of JSON schemas, others
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

// maxWhole is the length, in bytes, up to which a text is decoded as a whole. Of longer ones, only those lines are that have something
// to decode.
const maxWhole = 4 << 10

// replaced returns a view with something plain in place of the given parts; an empty view if there are none.
func (v view) replaced(parts [][]int, plain func(string) string) view {
	d := decoder{of: v}
	at := 0
	for i, part := range parts {
		end := len(v.text)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		if len(v.text) > maxWhole {
			at += strings.LastIndexByte(v.text[at:part[0]], '\n') + 1
			if n := strings.IndexByte(v.text[part[1]:end], '\n'); n >= 0 {
				end = part[1] + n + 1
			}
		}
		d.copy(at, part[0])
		d.add(plain(v.text[part[0]:part[1]]), part[0], part[1])
		d.copy(part[1], end)
		at = end
	}
	return d.view(false)
}

// encoded returns a view of what runs of digits stand for. A digit has a number of bits. The first ones are left out.
func (v view) encoded(runs [][2]int, bits, leftOut, shortest int) view {
	d := decoder{of: v}
	for _, longer := range runs {
		for _, run := range digitRuns(v.text[longer[0]:longer[1]], longer[0], bits, shortest) {
			value, held := 0, 0 // in bits that aren't decoded yet
			for i := run[0] + leftOut; i < run[1]; i++ {
				value, held = value<<bits|digit(v.text[i], bits), held+bits
				if held >= 8 {
					held -= 8
					d.add(string([]byte{byte(value >> held)}), i+1-(held+7+bits)/bits, i+1)
				}
			}
			for end := run[1]; end < len(v.text) && v.text[end] == '=' && len(d.to) > 0; end++ { // padding belongs to the last byte
				_, to := v.inOriginal(end, end+1)
				d.to[len(d.to)-1] = int32(to)
			}
			d.add("\x00", run[1]-1, run[1]) // ends the run
		}
	}
	return d.view(true)
}

// digits are the digits of so many bits: hexadecimal ones, and those of base64 (https://www.rfc-editor.org/rfc/rfc4648). After them
// come other ways to write the last ones.
var digits = [...]string{
	4: "0123456789abcdef" + "ABCDEF",
	6: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" + "-_",
}

// digit returns the value of a digit of so many bits; -1 for other characters.
func digit(b byte, bits int) int {
	value := strings.IndexByte(digits[bits], b)
	if value >= 1<<bits {
		value -= len(digits[bits]) - 1<<bits
	}
	return value
}
