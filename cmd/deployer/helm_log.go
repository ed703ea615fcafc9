package main

import "deployer/internal/lazyregexp"

// A helmLogFilter receives the log of Helm's packages. It passes on lines that a user can act
// on as warnings, each once: a condition that isn't a bool, a link to a file outside the
// chart. Other lines say that values have another type than the chart's defaults; these are
// harmless and would show the values.
type helmLogFilter struct {
	warn  func(string)
	shown map[string]bool
}

var shownLogLines = lazyregexp.New(`^(?i:warning): ((?:Condition|Tag|PathValue|ImportValues|Dependenc|unresolved) ?.*)|^((?:found symbolic link|skipping loading invalid entry) .*)`)

// Write is called with one line at a time, and never twice at once.
func (h *helmLogFilter) Write(line []byte) (int, error) {
	if m := shownLogLines().FindSubmatch(line); m != nil {
		if text := string(m[1]) + string(m[2]); !h.shown[text] {
			h.shown[text] = true
			h.warn(text)
		}
	}
	return len(line), nil
}
