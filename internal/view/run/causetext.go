package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/internal/view/textfmt"
	"deployer/track/finding"
)

// lines returns the lines of a cause, each with its label.
func (c Cause) lines(g textfmt.Glyphs) []string {
	var out []string
	add := func(label, text string) {
		if text != "" {
			out = append(out, labelled(label, text)...)
		}
	}
	add("image", c.Image)
	label := "message"
	for l := range strings.SplitSeq(strings.TrimRight(c.Message, "\n"), "\n") {
		add(label, l)
		label = ""
	}
	add("where", c.where())
	if c.lasted >= time.Second {
		add("since", fmt.Sprintf("%s UTC, for %s", c.Since.Format(time.TimeOnly), textfmt.Duration(c.lasted)))
	}
	switch {
	case c.ExitCode == nil:
		add("reason", c.Reason)
	case !strings.Contains(c.Message, fmt.Sprintf("exit code %d", *c.ExitCode)):
		add("exit", textfmt.WithNotes(fmt.Sprintf("code %d", *c.ExitCode), c.Reason))
	}
	add("impact", c.Impact)
	out = append(out, c.changed(g)...)
	add("advice", c.Advice)
	out = append(out, c.events()...)
	for _, l := range c.Logs {
		out = append(out, logLines(l)...)
	}
	return append(out, suggestionLines(c.Next)...)
}

// labelled puts a label before the first of several lines, and as much space before the others.
func labelled(label string, lines ...string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, strings.TrimRight(textfmt.Pad(label, 8)+" "+strings.ReplaceAll(l, "\n", " "), " "))
		label = ""
	}
	return out
}

// where names pods, nodes and containers.
func (c Cause) where() string {
	var parts []string
	if c.PodCount > 0 && c.PodTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", c.PodCount, textfmt.Count(c.PodTotal, "new pod")))
	}
	if len(c.Nodes) > 0 {
		parts = append(parts, "on "+textfmt.First(c.Nodes, maxPods))
	}
	if len(c.Pods) > 0 {
		text := "e.g. " + c.Pods[0]
		if len(c.Pods) == 1 {
			text = c.Pods[0]
		}
		parts = append(parts, text)
	}
	if c.Container != "" {
		parts = append(parts, "container "+c.Container)
	}
	if text := attempts(c.Class, c.Attempts, c.Limit); text != "" {
		parts = append(parts, text)
	}
	text := strings.Join(parts, ", ")
	if c.SuspectNode != "" {
		text += "; pods on other nodes are fine: suspect node " + c.SuspectNode
	}
	return text
}

func (c Cause) changed(g textfmt.Glyphs) []string {
	if len(c.Changed) == 0 && c.Source != "" {
		if c.Hook != "" {
			return nil // the headline names it
		}
		return labelled("template", c.Source)
	}
	var out []string
	for i, text := range c.Changed {
		text = strings.ReplaceAll(text, " -> ", " "+g.Arrow+" ")
		if i == 0 && c.Source != "" {
			text += "   (" + c.Source + ")"
		}
		out = append(out, text)
	}
	return labelled("changed", out...)
}

// events are what the message doesn't say already, each thing once, with the first of the objects that it is about.
func (c Cause) events() []string {
	var distinct []finding.Event
	others := map[[2]string]int{}
	for _, e := range c.Events {
		key := [2]string{e.Reason, e.Message}
		switch _, known := others[key]; {
		case c.Message != "" && strings.HasPrefix(e.Message, c.Message):
		case known:
			others[key]++
		default:
			distinct, others[key] = append(distinct, e), 0
		}
	}
	var out []string
	for _, e := range distinct[max(0, len(distinct)-maxEvents):] {
		text := strings.TrimSpace(e.Type + " " + e.Reason + ": " + e.Message)
		if e.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Count)
		}
		if e.Object != "" {
			text += " [" + e.Object + textfmt.AndMore(others[[2]string{e.Reason, e.Message}]) + "]"
		}
		out = append(out, text)
	}
	return labelled("events", out...)
}

func logTitle(l finding.Log) string {
	text := l.Pod + "/" + l.Container
	if l.Previous {
		text += ", previous run"
	}
	return text
}

func logLines(l finding.Log) []string {
	n := len(l.Lines)
	if n == 0 {
		why := cmp.Or(l.UnavailableReason, "nothing was written")
		return labelled("logs", logTitle(l)+": "+why)
	}
	shown := l.Lines[max(0, n-maxLog):]
	out := []string{fmt.Sprintf("%s, last %s:", logTitle(l), textfmt.Count(len(shown), "line"))}
	for _, text := range shown {
		out = append(out, "| "+text)
	}
	return labelled("logs", out...)
}

// suggestionLines are the lines of suggestions, their commands aligned.
func suggestionLines(suggestions []Suggestion) []string {
	longest := 0
	for _, s := range suggestions {
		if s.Command != "" {
			longest = max(longest, textfmt.Width(s.What))
		}
	}
	var out []string
	for _, s := range suggestions {
		text := s.What
		if s.Command != "" {
			text = textfmt.Pad(text+":", longest+1) + "  " + s.Command
		}
		out = append(out, text)
	}
	return labelled("next", out...)
}

// headline names the problem and its objects.
func (c Cause) headline() string {
	text := c.Title
	if c.Hook != "" {
		text += " in " + c.Hook
	}
	if len(c.Objects) == 0 {
		return text
	}
	return text + ": " + textfmt.First(c.Objects.Names(), 3)
}

// summary is the cause in one line, with the last words of its container.
func (c Cause) summary() string {
	text := c.headline()
	if message := textfmt.FirstLine(c.Message); message != "" {
		text += ": " + message
	}
	for _, log := range c.Logs {
		for _, line := range slices.Backward(log.Lines) {
			if line = strings.TrimSpace(line); line != "" {
				return text + "; its log ends with: " + line
			}
		}
	}
	return text
}

// text is the cause as the report of a failure writes it.
func (c Cause) text(g textfmt.Glyphs) string {
	var b strings.Builder
	for _, l := range c.lines(g) {
		b.WriteString(l + "\n")
	}
	return b.String()
}
