package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/chart"
	"deployer/chart/generated"
	"deployer/internal/kube"
	"deployer/release"
)

// willRenderAgain reports whether keepGenerated will probably render the chart again, because the previous
// revision, base, has generated values. A first revision and one of another tool don't record them. After
// these it depends on whether the chart has made keys, because only then does another rendering take long.
// base may be nil.
func (d *Deployer) willRenderAgain(rerenderer *chart.Rerenderer, base *release.Record) bool {
	if base == nil || d.Settings.Generated == generated.Renew || !rerenderer.Nondeterministic() {
		return false
	}
	if base.Journal == nil || base.Version == 1 {
		return rerenderer.MakesKeys() && containsPEM(base)
	}
	return len(base.Journal.Generated) > 0
}

// containsPEM reports whether a release contains a private key or certificate, as text or in the data of a Secret.
func containsPEM(r *release.Record) bool {
	const begin, beginInBase64 = "-----BEGIN ", "LS0tLS1CRUdJTi"
	has := func(manifest string) bool {
		return strings.Contains(manifest, begin) || strings.Contains(manifest, beginInBase64)
	}
	return has(r.Manifest) || slices.ContainsFunc(r.Hooks, func(h *helmrelease.Hook) bool { return has(h.Manifest) })
}

// keptValues says what became of the generated values of a rendering.
type keptValues struct {
	values   []generated.Value
	rerender func(context.Context) ([]*chart.Rendered, error) // see RenderingDetails
	keysKept bool                                             // no certificate or private key was renewed
}

// renderAndKeep renders the chart and replaces newly generated values by those that earlier revisions have
// generated. base is the previous revision; it may be nil.
func (d *Deployer) renderAndKeep(ctx context.Context, source *chart.Chart, in chart.Input, base *release.Record, history *release.History) (*chart.Rendered, *keptValues, error) {
	rerenderer := source.NewRerenderer(in)
	if !d.willRenderAgain(rerenderer, base) {
		once := func(ctx context.Context) (*chart.Rendered, error) { return source.Render(ctx, in) }
		return d.keepGenerated(ctx, rerenderer, once, history)
	}
	if rerenderer.MakesCertificates() && !slices.ContainsFunc(recordedGenerated(base), mayRenewKey) {
		if rendered, kept, err := d.keepGenerated(ctx, rerenderer, rerenderer.RenderTwiceWithSharedPrimes, history); err == nil && kept.keysKept {
			return rendered, kept, nil
		}
		rerenderer = source.NewRerenderer(in)
	}
	return d.keepGenerated(ctx, rerenderer, rerenderer.RenderTwice, history)
}

// mayRenewKey reports whether a value was renewed and may contain a certificate or private key. Values in
// annotations of pods, which many charts generate to restart the pods, don't contain any.
func mayRenewKey(v generated.Value) bool { return !v.Kept() && !v.InPodAnnotation() }

// keepGenerated renders the chart and replaces newly generated values by those that earlier revisions have
// generated. If necessary, it renders the chart again and reads objects of failed
// revisions.
func (d *Deployer) keepGenerated(ctx context.Context, rerenderer *chart.Rerenderer, render func(context.Context) (*chart.Rendered, error), history *release.History) (*chart.Rendered, *keptValues, error) {
	rendered, err := render(ctx)
	if err != nil {
		d.hideManifest(rendered)
		return nil, nil, err
	}
	kept := &keptValues{rerender: rerenderer.RenderRepeatedly}
	if !rerenderer.Nondeterministic() || history.Latest() == nil {
		return rendered, kept, nil
	}
	records, err := history.RecordsWithPossibleObjects(ctx)
	if err != nil {
		return nil, nil, err
	}
	in := generated.Input{
		Namespace: d.Namespace, Policy: d.Settings.Generated, Rendered: generated.NewRevision(rendered.Manifest, rendered.Hooks), Now: time.Now(),
		Live: func(id kube.ID) (*unstructured.Unstructured, error) { return d.Cluster.Get(ctx, id) },
	}
	for _, r := range records {
		earlier := generated.NewRevision(r.Manifest, r.Hooks)
		earlier.Number, earlier.Successful = r.Version, r.Succeeded()
		in.Earlier = append(in.Earlier, earlier)
	}
	result, again, err := generated.Render(ctx, rerenderer, in)
	if err != nil && ctx.Err() == nil {
		// Templates may fail only when rendered again, such as with a later time.
		rendered.Warnings = append(rendered.Warnings, fmt.Sprintf("generated values are renewed, because rendering the chart again to find them failed: %v", err))
		return rendered, &keptValues{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(again) > 0 {
		kept.rerender = func(context.Context) ([]*chart.Rendered, error) { return again, nil }
	}
	kept.keysKept = !slices.ContainsFunc(result.Values, mayRenewKey)
	rendered.Manifest, rendered.Notes = result.Manifest, result.Replace(rendered.Notes)
	for i, text := range result.Hooks {
		rendered.Hooks[i].Manifest = text
	}
	kept.values, rendered.Warnings = result.Values, append(rendered.Warnings, result.Warnings...)
	return rendered, kept, nil
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

// withNamespace is an object's identity with the namespace of the release where the
// manifest doesn't name one.
func (o *Operation) withNamespace(id kube.ID) kube.ID {
	if id.Namespace == "" {
		id.Namespace = o.Namespace
	}
	return id
}

// GeneratedIn lists what is generated in an object.
func (o *Operation) GeneratedIn(id kube.ID) []generated.Value {
	return slices.DeleteFunc(slices.Clone(o.Rendered.Generated), func(v generated.Value) bool { return o.withNamespace(v.ID) != o.withNamespace(id) })
}

// recordedGenerated returns the generated values that a record lists.
func recordedGenerated(r *release.Record) []generated.Value {
	if r.Journal == nil {
		return nil
	}
	var out []generated.Value
	for key, paths := range r.Journal.Generated {
		id, ok := apply.ParseKey(key)
		for path, revision := range paths {
			if ok {
				out = append(out, generated.Value{ID: id, Path: path, Revision: revision})
			}
		}
	}
	slices.SortFunc(out, func(a, b generated.Value) int {
		return strings.Compare(a.ID.String()+" "+a.Path, b.ID.String()+" "+b.Path)
	})
	return out
}
