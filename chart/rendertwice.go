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

// MakesCertificates reports whether a template, value or file calls a function that makes a certificate with a new key.
func (r *Rerenderer) MakesCertificates() bool {
	return slices.ContainsFunc(certificateFunctions, func(name string) bool { return r.functions[name] })
}

// A rendering is under way in the background: RenderTwice has begun it.
type rendering struct {
	done chan struct{} // closed when the others are set
	out  *Rendered     // nil when it failed, or wasn't needed
	err  error
}

// RenderTwice renders the chart as Chart.Render does, and begins at the same time to render it again,
// for the first RenderAgain. If the chart makes keys, which the first rendering waits for, and hashes, it is then
// rendered with the inputs of these, for TakeHashInputs. With a post-renderer, it only renders: two runs of
// somebody's program might use the same files.
func (r *Rerenderer) RenderTwice(ctx context.Context) (*Rendered, error) {
	return r.renderTwice(ctx, false)
}

// RenderTwiceWithSharedPrimes is RenderTwice for a caller who expects to replace all certificates by recorded ones: in the
// first rendering, their keys share their prime numbers, which takes a fraction of the time. Such a certificate or
// key must not be deployed.
func (r *Rerenderer) RenderTwiceWithSharedPrimes(ctx context.Context) (*Rendered, error) {
	return r.renderTwice(ctx, true)
}

func (r *Rerenderer) renderTwice(ctx context.Context, sharedPrimes bool) (*Rendered, error) {
	if len(r.in.PostRenderer) > 0 {
		return r.chart.Render(ctx, r.in)
	}
	in := r.in
	in.renderings = 2
	again, hashed, instead := &rendering{done: make(chan struct{})}, &rendering{done: make(chan struct{})}, r.nextSubstitutes()
	background, cancel := context.WithCancel(ctx)
	go func() {
		defer close(hashed.done)
		defer cancel()
		again.out, again.err = r.renderWith(background, in, instead, true)
		close(again.done)
		if again.err == nil && r.HashesFound() && r.MakesKeys() {
			hashed.out, hashed.err = r.renderHashInputs(background, in)
		}
	}()
	first := in
	first.sharedPrimes = sharedPrimes
	out, err := r.chart.Render(ctx, first)
	if err != nil {
		cancel()
		return out, err
	}
	r.begun, r.begunWithHashInputs = again, hashed
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
	case <-ctx.Done():
		return nil
	}
	if r.err != nil {
		return nil
	}
	return r.out
}

// TakeHashInputs gives what RenderTwice has rendered as RenderWithHashInputs does, once; nil when there is none.
func (r *Rerenderer) TakeHashInputs(ctx context.Context) *Rendered {
	begun := r.begunWithHashInputs
	r.begunWithHashInputs = nil
	return begun.take(ctx)
}
