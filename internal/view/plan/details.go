package plan

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/internal/kube"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// details lists what there is to say about an object below its name.
func (o object) details(opts page.Options, created bool) []page.Line {
	var out []page.Line
	remark := func(format string, args ...any) { out = append(out, page.Remark(format, args...)) }
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
		out = append(out, page.Context("%s", generatedText(g)))
	}
	conflictsByPath := map[string][]apply.FieldConflict{}
	for _, c := range o.Conflicts {
		conflictsByPath[c.Path] = append(conflictsByPath[c.Path], c)
	}
	for _, f := range o.Fields {
		out = append(out, page.FieldLines(f, opts.Context)...)
		for _, c := range conflictsByPath[f.Path] {
			out = append(out, page.Line{Sign: '?', Text: "  " + ownerText(c)})
		}
		delete(conflictsByPath, f.Path)
	}
	for _, c := range o.Conflicts {
		if len(conflictsByPath[c.Path]) > 0 {
			remark("%s", conflictText(c))
		}
	}
	if len(o.TakenFrom) > 0 {
		what := "their values stay"
		if len(o.Fields) > 0 {
			what = "values that aren't listed here stay"
		}
		remark("the release takes over the fields of %s; %s", textfmt.List(textfmt.Quoted(o.TakenFrom)), what)
	}
	if created && o.Action == decide.Create {
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

// conflictText tells of a field with a conflict: what it is now, what it becomes, whose it
// is since when.
func conflictText(c apply.FieldConflict) string {
	format, other := conflictWords[c.Outcome].field, c.After
	if c.CollidesWith != "" {
		format, other = conflictWords[c.Outcome].item, c.CollidesWith
	}
	return fmt.Sprintf(format, c.Path, c.Before, other, ownerText(c))
}

// ownerText says whose a field with a conflict is, and what becomes of it.
func ownerText(c apply.FieldConflict) string {
	return conflictWords[c.Outcome].owner + " " + page.ManagerText(strconv.Quote(c.Manager), c.FieldManager)
}

// conflictWords are what becomes of a field's owner, of the field, and of an item that can't be beside the chart's.
// The arguments are a path, the live value, the chart's value or item, and the owner.
var conflictWords = map[decide.FieldOutcome]struct{ owner, field, item string }{
	decide.OutcomeTaken: {
		"taken from", "%s: %s -> %s, %s", "%s: %s is removed for the chart's %s, %s",
	},
	decide.OutcomeYielded: {
		"left to", "%[1]s stays %[2]s, %[4]s; the chart says %[3]s", "%s: %s stays, and the chart's %s isn't sent, %s",
	},
	decide.OutcomeRefused: {
		"refused, it belongs to", "%s is %s; the chart says %s: %s", "%s: %s conflicts with the chart's %s, %s",
	},
}

// manifest writes a new object out, without what its name says already.
func (o object) manifest() []page.Line {
	shown := maps.Clone(o.Manifest)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(shown, key)
	}
	if metadata := ownMetadata(o.Manifest["metadata"]); len(metadata) > 0 {
		shown["metadata"] = metadata
	}
	if len(shown) == 0 {
		return nil
	}
	lines := page.ValueBlock('+', shown)
	for i := range lines {
		lines[i].Text = strings.TrimPrefix(lines[i].Text, "    ")
	}
	return lines
}

// ownMetadata is what a chart's author wrote of an object's metadata, besides the
// name: without what says which release it belongs to, which all objects have.
func ownMetadata(v any) map[string]any {
	metadata, _ := v.(map[string]any)
	out := maps.Clone(metadata)
	delete(out, "name")
	delete(out, "namespace")
	for name, value := range out {
		entries, isMap := value.(map[string]any)
		if !isMap {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(key string, text any) bool {
			return key == kube.ReleaseNameAnnotation || key == kube.ReleaseNamespaceAnnotation || key == kube.ManagedByLabel && text == kube.ManagedByHelm
		})
		if out[name] = entries; len(entries) == 0 {
			delete(out, name)
		}
	}
	return out
}
