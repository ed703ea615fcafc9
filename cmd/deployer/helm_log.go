package main

import "regexp"

// helmLogFilter hears what Helm's packages log, and passes on as warnings, once each,
// what a user can do something about: a condition that is no bool has no effect,
// a link in a chart takes in a file from elsewhere. The rest is that values have
// another shape than the chart's defaults, which loses nothing, and would show
// them.
type helmLogFilter struct {
	warn  func(string)
	shown map[string]bool
}

var shownLogLines = regexp.MustCompile(`^(?i:warning): ((?:Condition|Tag|PathValue|ImportValues|Dependenc|unresolved) ?.*)|^((?:found symbolic link|skipping loading invalid entry) .*)`)

// Write is called with one line at a time, and never twice at once.
func (h *helmLogFilter) Write(line []byte) (int, error) {
	if m := shownLogLines.FindSubmatch(line); m != nil {
		if text := string(m[1]) + string(m[2]); !h.shown[text] {
			h.shown[text] = true
			h.warn(text)
		}
	}
	return len(line), nil
}
