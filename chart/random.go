package chart

import (
	"context"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// whims are the template functions that give something else each time, by how
// often one has to render again to see it: with a few possibilities to choose
// from, the same one may come out again. keys and values give the entries of a
// map in an order that Go makes up.
// https://masterminds.github.io/sprig/
var whims = map[string]int{
	"randAlphaNum": 1, "randAlpha": 1, "randAscii": 1, "randBytes": 1, "uuidv4": 1,
	"bcrypt": 1, "htpasswd": 1, "encryptAES": 1, "genPrivateKey": 1,
	"genCA": 1, "genCAWithKey": 1, "genSelfSignedCert": 1, "genSelfSignedCertWithKey": 1,
	"genSignedCert": 1, "genSignedCertWithKey": 1,
	"randNumeric": 4, "randInt": 4, "shuffle": 4, "keys": 4, "values": 4,
	"now": 1, "ago": 1,
}

// later are what takes the place of functions that look at the clock, which
// would tell the same time again: a time with another year, month, day, weekday,
// hour, minute and second, and in place of a duration other text.
var later = map[string]string{
	"now": `(dateModify "+9685h7m3s" now)`,
	"ago": "typeOf",
}

// Variants renders the chart some more times, as it would come out another
// time with the same input. It returns nothing when no template, value or file
// calls a function that could make a difference. It reads what Render reads.
func (c *Chart) Variants(ctx context.Context, in Input) ([]*Rendered, error) {
	times := 0
	note := func(name string) { times = max(times, whims[name]) }
	changed := &Chart{Helm: copyChart(c.Helm)}
	clock := func(text string) string { return replaceCalls(text, note) }
	turnClock(changed.Helm, clock)
	in.Values = eachText(copyMap(in.Values), clock).(map[string]any)
	var out []*Rendered
	for range times {
		r, err := changed.Render(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// turnClock changes all text of a chart, a copy of the caller's own, that may be
// evaluated: templates, and by the function tpl values and files.
func turnClock(c *helmchart.Chart, clock func(string) string) {
	change := func(files []*helmchart.File) []*helmchart.File {
		files = slices.Clone(files)
		for i, f := range files {
			if text := clock(string(f.Data)); text != string(f.Data) {
				files[i] = &helmchart.File{Name: f.Name, Data: []byte(text)}
			}
		}
		return files
	}
	c.Templates, c.Files = change(c.Templates), change(c.Files)
	eachText(c.Values, clock)
	for _, child := range c.Dependencies() {
		turnClock(child, clock)
	}
}

// eachText replaces all texts in values, in place.
func eachText(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case map[string]any:
		for key, item := range v {
			v[key] = eachText(item, change)
		}
	case []any:
		for i, item := range v {
			v[i] = eachText(item, change)
		}
	}
	return v
}

// replaceCalls calls note for each function that template text calls, and
// returns the text with other functions in place of those in later.
func replaceCalls(text string, note func(string)) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var out strings.Builder
	rest := text
	for {
		before, action, found := strings.Cut(rest, "{{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString("{{")
		rest = replaceInAction(&out, action, note)
	}
}

// replaceInAction handles an action from behind its "{{" and returns the text
// from its end on. https://pkg.go.dev/text/template#hdr-Actions
func replaceInAction(out *strings.Builder, text string, note func(string)) string {
	for i := 0; i < len(text); {
		size := 1
		word := ""
		switch b := text[i]; {
		case strings.HasPrefix(text[i:], "}}"):
			return text[i:]
		case strings.HasPrefix(text[i:], "/*"):
			size = until(text[i:], "*/")
		case b == '"' || b == '\'' || b == '`':
			size = quotedLength(text[i:])
		case b == '.' || b == '$':
			size = 1 + wordLength(text[i+1:]) // a field or a variable, not a function
		default:
			if n := wordLength(text[i:]); n > 0 {
				word, size = text[i:i+n], n
			}
		}
		if word != "" {
			note(word)
		}
		if other, ok := later[word]; ok {
			out.WriteString(other)
		} else {
			out.WriteString(text[i : i+size])
		}
		i += size
	}
	return ""
}

// until is the length of the text up to and with the first end.
func until(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// quotedLength is the length of the string or character that text begins with.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] != '`':
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return len(text)
}

// wordLength is the length of the name that text begins with.
func wordLength(text string) int {
	for i := range len(text) {
		if b := text[i]; !(b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80) {
			return i
		}
	}
	return len(text)
}
