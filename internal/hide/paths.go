package hide

import (
	"regexp"
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

const (
	quoted = `'[^']*'|"[^"]*"`
	// bracketed matches what is in brackets, with quotes and other brackets in it.
	bracketed = `\[(?:` + quoted + `|\[(?:` + quoted + `|[^\[\]])*\]|[^\[\]'"])+\]`
)

var (
	// listedPath matches a path in a list of paths that commas separate. A comma after a backslash, in brackets or in quotes is part of it.
	listedPath = lazyregexp.New(`(?:` + bracketed + `|` + quoted + `|\\.|[^,])+`)
	// pathStep matches a step of a path: a name, which may be in quotes, or brackets; before it may be one dot, or two.
	pathStep   = lazyregexp.New(`^(\.\.|\.?)(` + bracketed + `|` + quoted + `|[^.\['"][^.\[]*)`)
	quotedName = lazyregexp.New(`^(?:'([^']*)'|"([^"]*)")$`)
	escape     = lazyregexp.New(`\\(.)`)
)

// parsePaths returns the patterns of paths that commas separate; false if one is invalid.
func parsePaths(list string) (out []*regexp.Regexp, ok bool) {
	for _, path := range listedPath().FindAllString(list, -1) {
		path = strings.TrimPrefix(strings.TrimSpace(escape().ReplaceAllString(path, "$1")), "$")
		var steps []string
		for path != "" {
			m := pathStep().FindStringSubmatch(path)
			if m == nil || m[1] == "." && m[2][0] == '[' {
				return nil, false
			}
			if m[1] == ".." {
				steps = append(steps, anyDepth)
			}
			steps, path = append(steps, stepOf(m[2])), path[len(m[0]):]
		}
		if len(steps) > 0 {
			out = append(out, pattern(steps))
		}
	}
	return out, true
}

// stepOf is a step without its brackets and quotes. A union of names stands for all names, and the index or the filter of items for all items.
func stepOf(step string) string {
	inside, inBrackets := strings.CutPrefix(step, "[")
	step = strings.TrimSpace(strings.TrimSuffix(inside, "]"))
	switch {
	case quotedName().MatchString(step):
		return quotedName().ReplaceAllString(step, "$1$2")
	case !inBrackets:
		return inside
	case step == anyStep || strings.ContainsAny(step, `'"`) && !strings.ContainsAny(step, "=?"):
		return anyStep
	}
	return Item
}

// joinNames writes a path for patterns.
func joinNames(names []string) string { return "\x00" + strings.Join(names, "\x00") }

// pattern matches the paths that begin with the given steps. Paths may have items of lists between the steps.
func pattern(steps []string) *regexp.Regexp {
	const item, any = `\x00\[\]`, `\x00[^\x00]*`
	var b strings.Builder
	b.WriteString(`^(?s:`)
	for _, step := range steps {
		switch step {
		case anyDepth:
			b.WriteString(`(` + any + `)*`)
		case anyStep:
			b.WriteString(any)
		case Item:
			b.WriteString(item)
		default:
			b.WriteString(`(` + item + `)*\x00` + regexp.QuoteMeta(step))
		}
	}
	return regexp.MustCompile(b.String() + `)(\x00|$)`)
}
