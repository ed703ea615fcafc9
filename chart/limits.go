package chart

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/program"
)

// Helm's engine can't stop a template that runs without end. So a rendering runs in its own
// goroutine, which is abandoned when it exceeds a limit: the program then exits soon.
const (
	// renderLimit is how long a rendering may take. A chart of a thousand objects takes less
	// than a second.
	renderLimit = time.Minute

	// heapLimit and stackLimit are how much more memory the program may need while it
	// renders. Go ends a program whose stack needs 512 MiB.
	heapLimit  = 1 << 30
	stackLimit = 128 << 20

	// leastHeap is what a rendering may need wherever it runs.
	leastHeap = 96 << 20

	// outputLimit is how many bytes a chart may render to. A release record can't hold more.
	outputLimit = 128 << 20

	// limitCheckInterval is short, because a template can fill a gigabyte in half a second, and Go then
	// may be unable to stop it until it has.
	limitCheckInterval = time.Millisecond
)

// A LimitError says that a rendering took too much.
type LimitError struct {
	Chart    string
	Template string // the one that was being evaluated, or values.schema.json; empty when it isn't known
	What     string // "took more than 1m0s"
}

func (e *LimitError) Error() string {
	if e.Template == "" {
		return fmt.Sprintf("rendering chart %s: it %s", e.Chart, e.What)
	}
	return fmt.Sprintf("rendering chart %s: %s %s", e.Chart, e.Template, e.What)
}

// Hint says what to look for.
func (e *LimitError) Hint() string {
	switch e.Template {
	case schemaFile:
		return "look for references to references in the schema, or render without it: --skip-schema-validation"
	case "":
		return "look for an endless range, include or tpl in its templates; " + program.Name + " template says in which one it is"
	}
	return "look for an endless range, include or tpl in it, or in what it includes"
}

// renderWithinLimits calls work, which renders a chart, and returns an error when a limit is exceeded.
func renderWithinLimits(ctx context.Context, helm *helmchart.Chart, renderings int, at func() string, work func() (map[string]string, error)) (map[string]string, error) {
	var files map[string]string
	err := withinLimits(ctx, helm.Name(), renderings, at, func() (err error) {
		files, err = work()
		return err
	})
	if err != nil {
		return nil, err // and work may still be writing files
	}
	return files, checkOutputSize(helm, files)
}

// WithinLimits calls work, which evaluates a chart or its schema in the library, and returns its error, or a *LimitError when
// it takes too much. work may continue after that: what it writes may be read only without an error.
func WithinLimits(ctx context.Context, name string, work func() error) error {
	return withinLimits(ctx, name, 1, func() string { return "" }, work)
}

// schemaFile is the name of a chart's schema.
const schemaFile = "values.schema.json"

// withinLimits calls work, and returns an error when a limit is exceeded; at says what is under way then. work may
// continue after that. With several renderings under way at once, each may take what all of them may take together:
// they can't be told apart.
func withinLimits(ctx context.Context, name string, renderings int, at func() string, work func() error) error {
	done := make(chan error, 1)
	heap, stacks := memoryInUse()
	atOnce := uint64(max(renderings, 1))
	mostHeap, needsMore := heapAllowance(atOnce, heap, processMemoryLimit())
	go func() { done <- work() }()
	tooLong := time.After(renderLimit)
	ticker := time.NewTicker(limitCheckInterval)
	defer ticker.Stop()
	exceeded := func(what string) error { return &LimitError{Chart: name, Template: at(), What: what} }
	for {
		select {
		case err := <-done:
			return err
		case <-tooLong:
			return exceeded(fmt.Sprintf("took more than %s", renderLimit))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.Join(exceeded("didn't finish in time"), ctx.Err())
			}
			return ctx.Err()
		case <-ticker.C:
		}
		nowHeap, nowStacks := memoryInUse()
		switch {
		case nowStacks > stacks+stackLimit*atOnce:
			return exceeded("calls itself endlessly")
		case nowHeap > mostHeap:
			return exceeded(needsMore)
		}
	}
}

// heapAllowance is how many bytes of heap the program may use while several renderings are under way at once, and what
// to say about more: heapLimit each beside what is in use, but no more than half of what the program may have. The rest
// is for its stacks, and for a text that needs twice its size while it grows.
func heapAllowance(renderings, inUse uint64, limit int64) (most uint64, needsMore string) {
	own := inUse + heapLimit*renderings
	most = max(uint64(limit)/2, inUse+leastHeap)
	if most >= own {
		return own, fmt.Sprintf("needs more than %d MiB of memory", heapLimit>>20)
	}
	return most, fmt.Sprintf("needs more than %d MiB of the %d MiB that this process may use", (most-inUse)>>20, limit>>20)
}

// memoryInUse is what the program uses for data and for stacks.
func memoryInUse() (heap, stacks uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// checkOutputSize refuses more output than any release can have.
func checkOutputSize(helm *helmchart.Chart, files map[string]string) error {
	total, largest := 0, ""
	for name, text := range files {
		total += len(text)
		if len(text) > len(files[largest]) || len(text) == len(files[largest]) && name < largest {
			largest = name
		}
	}
	if total <= outputLimit {
		return nil
	}
	return &LimitError{Chart: helm.Name(), Template: largest,
		What: fmt.Sprintf("renders to %d MiB; the limit of all templates together is %d MiB", len(files[largest])>>20, outputLimit>>20)}
}
