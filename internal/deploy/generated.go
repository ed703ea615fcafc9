package deploy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/chart"
	"deployer/chart/retain"
	"deployer/internal/kube"
	"deployer/release"
)

// renderAndKeep renders the chart of an operation and replaces newly generated values by those that earlier revisions have
// generated. If necessary, it renders the chart again and reads objects of failed revisions.
func (d *Deployer) renderAndKeep(ctx context.Context, op *Operation, source *chart.Chart, in chart.Input) (*chart.Rendered, error) {
	renderer := retain.Renderer{Calls: source.TemplateCalls(in), Begun: time.Now()}
	renderer.Render = func(ctx context.Context) (*chart.Rendered, error) { return source.RenderAgain(ctx, in) }
	rendered, err := source.Render(ctx, in)
	if err != nil {
		d.hideManifest(rendered)
		return nil, inputError{err}
	}
	if !renderer.Calls.MayDiffer() {
		return rendered, nil
	}
	rerender := func(ctx context.Context) ([]*chart.Rendered, error) {
		again, err := renderer.Render(ctx)
		return []*chart.Rendered{again}, err
	}
	history := op.history
	if history.Latest() == nil {
		op.Rendered.rerender = rerender
		return rendered, nil
	}
	records, err := history.RecordsWithPossibleObjects(ctx)
	if err != nil {
		return nil, err
	}
	input := d.retainInput(ctx, rendered, in.Values, records)
	var unread error
	input.Older = func() (older []retain.Revision) {
		var before []*release.Record
		before, unread = recordsBefore(ctx, history, records)
		for _, r := range before {
			older = append(older, retain.NewRevision(r.Manifest, r.Hooks))
		}
		return older
	}
	input.NextUpgrade = func(now time.Time) time.Duration { return pace(history, now) }
	result, again, err := renderer.Decide(ctx, input)
	if unread != nil {
		return nil, unread
	}
	if err != nil && ctx.Err() == nil {
		// Templates may fail only when rendered again, such as with a later time.
		rendered.Warnings = append(rendered.Warnings, fmt.Sprintf("generated values are renewed, because rendering the chart again to find them failed: %v", err))
		return rendered, nil
	}
	if err != nil {
		return nil, err
	}
	if len(again) > 0 {
		rerender = func(context.Context) ([]*chart.Rendered, error) { return again, nil }
	}
	rendered.Manifest, rendered.Notes = result.Manifest, result.Replace(rendered.Notes)
	for i, text := range result.Hooks {
		rendered.Hooks[i].Manifest = text
	}
	op.Rendered.Generated, op.Rendered.rerender = result.Values, rerender
	rendered.Warnings = append(rendered.Warnings, result.Warnings...)
	return rendered, nil
}

// retainInput is what the decision about generated values depends on, besides repeated renderings. values are the user's.
func (d *Deployer) retainInput(ctx context.Context, rendered *chart.Rendered, values map[string]any, records []*release.Record) retain.Input {
	in := retain.Input{
		Namespace: d.Namespace, Policy: d.Settings.Generated, Rendered: retain.NewRevision(rendered.Manifest, rendered.Hooks),
		Live: func(id kube.ID) (*unstructured.Unstructured, error) { return d.Cluster.Get(ctx, id) },
	}
	// By a wrong clock of ours, a certificate would be renewed too early or too late. When the server doesn't tell the time, none is
	// renewed because of it: at the zero time all are new.
	in.Now = sync.OnceValue(func() time.Time {
		now, err := d.Releases.ServerTime(ctx)
		if err != nil {
			return time.Time{}
		}
		return now
	})
	var last *release.Record
	for _, r := range records {
		in.Release = r.Name
		earlier := retain.NewRevision(r.Manifest, r.Hooks)
		earlier.Number, earlier.Successful = r.Version, r.Succeeded()
		in.Earlier = append(in.Earlier, earlier)
		if earlier.Successful {
			last = r
		}
	}
	switch {
	case last == nil:
	case last.Chart == nil || last.Chart.Metadata == nil: // other tools may record none
		in.ChangedValues = changedTexts(setOver(last.Config, rendered.Chart.Values), setOver(values, rendered.Chart.Values))
	default:
		in.ChangedValues = changedTexts(setOver(last.Config, last.Chart.Values), setOver(values, rendered.Chart.Values))
		in.SameInput = asJSON(last.Config) == asJSON(values) && asJSON(last.Chart.Values) == asJSON(rendered.Chart.Values) && last.Chart.Metadata.Version == rendered.Chart.Metadata.Version
	}
	return in
}

// pace is how long it may take until the next upgrade: at least as long as since the last one, and as on average. It is measured by
// the server's clock: that of a client which deployed a revision may have been wrong.
func pace(history *release.History, now time.Time) time.Duration {
	first, last := history.Revisions[0].Created, history.Latest().Created
	if first.IsZero() || last.IsZero() {
		return 0
	}
	return max(now.Sub(last), now.Sub(first)/time.Duration(len(history.Revisions)))
}

// setOver returns values with those that are set in place of the defaults.
func setOver(set, defaults any) any {
	over, isMap := set.(map[string]any)
	under, _ := defaults.(map[string]any)
	if !isMap {
		return set
	}
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		out[key] = setOver(value, under[key])
	}
	return out
}

// changedTexts are the texts and numbers among values that weren't there at the same place, each once.
func changedTexts(before, now any) []string {
	var out []string
	var compare func(before, now any)
	compare = func(before, now any) {
		switch v := now.(type) {
		case map[string]any:
			was, _ := before.(map[string]any)
			for key, value := range v {
				compare(was[key], value)
			}
		case []any:
			was, _ := before.([]any)
			for i, value := range v {
				if i < len(was) {
					compare(was[i], value)
				} else {
					compare(nil, value)
				}
			}
		case nil, bool:
		default:
			// A shorter text is no password.
			if text := scalarText(v); len(text) >= 4 && (before == nil || scalarText(before) != text) {
				out = append(out, text)
			}
		}
	}
	compare(before, now)
	slices.Sort(out)
	return slices.Compact(out)
}

// scalarText is a value as a template writes it, whether it was read from YAML or JSON.
func scalarText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, _ := json.Marshal(value) // what isn't a text is a number or a map
	return string(data)
}

// asJSON writes values for comparison. Those that were recorded have other types of numbers than those that were read from files.
func asJSON(values map[string]any) string {
	if len(values) == 0 {
		return "{}"
	}
	data, err := json.Marshal(values)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// recordGenerated writes into the record which fields are generated, for later commands.
func (o *Operation) recordGenerated() {
	for _, v := range o.Rendered.Generated {
		journal := o.Next.Journal
		if journal.Generated == nil {
			journal.Generated = map[string]map[string]int{}
		}
		key := apply.Key(o.withNamespace(v.ID))
		if journal.Generated[key] == nil {
			journal.Generated[key] = map[string]int{}
		}
		journal.Generated[key][v.Path] = v.Revision
	}
}

// generatedAt are the generated fields of a revision, of which each has the revision that its value is from.
func generatedAt(r *release.Record) map[string]map[string]int {
	out := map[string]map[string]int{}
	for object, paths := range r.Journal.Generated {
		out[object] = map[string]int{}
		for path, from := range paths {
			out[object][path] = cmp.Or(from, r.Version)
		}
	}
	return out
}

// withNamespace is an object's identity with the namespace of the release where the
// manifest doesn't name one.
func (o *Operation) withNamespace(id kube.ID) kube.ID {
	if id.Namespace == "" {
		id.Namespace = o.Namespace
	}
	return id
}

// GeneratedIn lists what is generated in an object.
func (o *Operation) GeneratedIn(id kube.ID) []retain.Value {
	return slices.DeleteFunc(slices.Clone(o.Rendered.Generated), func(v retain.Value) bool { return o.withNamespace(v.ID) != o.withNamespace(id) })
}

// recordedGenerated returns the generated values that a record lists.
func recordedGenerated(r *release.Record) []retain.Value {
	if r.Journal == nil {
		return nil
	}
	var out []retain.Value
	for key, paths := range r.Journal.Generated {
		id, ok := apply.ParseKey(key)
		for path, revision := range paths {
			if ok {
				out = append(out, retain.Value{ID: id, Path: path, Revision: revision})
			}
		}
	}
	slices.SortFunc(out, func(a, b retain.Value) int {
		return strings.Compare(a.ID.String()+" "+a.Path, b.ID.String()+" "+b.Path)
	})
	return out
}
