package generated

import (
	"context"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/annotation"
)

// Bounds of how often a chart is rendered to find what is generated.
const (
	maxRendersUnsure = 8  // while recorded values aren't found by their surroundings
	maxRendersChance = 16 // while values chosen from few possibilities may be equal by chance
	largeManifest    = 256 << 10
)

// Render renders a chart again as often as needed, and decides. in has all fields but
// Rerendered and WithHashInputs. The second result has the repeated renderings; it is empty
// when nothing can be generated. Render reads the cluster as chart.Chart.Render does.
func Render(ctx context.Context, rerenderer *chart.Rerenderer, in Input) (*Result, []*chart.Rendered, error) {
	unchanged := &Result{Manifest: in.Rendered.Manifest, Hooks: in.Rendered.Hooks}
	if !rerenderer.Nondeterministic() || in.renewsEverything() || !in.hasNewDocument(unchanged) {
		return unchanged, nil, nil
	}
	in.MakesHashes = rerenderer.MakesHashes()
	var all []*chart.Rendered
	var result *Result
	for {
		rerendered, err := rerenderer.RenderAgain(ctx)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, rerendered)
		in.Rerendered = append(in.Rerendered, NewRevision(rerendered.Manifest, rerendered.Hooks))
		if hashed := rerenderer.TakeHashInputs(ctx); hashed != nil {
			in.WithHashInputs = new(NewRevision(hashed.Manifest, hashed.Hooks))
		}
		result = Decide(in)
		more := in.hasNewDocument(result) && len(all) < in.maxRenders(rerenderer)
		if !more && (!result.Unsure || len(all) >= maxRendersUnsure) {
			break
		}
	}
	if result.WantsHashInputs {
		hashed, err := rerenderer.RenderWithHashInputs(ctx)
		if err != nil {
			return nil, nil, err
		}
		in.WithHashInputs = new(NewRevision(hashed.Manifest, hashed.Hooks))
		result = Decide(in)
	}
	return result, all, nil
}

// renewsEverything reports whether all values are renewed, so that no decision is needed.
func (in Input) renewsEverything() bool {
	return in.Policy == Renew && !slices.ContainsFunc(documentTexts(in.Rendered), func(text string) bool { return strings.Contains(text, annotation.Generated.Name) })
}

// maxRenders is how often the chart is rendered again while it has a new document.
func (in Input) maxRenders(rerenderer *chart.Rerenderer) int {
	needed, byChance := rerenderer.RendersNeeded()
	switch {
	case !byChance:
		return needed
	case len(in.Rendered.Manifest) > largeManifest:
		return maxRendersUnsure
	}
	return maxRendersChance
}

// NewRevision returns a revision with the texts of a manifest and hooks. The caller sets its
// Number and Successful, if it is an earlier one.
func NewRevision(manifest string, hooks []*helmrelease.Hook) Revision {
	out := Revision{Manifest: manifest}
	for _, hook := range hooks {
		out.Hooks = append(out.Hooks, hook.Manifest)
	}
	return out
}

// hasNewDocument reports whether a result has a document that not every earlier revision has.
// One that some of them have may be there by chance.
func (in Input) hasNewDocument(r *Result) bool {
	counts := countDocuments(in.Earlier)
	return slices.ContainsFunc(documentTexts(Revision{Manifest: r.Manifest, Hooks: r.Hooks}), func(text string) bool { return counts[text] < len(in.Earlier) })
}
