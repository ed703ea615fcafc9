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
	if hear, ok := ctx.Value(hearing{}).(func(string) bool); ok && hear(text) {
		return
	}
	if w.warn != nil {
		w.warn(text)
	}
}

// hearing is the key of who hears the warnings of a context's requests.
type hearing struct{}

// WithWarnings returns a context for requests whose warnings are given to hear first,
// which says whether it has dealt with them. The others go to Options.Warn.
func WithWarnings(ctx context.Context, hear func(text string) bool) context.Context {
	return context.WithValue(ctx, hearing{}, hear)
}
