package hide

import (
	"strconv"
	"strings"

	"deployer/internal/lazyregexp"
)

// Paths are JSONPath as Nelm reads it (https://goessner.net/articles/JsonPath/),
// or written as plans show them: $.spec.template.spec.containers[*].env[*].value,
// data.*, ..password, metadata.annotations['example.com/token'],
// containers[name="app"].image. Which item of a list is meant doesn't matter:
// all are hidden, as an item may move.
const (
	anyStep  = "*"  // a field of any name, or an item
	anyDepth = "**" // any number of steps
)

// bracketed matches what is in brackets, with quotes and other brackets in it.
const bracketed = `\[(?:'[^']*'|"(?:[^"\\]|\\.)*"|\[(?:'[^']*'|"[^"]*"|[^\[\]])*\]|[^\[\]'"])*\]`

var (
	// pathPart matches the next part of a list of paths: a comma between paths, or after one dot, two or none brackets or a name.
	pathPart   = lazyregexp.New(`^(?:(\s*,\s*)|(\.\.|\.?)(?:(` + bracketed + `)|('[^']*'|"(?:[^"\\]|\\.)*"|(?:\\.|[^.,\['"\\])(?:\\.|[^.,\[\\])*)))`)
	quotedName = lazyregexp.New(`^(?:'[^']*'|"(?:[^"\\]|\\.)*")$`)
	// itemValue matches what names an item of a list: [="value"] or [key="value",key=1].
	itemValue = lazyregexp.New(`([\[,])([^=,\[\]]*)=("(?:[^"\\]|\\.)*"|[^,\]]*)`)
)

// parsePaths parses paths that commas separate, up to one that is invalid; false if there is one. A comma after a backslash, in brackets or in quotes is part of a path.
func parsePaths(list string) (patterns [][]string, ok bool) {
	var steps []string
	for rest := strings.TrimSpace(list) + ","; rest != ""; {
		m := pathPart().FindStringSubmatch(rest)
		if m == nil || m[2] == "." && m[3] != "" || strings.ContainsAny(m[4], `'"`) && !quotedName().MatchString(m[4]) {
			return patterns, false
		}
		rest = rest[len(m[0]):]
		if m[2] == ".." {
			steps = append(steps, anyDepth)
		}
		switch {
		case m[1] != "" && steps != nil && len(steps) == 0: // only the root
			return patterns, false
		case m[1] != "" && steps != nil:
			patterns, steps = append(patterns, steps), nil
		case m[3] != "":
			steps = append(steps, stepInBrackets(strings.TrimSpace(m[3][1:len(m[3])-1])))
		case m[4] != "" && steps == nil && m[4][0] == '$':
			steps = []string{}
			rest = m[4][1:] + rest
		case m[4] != "":
			steps = append(steps, nameStep(m[4]))
		}
	}
	return patterns, true
}

// nameStep is a name without its quotes and backslashes.
func nameStep(text string) string {
	if name, err := strconv.Unquote(text); err == nil {
		return name
	}
	if quotedName().MatchString(text) {
		return text[1 : len(text)-1]
	}
	return strings.TrimSpace(strings.ReplaceAll(text, `\`, ""))
}

func stepInBrackets(text string) string {
	switch {
	case quotedName().MatchString(text):
		return nameStep(text)
	case text == anyStep || strings.ContainsAny(text, "'\"") && !strings.ContainsAny(text, "=?"): // a union of names
		return anyStep
	}
	return Item
}

// matches reports whether a pattern matches a path or a parent of it. A pattern may omit list items.
func matches(pattern, path []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case len(path) == 0:
		return false
	case pattern[0] == anyDepth:
		return matches(pattern[1:], path) || matches(pattern, path[1:])
	}
	isStep := pattern[0] == anyStep || pattern[0] == path[0]
	return isStep && matches(pattern[1:], path[1:]) || path[0] == Item && matches(pattern, path[1:])
}

// HidePath hides confidential values by which the path of a field, as plans show it, names items of lists:
// spec.users[pin="1234"] becomes spec.users[pin=(hidden)]. A value is hidden if its field is confidential. It is also
// hidden if it contains a text of t, which may be nil, unless its key is "name", which identifies the item.
func (f Fields) HidePath(path string, t *Texts) string {
	var names []string
	shown, rest := "", path
	for rest != "" {
		part, after := rest[:1], rest[1:]
		if m := pathPart().FindStringSubmatch(rest); m != nil {
			part, after = m[0], rest[len(m[0]):]
			switch {
			case m[3] != "":
				names = append(names, Item)
				part = itemValue().ReplaceAllStringFunc(part, func(item string) string { return f.hideItem(names, item, t) })
			case m[4] != "":
				names = append(names, nameStep(m[4]))
			}
		}
		shown, rest = shown+part, after
	}
	return shown
}

// hideItem hides the value in key=value, or =value, by which a path names an item.
func (f Fields) hideItem(at []string, item string, t *Texts) string {
	m := itemValue().FindStringSubmatch(item)
	if m[2] != "" {
		at = below(at, m[2])
	}
	text, err := strconv.Unquote(m[3])
	if err != nil {
		text = m[3]
	}
	if f.IsHidden(at) || m[2] != "name" && t.Hide(text) != text {
		return m[1] + m[2] + "=" + Placeholder
	}
	return item
}
