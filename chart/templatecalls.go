package chart

import "strings"

// replaceCalls calls note for each function that template text calls, and
// returns the text with other functions in place of those in instead.
func replaceCalls(text string, instead map[string]string, note func(string)) string {
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
		rest = replaceInAction(&out, action, instead, note)
	}
}

// replaceInAction handles the text after "{{" and returns the rest from "}}" on. https://pkg.go.dev/text/template#hdr-Actions
func replaceInAction(out *strings.Builder, text string, instead map[string]string, note func(string)) string {
	for i := 0; i < len(text); {
		size := 1
		word := ""
		switch b := text[i]; {
		case strings.HasPrefix(text[i:], "}}"):
			return text[i:]
		case strings.HasPrefix(text[i:], "/*"):
			size = lengthUntil(text[i:], "*/")
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
		if other, ok := instead[word]; ok {
			out.WriteString(other)
		} else if size > 1 && strings.Contains(text[i:i+size], "{{") {
			out.WriteString(replaceInQuoted(text[i:i+size], instead, note))
		} else {
			out.WriteString(text[i : i+size])
		}
		i += size
	}
	return ""
}

// replaceInQuoted handles a string in an action, which may be a template for tpl.
func replaceInQuoted(quoted string, instead map[string]string, note func(string)) string {
	if quoted[0] == '"' {
		escaped := make(map[string]string, len(instead))
		for name, other := range instead {
			escaped[name] = strings.ReplaceAll(other, `"`, `\"`)
		}
		instead = escaped
	}
	return quoted[:1] + replaceCalls(quoted[1:len(quoted)-1], instead, note) + quoted[len(quoted)-1:]
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
