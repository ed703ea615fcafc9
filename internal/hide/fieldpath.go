package hide

import (
	"strconv"
	"strings"
)

// HidePath hides confidential values by which the path of a field names items of lists:
// spec.users[pin="1234"] becomes spec.users[pin=(hidden)]. The path is written as
// sigs.k8s.io/structured-merge-diff writes it. A value is hidden if its field is confidential. It is also
// hidden if it contains a text of t, which may be nil, unless its key is "name", which identifies the item.
func (f Fields) HidePath(path string, t *Texts) string {
	if !strings.Contains(path, "[") {
		return path
	}
	var out strings.Builder
	var names []string
	for rest := path; rest != ""; {
		switch rest[0] {
		case '.':
			out.WriteByte('.')
			rest = rest[1:]
		case '[':
			item, after := f.hideItem(names, rest, t)
			out.WriteString(item)
			names, rest = append(names, Item), after
		default:
			name, after := cutName(rest)
			out.WriteString(rest[:len(rest)-len(after)])
			names, rest = append(names, name), after
		}
	}
	return out.String()
}

// cutName cuts the name of a field, which may be in quotes, off the beginning of a path.
func cutName(path string) (name, rest string) {
	if quoted, err := strconv.QuotedPrefix(path); err == nil {
		name, _ = strconv.Unquote(quoted)
		return name, path[len(quoted):]
	}
	if end := strings.IndexAny(path[1:], ".["); end >= 0 {
		return path[:end+1], path[end+1:]
	}
	return path, ""
}

// hideItem cuts [0], [="value"] or [key="value",key=1] off the beginning of a path, and hides the
// confidential values in it. names is the path before it.
func (f Fields) hideItem(names []string, path string, t *Texts) (item, rest string) {
	var out strings.Builder
	for rest = path; ; {
		at := strings.IndexAny(rest, "=]")
		if at < 0 {
			break
		}
		if rest[at] == ']' {
			out.WriteString(rest[:at+1])
			return out.String(), rest[at+1:]
		}
		key := strings.TrimLeft(rest[:at], "[,")
		out.WriteString(rest[:at+1])
		rest = rest[at+1:]
		value := cutValue(rest)
		if f.hidesItemValue(names, key, value, t) {
			out.WriteString(Placeholder)
		} else {
			out.WriteString(value)
		}
		rest = rest[len(value):]
	}
	out.WriteString(rest)
	return out.String(), ""
}

// cutValue returns the value that a text begins with: text in quotes, a number or a word.
func cutValue(text string) string {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		return quoted
	}
	if end := strings.IndexAny(text, ",]"); end >= 0 {
		return text[:end]
	}
	return text
}

// hidesItemValue reports whether a value that names a list item is hidden: that of a key, or if the key is empty the item itself.
func (f Fields) hidesItemValue(names []string, key, value string, t *Texts) bool {
	at := append(names[:len(names):len(names)], Item)
	if key != "" {
		at = append(at, key)
	}
	if f.IsHidden(at) {
		return true
	}
	text, err := strconv.Unquote(value)
	if err != nil {
		text = value
	}
	_, found := t.hide(text)
	return key != "name" && len(found) > 0 && (hasLetter(text) || len(text) >= minKeyedNumber)
}
