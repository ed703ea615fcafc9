package hide

import "strings"

// Paths are JSONPath as Nelm reads it (https://goessner.net/articles/JsonPath/),
// or written as plans write them: $.spec.template.spec.containers[*].env[*].value,
// data.*, ..password, metadata.annotations['example.com/token'],
// containers[name="app"].image. Which item of a list is meant doesn't matter:
// all are hidden, as an item may move.
const (
	anyStep  = "*"  // a field of any name, or an item
	anyDepth = "**" // any number of steps
)

// splitPaths separates paths at commas. A comma after a backslash, in brackets or in quotes is part of
// the path.
func splitPaths(text string) []string {
	var out []string
	var b strings.Builder
	var in nesting
	escaped := false
	end := func() {
		if path := strings.TrimSpace(b.String()); path != "" {
			out = append(out, path)
		}
		b.Reset()
	}
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
			continue
		case r == ',' && in.isOutside():
			end()
			continue
		default:
			in.take(r)
		}
		b.WriteRune(r)
	}
	end()
	return out
}

// parsePath parses one path; false when it is invalid.
func parsePath(text string) ([]string, bool) {
	var out []string
	rest := strings.TrimPrefix(strings.TrimSpace(text), "$")
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, ".."):
			out, rest = append(out, anyDepth), rest[2:]
			if rest == "" {
				return nil, false
			}
		case rest[0] == '.':
			if rest = rest[1:]; rest == "" || rest[0] == '[' {
				return nil, false
			}
		case rest[0] == '[':
			inside, after, ok := bracket(rest)
			if !ok {
				return nil, false
			}
			out, rest = append(out, selector(inside)), after
		case rest[0] == '"' || rest[0] == '\'':
			end := strings.IndexByte(rest[1:], rest[0])
			if end < 0 {
				return nil, false
			}
			out, rest = append(out, rest[1:end+1]), rest[end+2:]
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			out, rest = append(out, rest[:end]), rest[end:]
		}
	}
	return out, len(out) > 0
}

// bracket cuts [...] off the beginning of a path.
func bracket(text string) (inside, after string, ok bool) {
	var in nesting
	for i, r := range text {
		if in.take(r); r == ']' && in.isOutside() {
			return text[1:i], text[i+1:], i > 1
		}
	}
	return "", "", false
}

// nesting is the depth of brackets and the open quote at a position of a path.
type nesting struct {
	depth int
	quote rune // 0: none
}

// isOutside reports whether the position is outside of brackets and quotes.
func (n *nesting) isOutside() bool { return n.depth <= 0 && n.quote == 0 }

// take advances over one character. Brackets in quotes don't count.
func (n *nesting) take(r rune) {
	switch {
	case n.quote != 0:
		if r == n.quote {
			n.quote = 0
		}
	case r == '\'' || r == '"':
		n.quote = r
	case r == '[':
		n.depth++
	case r == ']':
		n.depth--
	}
}

// selector returns the step for what is in brackets: a quoted name, or an expression that selects
// items.
func selector(inside string) string {
	inside = strings.TrimSpace(inside)
	for _, q := range []string{"'", `"`} {
		if name, ok := strings.CutPrefix(inside, q); ok && strings.HasSuffix(name, q) && !strings.Contains(strings.TrimSuffix(name, q), q) {
			return strings.TrimSuffix(name, q)
		}
	}
	if inside == anyStep || strings.ContainsAny(inside, "'\"") && !strings.ContainsAny(inside, "=?") {
		return anyStep // all, or a union of names
	}
	return Item
}

// matches reports whether a pattern matches a path or a parent of it. A pattern may omit list
// items.
func matches(pattern, path []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if len(path) == 0 {
		return false
	}
	if pattern[0] == anyDepth {
		return matches(pattern[1:], path) || matches(pattern, path[1:])
	}
	if matchesStep(pattern[0], path[0]) && matches(pattern[1:], path[1:]) {
		return true
	}
	return path[0] == Item && matches(pattern, path[1:])
}

// matchesBelow reports whether a pattern may match something at or below a path.
func matchesBelow(pattern, path []string) bool {
	switch {
	case len(path) == 0:
		return true
	case len(pattern) == 0:
		return false
	case pattern[0] == anyDepth:
		return true
	case matchesStep(pattern[0], path[0]) && matchesBelow(pattern[1:], path[1:]):
		return true
	}
	return path[0] == Item && matchesBelow(pattern, path[1:])
}

func matchesStep(pattern, name string) bool { return pattern == anyStep || pattern == name }
