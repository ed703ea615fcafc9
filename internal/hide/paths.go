package hide

import (
	"regexp"
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
)

// Paths are JSONPath as Nelm reads it (https://goessner.net/articles/JsonPath/),
// or written as plans write them: $.spec.template.spec.containers[*].env[*].value,
// data.*, ..password, metadata.annotations['example.com/token'],
// containers[name="app"].image. Which item of a list is meant doesn't matter:
// all are hidden, as an item may move.
const (
	anyStep  = "*"  // a field of any name, or an item
	anyDepth = "**" // any number of steps
)

// bracketed matches what is in brackets, with quotes and other brackets in it.
const bracketed = `\[(?:'[^']*'|"[^"]*"|\[(?:'[^']*'|"[^"]*"|[^\[\]])*\]|[^\[\]'"])+\]`

var (
	// listedPath matches a path in a list of paths that commas separate. A comma after a backslash, in brackets or in quotes is part of it.
	listedPath = lazyregexp.New(`(?:` + bracketed + `|'[^']*'|"[^"]*"|\\.|[^,])+`)
	// pathStep matches a step of a path: a name, which may be in quotes, or brackets; before it may be one dot, or two.
	pathStep   = lazyregexp.New(`^(\.\.|\.?)(` + bracketed + `|'[^']*'|"[^"]*"|[^.\['"][^.\[]*)`)
	quotedName = lazyregexp.New(`^(?:'([^']*)'|"([^"]*)")$`)
	escape     = regexp.MustCompile(`\\(.)`)
)

// splitPaths separates paths at commas.
func splitPaths(text string) []string {
	var out []string
	for _, path := range listedPath().FindAllString(text, -1) {
		if path = strings.TrimSpace(escape.ReplaceAllString(path, "$1")); path != "" {
			out = append(out, path)
		}
	}
	return out
}

// parsePath parses one path; false when it is invalid.
func parsePath(text string) ([]string, bool) {
	var out []string
	rest := strings.TrimPrefix(strings.TrimSpace(text), "$")
	for rest != "" {
		m := pathStep().FindStringSubmatch(rest)
		if m == nil || m[1] == "." && m[2][0] == '[' {
			return nil, false
		}
		if m[1] == ".." {
			out = append(out, anyDepth)
		}
		step := m[2]
		if inside, ok := strings.CutPrefix(step, "["); ok {
			step = strings.TrimSpace(strings.TrimSuffix(inside, "]"))
			isName := quotedName().MatchString(step)
			isUnion := strings.ContainsAny(step, "'\"") && !strings.ContainsAny(step, "=?")
			switch {
			case !isName && isUnion:
				step = anyStep
			case !isName && step != anyStep:
				step = Item
			}
		}
		out, rest = append(out, quotedName().ReplaceAllString(step, "$1$2")), rest[len(m[0]):]
	}
	return out, len(out) > 0
}

// matches reports whether a pattern matches a path or a parent of it. A pattern may omit list
// items.
func matches(pattern, path []string) bool { return match(pattern, path, false) }

// matchesBelow reports whether a pattern may match something at or below a path.
func matchesBelow(pattern, path []string) bool { return match(pattern, path, true) }

func match(pattern, path []string, below bool) bool {
	switch {
	case below && len(path) == 0:
		return true
	case len(pattern) == 0:
		return !below
	case len(path) == 0:
		return false
	case pattern[0] == anyDepth:
		return below || slices.ContainsFunc(suffixes(path), func(rest []string) bool { return match(pattern[1:], rest, below) })
	case (pattern[0] == anyStep || pattern[0] == path[0]) && match(pattern[1:], path[1:], below):
		return true
	}
	return path[0] == Item && match(pattern, path[1:], below)
}

// suffixes are what is left of a path after any number of steps.
func suffixes(path []string) [][]string {
	out := [][]string{{}}
	for i := range path {
		out = append(out, path[i:])
	}
	return out
}
