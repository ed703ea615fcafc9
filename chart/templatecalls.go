package chart

import (
	"cmp"
	"strconv"
	"strings"
)

// A substitution changes each call of a template function.
type substitution struct {
	name   string // in place of the function's name; empty keeps that
	suffix string // after the arguments: another one, or what goes on with the result: "|reverse"
}

// replaceCalls calls note for each function that template text calls, and
// returns the text with the substitutions of instead, which are by function. quoted says whether calls
// in strings count: they may be templates for tpl, or just texts.
func replaceCalls(text string, quoted bool, instead map[string]substitution, note func(string)) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	rest := text
	for {
		before, action, found := strings.Cut(rest, "{{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString("{{")
		rest = replaceInAction(&out, action, quoted, instead, note)
	}
}

// replaceInAction handles the text after "{{" and returns the rest from "}}" on. https://pkg.go.dev/text/template#hdr-Actions
func replaceInAction(out *strings.Builder, text string, quoted bool, instead map[string]substitution, note func(string)) string {
	suffixes := []string{""} // of the present command, and of each one around its parentheses
	space := ""              // before the present token
	for i := 0; i < len(text); {
		size := 1
		word := ""
		token := text[i:]
		switch b := text[i]; {
		case strings.HasPrefix(token, "}}"):
			out.WriteString(suffixes[len(suffixes)-1] + space)
			return token
		case strings.HasPrefix(token, "/*"):
			size = lengthUntil(token, "*/")
		case b == '"' || b == '\'' || b == '`':
			size = quotedLength(token)
		case b == '.' || b == '$':
			size = 1 + wordLength(text[i+1:]) // a field or a variable, not a function
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
			space += token[:1]
			i++
			continue
		default:
			if n := wordLength(token); n > 0 {
				word, size = token[:n], n
			}
		}
		if strings.HasPrefix(token, "-}}") || token[0] == '|' || token[0] == ')' {
			out.WriteString(suffixes[len(suffixes)-1])
			suffixes[len(suffixes)-1] = ""
		}
		switch token[0] {
		case '(':
			suffixes = append(suffixes, "")
		case ')':
			suffixes = suffixes[:max(1, len(suffixes)-1)]
		}
		out.WriteString(space)
		space = ""
		if word != "" {
			note(word)
		}
		switch other := instead[word]; {
		case word != "" && other != (substitution{}):
			out.WriteString(cmp.Or(other.name, word))
			suffixes[len(suffixes)-1] += other.suffix
		case quoted && size > 1 && strings.Contains(token[:size], "{{"):
			out.WriteString(replaceInQuoted(token[:size], instead, note))
		default:
			out.WriteString(token[:size])
		}
		i += size
	}
	out.WriteString(space)
	return ""
}

// replaceInQuoted handles a string in an action, which may be a template for tpl.
func replaceInQuoted(quoted string, instead map[string]substitution, note func(string)) string {
	text, err := strconv.Unquote(quoted) // as text/template does
	if err != nil {
		return quoted
	}
	replaced := replaceCalls(text, true, instead, note)
	switch {
	case replaced == text:
		return quoted
	case quoted[0] == '`':
		return "`" + replaced + "`"
	}
	return strconv.Quote(replaced)
}

// lengthUntil is the length of the text up to and with the first end.
func lengthUntil(text, end string) int {
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
