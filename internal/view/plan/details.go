package plan

import (
	"fmt"
	"strconv"
	"strings"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/internal/view/document"
	"deployer/internal/view/textfmt"
)

// details lists what there is to say about an object below its name.
func (o object) details(opts document.Options, created bool) []document.Line {
	var out []document.Line
	remark := func(format string, args ...any) { out = append(out, document.Remark(format, args...)) }
	for _, n := range o.After {
		remark("after %s", n)
	}
	if o.Weight != nil {
		remark("weight %d", *o.Weight)
	}
	if o.Impact != "" {
		remark("%s", o.Impact)
	}
	if o.Unverified != "" {
		remark("not verified: %s", o.Unverified)
	}
	for _, g := range o.Generated {
		out = append(out, document.Context("%s", g))
	}
	conflictsByPath := map[string][]Conflict{}
	for _, c := range o.Conflicts {
		conflictsByPath[c.Path] = append(conflictsByPath[c.Path], c)
	}
	for _, f := range o.Fields {
		out = append(out, document.FieldLines(f, opts.Context)...)
		for _, c := range conflictsByPath[f.Path] {
			out = append(out, document.Line{Sign: '?', Text: "  " + textfmt.CleanLine(c.outcomeText())})
		}
		delete(conflictsByPath, f.Path)
	}
	for _, c := range o.Conflicts {
		if len(conflictsByPath[c.Path]) > 0 {
			remark("%s", c)
		}
	}
	if len(o.TakenFrom) > 0 {
		remark("the release takes over the fields of %s; their values stay", textfmt.List(textfmt.Quoted(o.TakenFrom)))
	}
	if created && o.Action == apply.Create {
		out = append(out, o.manifest()...)
	}
	return out
}

// String says what somebody waits for.
func (n dependency) String() string {
	words := map[ordering.State]string{ordering.Ready: " is ready", ordering.Present: " exists", ordering.Gone: " is deleted"}
	text := n.Object + words[n.State]
	if n.Outside {
		text += " (not part of this release)"
	}
	return text
}

// String tells of a field with a conflict: what it is now, what it becomes, whose it
// is since when.
func (c Conflict) String() string {
	if c.CollidesWith != "" {
		words := map[apply.FieldOutcome]string{apply.OutcomeTaken: "is removed for the chart's %s", apply.OutcomeYielded: "stays, and the chart's %s isn't sent", apply.OutcomeRefused: "conflicts with the chart's %s"}
		return fmt.Sprintf("%s: %s "+words[c.Outcome]+", %s", c.Path, c.Before, c.CollidesWith, c.outcomeText())
	}
	switch c.Outcome {
	case apply.OutcomeYielded:
		return fmt.Sprintf("%s stays %s, %s; the chart says %s", c.Path, c.Before, c.outcomeText(), c.After)
	case apply.OutcomeRefused:
		return fmt.Sprintf("%s is %s; the chart says %s: %s", c.Path, c.Before, c.After, c.outcomeText())
	}
	return fmt.Sprintf("%s: %s -> %s, %s", c.Path, c.Before, c.After, c.outcomeText())
}

// outcomeText says whose a field with a conflict is, and what becomes of it.
func (c Conflict) outcomeText() string {
	who := c.FieldManager.Described(strconv.Quote(c.Manager))
	switch c.Outcome {
	case apply.OutcomeYielded:
		return "left to " + who
	case apply.OutcomeRefused:
		return "refused, it belongs to " + who
	}
	return "taken from " + who
}

// manifest writes a new object out, without what its name says already.
func (o object) manifest() []document.Line {
	shown := map[string]any{}
	for key, v := range o.Manifest {
		switch key {
		case "apiVersion", "kind":
			continue
		case "metadata":
			if v = ownMetadata(v); v == nil {
				continue
			}
		}
		shown[key] = v
	}
	if len(shown) == 0 {
		return nil
	}
	lines := document.ValueBlock('+', shown)
	for i := range lines {
		lines[i].Text = strings.TrimPrefix(lines[i].Text, "    ")
	}
	return lines
}

// ownMetadata is what a chart's author wrote of an object's metadata, besides the
// name: without what says which release it belongs to, which all objects have.
// Nil when nothing is left.
func ownMetadata(v any) any {
	metadata, _ := v.(map[string]any)
	out := map[string]any{}
	for name, value := range metadata {
		entries, isMap := value.(map[string]any)
		switch {
		case name == "name" || name == "namespace":
			continue
		case !isMap:
			out[name] = value
			continue
		}
		kept := map[string]any{}
		for key, text := range entries {
			if !strings.HasPrefix(key, kube.ReleaseNameAnnotation) && !(key == "app.kubernetes.io/managed-by" && text == "Helm") {
				kept[key] = text
			}
		}
		if len(kept) > 0 {
			out[name] = kept
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
