package kube

import "context"

// warnings hands the API server's Warning headers on.
// https://kubernetes.io/blog/2020/09/03/warnings/
type warnings struct{ warn func(string) }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. The
// context is that of the request.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	if handle, ok := ctx.Value(warningHandlerKey{}).(func(string) bool); ok && handle(text) {
		return
	}
	if w.warn != nil {
		w.warn(text)
	}
}

// warningHandlerKey is the context key of the warning handler.
type warningHandlerKey struct{}

// WithWarnings returns a context whose requests pass their warnings to handle first. Warnings
// for which it returns false go to Options.Warn.
func WithWarnings(ctx context.Context, handle func(text string) bool) context.Context {
	return context.WithValue(ctx, warningHandlerKey{}, handle)
}
