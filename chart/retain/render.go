package retain

import (
	"context"
	"slices"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/annotation"
)

// A Renderer renders a chart again with the same input.
type Renderer struct {
	Calls  *chart.TemplateCalls
	Begun  time.Time // when the chart was rendered first
	Render func(context.Context) (*chart.Rendered, error)
}

// Where results are chosen from few, so that the same one may come out again, the chart is rendered again mostRenders times as long
// as it differs from what is recorded; moreRenders times if its input has changed, because then it differs anyway, or if it makes
// keys, which takes long. So is one that uses the time, or where a part of a word is the same in both renderings: of random texts,
// one pair in a hundred thousand begins or ends alike. Everything else is rendered again once.
const (
	mostRenders = 16
	moreRenders = 2
)

// Decide renders the chart again if it may have generated something, and decides what is kept. in has all fields but those of
// Input that a Renderer knows. The second result has the repeated renderings; it is empty when nothing can be generated.
func (r Renderer) Decide(ctx context.Context, in Input) (*Result, []*chart.Rendered, error) {
	result := &Result{Manifest: in.Rendered.Manifest, Hooks: in.Rendered.Hooks, Unexplained: true}
	if !r.Calls.MayDiffer() || in.renewsEverything() || !in.hasNewDocument() {
		return result, nil, nil
	}
	in.Checksum, in.Encrypts = r.Calls.HashOfContent, r.Calls.Encrypt()
	most := 1
	switch {
	case r.Calls.MayComeOutAgain() && in.SameInput && !r.Calls.MakeKeys():
		most = mostRenders
	case r.Calls.MayComeOutAgain(), r.Calls.UseTime():
		most = moreRenders
	}
	var all []*chart.Rendered
	for result.Unexplained && (len(all) < most || result.cutsWord && len(all) < moreRenders) {
		again, err := r.again(ctx, len(all))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, again)
		in.Rerendered = append(in.Rerendered, NewRevision(again.Manifest, again.Hooks))
		result = Decide(in)
	}
	return result, all, nil
}

// again renders the chart. The second time, a whole second has passed: times are often cut or rounded to seconds.
func (r Renderer) again(ctx context.Context, times int) (*chart.Rendered, error) {
	if times == 1 && r.Calls.UseTime() {
		select {
		case <-time.After(time.Until(r.Begun.Add(time.Second))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.Render(ctx)
}

// renewsEverything reports whether all values are renewed, so that no decision is needed.
func (in Input) renewsEverything() bool {
	return in.Policy == Renew && !slices.ContainsFunc(documentTexts(in.Rendered), func(text string) bool { return strings.Contains(text, annotation.Generated.Name) })
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

// hasNewDocument reports whether a document of the rendering isn't in all earlier revisions. One that is in some may be there
// by chance.
func (in Input) hasNewDocument() bool {
	counts := countDocuments(in.Earlier)
	return slices.ContainsFunc(documentTexts(in.Rendered), func(text string) bool { return counts[text] < len(in.Earlier) })
}
