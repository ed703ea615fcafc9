package chart

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A Rerenderer renders a chart again with the same input to find values that change
// with each rendering.
type Rerenderer struct {
	chart          *Chart
	in             Input
	called         sets.Set[string] // functions that a template, value or file calls: of nondeterministic and hashInputs, and tpl
	hasShortRandom func() bool      // reports whether something random is so short that it may come out again

	begun               *rendering // by RenderTwice, for the first RenderAgain; nil when there is none
	begunWithHashInputs *rendering // the same for TakeHashInputs
	times               int        // it was rendered again

	// A rendering has shown that no function of fewResults is called.
	fewResultsUnused atomic.Bool
}

// NewRerenderer prepares repeated renderings. It reads nothing from the cluster. Lookups
// get the answers of the first rendering only if both share in.Lookup.Cache.
func (c *Chart) NewRerenderer(in Input) *Rerenderer {
	r := &Rerenderer{chart: c, in: in, called: sets.Set[string]{}}
	note := func(text string) string {
		return replaceCalls(text, true, nil, func(name string) {
			if nondeterministic[name] > 0 || hashInputs[name].name != "" || name == "tpl" {
				r.called.Insert(name)
			}
		})
	}
	eachChartText(c.Helm, func(text []byte) {
		if containsAny(text, "{{") { // most files are large and have no templates: they aren't copied
			note(string(text))
		}
	})
	replaceTexts(copyMap(c.Helm.Values), note)
	replaceTexts(copyMap(in.Values), note)
	r.hasShortRandom = sync.OnceValue(r.findShortRandom)
	return r
}

// Nondeterministic reports whether a template, value or file calls a function that makes a
// difference, or a post-renderer may. Otherwise the chart comes out the same each time.
func (r *Rerenderer) Nondeterministic() bool {
	return len(r.in.PostRenderer) > 0 || r.called.HasAny(slices.Collect(maps.Keys(nondeterministic))...)
}

// MakesHashes reports whether a template, value or file calls a hash function.
func (r *Rerenderer) MakesHashes() bool {
	return r.called.HasAny(slices.Collect(maps.Keys(hashInputs))...)
}

// MakesKeys reports whether one calls a function that makes keys or certificates, so that rendering may take seconds.
func (r *Rerenderer) MakesKeys() bool { return r.called.HasAny(keyMaking...) }

// MakesCertificates reports whether one calls a function that makes a certificate with a new key.
func (r *Rerenderer) MakesCertificates() bool { return r.called.HasAny(certificateFunctions...) }

// RendersNeeded is how many renderings show every difference. If byChance, further ones may show
// more: a choice among few possibilities may come out the same several times. The first RenderAgain may
// lower both.
func (r *Rerenderer) RendersNeeded() (renders int, byChance bool) {
	renders = min(1, len(r.in.PostRenderer))
	for name := range r.called {
		if n := nondeterministic[name]; n < fewResults || !r.fewResultsUnused.Load() {
			renders = max(renders, n)
		}
	}
	if r.called.HasAny(slices.Collect(maps.Keys(nondeterministic))...) && renders < fewResults && r.hasShortRandom() {
		renders = fewResults
	}
	return renders, renders >= fewResults
}

// findShortRandom reports whether something random in what may be evaluated is so short that it may come
// out again. Files, such as definitions, are evaluated only by tpl.
func (r *Rerenderer) findShortRandom() bool {
	short := false
	find := func(text []byte) { short = short || hasShortRandom(text) }
	if r.called.Has("tpl") {
		eachChartText(r.chart.Helm, find)
		return short
	}
	for _, c := range allCharts(r.chart.Helm) {
		for _, f := range c.Templates {
			find(f.Data)
		}
	}
	return short
}

// A rendering is under way in the background: RenderTwice has begun it.
type rendering struct {
	done chan struct{} // closed when out is set
	out  *Rendered     // nil when it failed, or wasn't needed
}

// RenderTwice renders the chart as Chart.Render does, and begins at the same time to render it again,
// for the first RenderAgain. If the chart makes keys, which the first rendering waits for, and hashes, it is then
// rendered with the inputs of these, for TakeHashInputs. With a post-renderer, it only renders: two runs of
// somebody's program might use the same files.
func (r *Rerenderer) RenderTwice(ctx context.Context) (*Rendered, error) {
	return r.renderTwice(ctx, false)
}

// RenderTwiceWithSharedPrimes is RenderTwice for callers that expect to replace all certificates by recorded ones. In the
// first rendering, all keys have the same prime numbers, which takes a fraction of the time. Such a key, and its
// certificate, must not be deployed.
func (r *Rerenderer) RenderTwiceWithSharedPrimes(ctx context.Context) (*Rendered, error) {
	return r.renderTwice(ctx, true)
}

func (r *Rerenderer) renderTwice(ctx context.Context, sharedPrimes bool) (*Rendered, error) {
	if len(r.in.PostRenderer) > 0 {
		return r.chart.Render(ctx, r.in)
	}
	in := r.in
	in.renderings = 2
	second, hashed, instead := &rendering{done: make(chan struct{})}, &rendering{done: make(chan struct{})}, r.nextSubstitutes()
	background, cancel := context.WithCancel(ctx)
	go func() {
		defer close(hashed.done)
		defer cancel()
		second.out, _ = r.renderWith(background, in, instead, true)
		close(second.done)
		if second.out != nil && r.MakesHashes() && r.MakesKeys() {
			hashed.out, _ = r.renderHashInputs(background, in)
		}
	}()
	first := in
	first.sharedPrimes = sharedPrimes
	out, err := r.chart.Render(ctx, first)
	if err != nil {
		cancel()
		return out, err
	}
	r.begun, r.begunWithHashInputs = second, hashed
	return out, nil
}

// take waits for what RenderTwice has begun to render; nil when there is none or it failed. What
// failed beside another rendering is tried again alone.
func (r *rendering) take(ctx context.Context) *Rendered {
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return r.out
	case <-ctx.Done():
		return nil
	}
}

// TakeHashInputs returns the rendering that RenderTwice has made as RenderWithHashInputs does; nil if there is none, or
// it was returned before.
func (r *Rerenderer) TakeHashInputs(ctx context.Context) *Rendered {
	begun := r.begunWithHashInputs
	r.begunWithHashInputs = nil
	return begun.take(ctx)
}

// RenderAgain renders the chart again, as another run would. Salted hashes are replaced by
// their input, see substitutes.
func (r *Rerenderer) RenderAgain(ctx context.Context) (*Rendered, error) {
	begun := r.begun
	r.begun = nil
	if out := begun.take(ctx); out != nil {
		return out, nil
	}
	first := r.times == 0
	return r.renderWith(ctx, r.in, r.nextSubstitutes(), first)
}

// renderWithOneKey renders the chart with substitutes, and with one new key for all certificates. If
// that fails, each has its own.
func (r *Rerenderer) renderWithOneKey(ctx context.Context, in Input, instead map[string]substitution) (*Rendered, error) {
	if r.MakesCertificates() {
		oneKey, err := certificatesOfOneKey()
		if err != nil {
			return nil, err
		}
		maps.Copy(oneKey, instead)
		if out, err := r.render(ctx, in, oneKey); err == nil {
			return out, nil
		}
	}
	return r.render(ctx, in, instead)
}

// renderWith renders the chart with substitutes. The first time, it tries it with functions
// of fewResults that fail: many charts have one in a branch that is never taken, and need no further
// renderings for it.
func (r *Rerenderer) renderWith(ctx context.Context, in Input, instead map[string]substitution, first bool) (*Rendered, error) {
	failing := maps.Clone(instead)
	for name := range r.called {
		if nondeterministic[name] == fewResults {
			failing[name] = substitution{name: `print (fail "few results")`}
		}
	}
	if first && !maps.Equal(failing, instead) {
		if out, err := r.renderWithOneKey(ctx, in, failing); err == nil {
			r.fewResultsUnused.Store(true)
			return out, nil
		}
	}
	return r.renderWithOneKey(ctx, in, instead)
}

// nextSubstitutes are the changes to the chart for the next time it is rendered again.
func (r *Rerenderer) nextSubstitutes() map[string]substitution {
	all := maps.Clone(substitutes)
	maps.Copy(all, reordered[r.times%len(reordered)])
	r.times++
	return all
}

// RenderWithHashInputs renders the chart with the input of hash functions in base64 in place
// of the hashes. Keys and certificates are random ones that take no time, because they are only
// searched for in these inputs. A chart that asks for more of them is rendered with real ones.
func (r *Rerenderer) RenderWithHashInputs(ctx context.Context) (*Rendered, error) {
	return r.renderHashInputs(ctx, r.in)
}

func (r *Rerenderer) renderHashInputs(ctx context.Context, in Input) (*Rendered, error) {
	if r.MakesKeys() {
		quick := maps.Clone(hashInputs)
		maps.Copy(quick, quickKeys)
		if out, err := r.render(ctx, in, quick); err == nil {
			return out, nil
		}
	}
	return r.render(ctx, in, hashInputs)
}

func (r *Rerenderer) render(ctx context.Context, in Input, instead map[string]substitution) (*Rendered, error) {
	in.WhileRendering, in.SkipSchema = nil, true // the first rendering does both
	changed := &Chart{Helm: copyChart(r.chart.Helm)}
	change := func(text string) string { return replaceCalls(text, true, instead, func(string) {}) }
	rewriteTexts(changed.Helm, r.called.Has("tpl"), change)
	if r.called.Has("tpl") {
		in.Values = replaceTexts(copyMap(in.Values), change).(map[string]any)
	}
	out, err := changed.Render(ctx, in)
	if err != nil {
		return nil, err
	}
	// Text that isn't evaluated but looks like a template, such as a dashboard, is restored.
	back := func(text string) string { return restoreCalls(text, instead) }
	out.Manifest, out.Notes = back(out.Manifest), back(out.Notes)
	for _, h := range out.Hooks {
		h.Manifest = back(h.Manifest)
	}
	return out, nil
}

// RenderRepeatedly renders the chart as often as needed to see which values differ between
// renderings with the same input. It returns nothing when no template, value or file calls a
// nondeterministic function. It reads the cluster as Render does.
func (r *Rerenderer) RenderRepeatedly(ctx context.Context) ([]*Rendered, error) {
	var out []*Rendered
	for {
		if needed, _ := r.RendersNeeded(); len(out) >= needed {
			return out, nil
		}
		rendered, err := r.RenderAgain(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, rendered)
	}
}
