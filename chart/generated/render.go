package generated

import (
	"context"
	"slices"
	"strings"

	"deployer/chart"
	"deployer/internal/annotation"
)

// Bounds of how often a chart is rendered to find what is generated.
const (
	timesUnsure  = 6  // until what is around a value fits what is recorded
	timesChances = 16 // while what comes out of few possibilities may agree by chance
	largeChart   = 256 << 10
)

// Render renders a chart again as often as is needed, and decides. in has
// everything but Again and Hashed. The second result is what came out; it is empty
// when nothing can be generated. It reads what rendering reads.
func Render(ctx context.Context, repetition *chart.Nondeterminism, in Input) (*Result, []*chart.Rendered, error) {
	unchanged := &Result{Manifest: in.Rendered.Manifest, Hooks: in.Rendered.Hooks}
	if !repetition.Found() || in.keepsNothing() || !in.differs(unchanged) {
		return unchanged, nil, nil
	}
	var all []*chart.Rendered
	var result *Result
	for {
		again, err := repetition.RenderAgain(ctx)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, again)
		in.Again = append(in.Again, revisionOf(again))
		result = Decide(in)
		chance := !repetition.SeenInOneRender() && in.differs(result) && len(all) < in.chances()
		if !chance && (!result.Unsure || len(all) >= timesUnsure) {
			break
		}
	}
	if result.WantsHashed {
		hashed, err := repetition.RenderWithHashInputs(ctx)
		if err != nil {
			return nil, nil, err
		}
		r := revisionOf(hashed)
		in.Hashed = &r
		result = Decide(in)
	}
	return result, all, nil
}

// keepsNothing tells whether everything is renewed, so that nothing need be known.
func (in Input) keepsNothing() bool {
	return in.Policy == Renew && !slices.ContainsFunc(textsOf(in.Rendered), func(text string) bool { return strings.Contains(text, annotation.Generated.Name) })
}

func (in Input) chances() int {
	if len(in.Rendered.Manifest) > largeChart {
		return timesUnsure
	}
	return timesChances
}

func revisionOf(r *chart.Rendered) Revision {
	out := Revision{Manifest: r.Manifest}
	for _, hook := range r.Hooks {
		out.Hooks = append(out.Hooks, hook.Manifest)
	}
	return out
}

// differs tells whether a result has a document that no earlier revision has.
func (in Input) differs(r *Result) bool {
	known := map[string]bool{}
	for _, past := range in.Past {
		for _, text := range textsOf(past) {
			known[text] = true
		}
	}
	return slices.ContainsFunc(textsOf(Revision{Manifest: r.Manifest, Hooks: r.Hooks}), func(text string) bool { return !known[text] })
}
