// Package lazyregexp compiles the regular expressions of package variables when they are first used. Compiling all of
// them takes longer than everything else that short commands do.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// A Regexp compiles its expression the first time that it is called.
type Regexp func() *regexp.Regexp

// New returns an expression to compile later. If it isn't valid it panics as regexp.MustCompile does: when it is first
// used, but in a test at once, so that no such expression gets past the tests.
func New(expression string) Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		compiled()
	}
	return compiled
}
