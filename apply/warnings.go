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

	staysTrue bool // until the cluster or the chart is changed, so that an inspection shows it too
}

// String gives "Kind/namespace/name: text (source)".
func (w Warning) String() string {
	text := w.Text
	if w.ID != (kube.ID{}) {
		text = w.ID.String() + ": " + text
	}
	if w.Source != "" {
		text += " (" + w.Source + ")"
	}
	return text
}

// warnings are those of a plan, each once. They come from any goroutine.
type warnings struct {
	mu   sync.Mutex
	list []Warning
	// report gets those that come when the plan is made; nil before, and when nobody wants them.
	report func(text string)
}

func (w *warnings) add(id kube.ID, source, format string, args ...any) {
	w.addWarning(Warning{Source: source, ID: id, Text: fmt.Sprintf(format, args...)})
}

func (w *warnings) addWarning(warning Warning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.list, warning) {
		return
	}
	w.list = append(w.list, warning)
	if w.report != nil {
		w.report(warning.String())
	}
}

// reportLater passes warnings that aren't known yet to report from now on: the plan has been
// made, or there is none.
func (w *warnings) reportLater(report func(text string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report = report
}

// withServerWarnings returns a context that turns the server's warnings about a target into warnings of
// the plan.
func (w *warnings) withServerWarnings(ctx context.Context, t *target) context.Context {
	return kube.WithWarnings(ctx, func(text string) bool {
		w.add(t.id, t.source, "%s", verify.Conceal(t.obj, text))
		return true
	})
}

// sorted returns the warnings so far in a stable order, as the server's come in any order.
func (w *warnings) sorted() []Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(slices.Values(w.list), func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.ID.String(), b.ID.String()), strings.Compare(a.ID.Group, b.ID.Group), strings.Compare(a.Text, b.Text))
	})
}
