package chart

import (
	"context"
	"slices"
)

// keyMaking are template functions that take longer than all else in a chart: they search for
// prime numbers, or are slow on purpose.
var keyMaking = []string{
	"genPrivateKey", "genCA", "genSelfSignedCert", "genSignedCert", "genCAWithKey", "genSelfSignedCertWithKey", "genSignedCertWithKey",
	"bcrypt", "htpasswd",
}

// MakesKeys reports whether a template, value or file calls a function that makes keys or
// certificates, so that rendering may take seconds.
func (r *Rerenderer) MakesKeys() bool {
	return slices.ContainsFunc(keyMaking, func(name string) bool { return r.functions[name] })
}

// A rendering is under way in the background: RenderTwice has begun it.
type rendering struct {
	done chan struct{} // closed when the others are set
	out  *Rendered
	err  error
}

// RenderTwice renders the chart as Chart.Render does, and begins at the same time to render it again,
// for the first RenderAgain. With a post-renderer, it only renders: two runs of somebody's program
// might use the same files.
func (r *Rerenderer) RenderTwice(ctx context.Context) (*Rendered, error) {
	if len(r.in.PostRenderer) > 0 {
		return r.chart.Render(ctx, r.in)
	}
	in := r.in
	in.renderings = 2
	again, instead := &rendering{done: make(chan struct{})}, r.nextSubstitutes()
	background, cancel := context.WithCancel(ctx)
	go func() {
		defer close(again.done)
		defer cancel()
		again.out, again.err = r.renderWith(background, in, instead, true)
	}()
	out, err := r.chart.Render(ctx, in)
	if err != nil {
		cancel()
		return out, err
	}
	r.begun = again
	return out, nil
}

// takeBegun gives what RenderTwice has begun to render, once; nil when there is none or it failed. What
// failed beside another rendering is tried again alone.
func (r *Rerenderer) takeBegun(ctx context.Context) *Rendered {
	again := r.begun
	r.begun = nil
	if again == nil {
		return nil
	}
	select {
	case <-again.done:
	case <-ctx.Done():
		return nil
	}
	if again.err != nil {
		return nil
	}
	return again.out
}
