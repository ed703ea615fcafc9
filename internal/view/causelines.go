package view

import (
	"fmt"
	"strings"

	"deployer/track/class"
)

// lines says all there is to a cause, each line beginning with its label.
func (c Cause) lines(g glyphs) []string {
	var out []string
	add := func(label, text string) {
		if text != "" {
			out = append(out, pad(label, 8)+" "+line(text))
		}
	}
	add("image", c.Image)
	for i, l := range strings.Split(strings.TrimRight(block(c.Message), "\n"), "\n") {
		label := ""
		if i == 0 {
			label = "message"
		}
		add(label, l)
	}
	add("where", c.where())
	add("exit", c.exit())
	add("impact", c.Impact)
	out = append(out, c.changed(g)...)
	add("advice", c.Advice)
	out = append(out, c.events()...)
	for _, l := range c.Logs {
		out = append(out, l.lines()...)
	}
	return append(out, nextLines(c.Next)...)
}

// where names pods, nodes and containers.
func (c Cause) where() string {
	var parts []string
	if c.PodCount > 0 && c.PodTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", c.PodCount, count(c.PodTotal, "new pod")))
	}
	if n := len(c.Nodes); n > 0 {
		text := "on " + strings.Join(c.Nodes[:min(n, maxPods)], ", ")
		if n > maxPods {
			text += fmt.Sprintf(" and %d more", n-maxPods)
		}
		parts = append(parts, text)
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
	if text := attempts(class.Class(c.Class), c.Attempts, c.Limit); text != "" {
		parts = append(parts, text)
	}
	text := strings.Join(parts, ", ")
	if c.Suspect != "" {
		text += "; pods on other nodes are fine: suspect node " + c.Suspect
	}
	return text
}

func (c Cause) exit() string {
	switch {
	case c.ExitCode != nil && c.Reason != "":
		return fmt.Sprintf("code %d (%s)", *c.ExitCode, c.Reason)
	case c.ExitCode != nil:
		return fmt.Sprintf("code %d", *c.ExitCode)
	}
	return c.Reason
}

func (c Cause) changed(g glyphs) []string {
	source := ""
	if c.Source != "" {
		source = "(" + line(c.Source) + ")"
	}
	if len(c.Changed) == 0 {
		if source == "" {
			return nil
		}
		return []string{pad("template", 8) + " " + line(c.Source)}
	}
	var out []string
	for i, text := range c.Changed {
		label := "changed"
		if i > 0 {
			label = ""
		}
		text = strings.ReplaceAll(line(text), " -> ", " "+g.arrow+" ")
		if i == 0 && source != "" {
			text += "   " + source
		}
		out = append(out, pad(label, 8)+" "+text)
	}
	return out
}

func (c Cause) events() []string {
	var out []string
	from := max(0, len(c.Events)-maxEvents)
	for i, e := range c.Events[from:] {
		label := "events"
		if i > 0 {
			label = ""
		}
		text := strings.TrimSpace(e.Type + " " + e.Reason + ": " + e.Message)
		if e.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Count)
		}
		if e.Object != "" {
			text += " [" + e.Object + "]"
		}
		out = append(out, pad(label, 8)+" "+line(text))
	}
	return out
}

func (l CauseLog) title() string {
	text := line(l.Pod + "/" + l.Container)
	if l.Previous {
		text += ", previous run"
	}
	return text
}

func (l CauseLog) lines() []string {
	n := len(l.Lines)
	if n == 0 {
		why := l.Why
		if why == "" {
			why = "nothing was written"
		}
		return []string{pad("logs", 8) + " " + l.title() + ": " + line(why)}
	}
	shown := l.Lines[max(0, n-maxLog):]
	what := fmt.Sprintf(", last %s:", count(len(shown), "line"))
	out := []string{pad("logs", 8) + " " + l.title() + what}
	for _, text := range shown {
		out = append(out, pad("", 8)+" | "+visible(text))
	}
	return out
}

// nextLines align the commands.
func nextLines(steps []NextStep) []string {
	longest := 0
	for _, s := range steps {
		longest = max(longest, width(s.What))
	}
	var out []string
	for i, s := range steps {
		label := "next"
		if i > 0 {
			label = ""
		}
		text := line(s.What)
		if s.Command != "" {
			text = pad(text+":", longest+1) + "  " + line(s.Command)
		}
		out = append(out, pad(label, 8)+" "+text)
	}
	return out
}
