package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A Warning is a problem that stops nothing.
type Warning struct {
	Source string // template; empty when unknown
	ID     kube.ID
	Text   string
}

// warnings are those of a plan, each once. They come from any goroutine.
type warnings struct {
	mu   sync.Mutex
	list []Warning
}

func (w *warnings) add(id kube.ID, source, format string, args ...any) {
	warning := Warning{Source: source, ID: id, Text: fmt.Sprintf(format, args...)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.list, warning) {
		w.list = append(w.list, warning)
	}
}

// withServerWarnings returns a context that turns the server's warnings about a target into warnings of
// the plan.
func (w *warnings) withServerWarnings(ctx context.Context, t *target) context.Context {
	return kube.WithWarnings(ctx, func(text string) bool {
		w.add(t.id, t.source, "%s", verify.Conceal(t.obj, text))
		return true
	})
}

// heard reports whether the plan already has a warning of the server.
func (w *warnings) heard(t *target, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.list, Warning{Source: t.source, ID: t.id, Text: verify.Conceal(t.obj, text)})
}

// sorted returns all warnings in a stable order, as the server's come in any order.
func (w *warnings) sorted() []Warning {
	slices.SortFunc(w.list, func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.ID.String(), b.ID.String()), strings.Compare(a.ID.Group, b.ID.Group), strings.Compare(a.Text, b.Text))
	})
	return w.list
}
