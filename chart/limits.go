package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
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
	Template string // the one that was being evaluated; empty when it isn't known
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
	return "look for an endless range, include or tpl in it, or in what it includes"
}

// renderWithinLimits calls work, which renders a chart, and returns an error when a limit is
// exceeded. work may continue after that. With several renderings under way at once, each may take what
// all of them may take together: they can't be told apart.
func renderWithinLimits(ctx context.Context, helm *helmchart.Chart, renderings int, at func() string, work func() (map[string]string, error)) (map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, renderLimit, &LimitError{What: fmt.Sprintf("took more than %s", renderLimit)})
	defer cancel()
	type outcome struct {
		files map[string]string
		err   error
	}
	done := make(chan outcome, 1)
	heap, stacks := memoryInUse()
	atOnce := uint64(max(renderings, 1))
	memory := heapAllowance(atOnce, heap, memoryLimit(os.DirFS("/")))
	go func() {
		files, err := work()
		done <- outcome{files, err}
	}()
	ticker := time.NewTicker(limitCheckInterval)
	defer ticker.Stop()
	exceeded := func(what string) error { return &LimitError{Chart: helm.Name(), Template: at(), What: what} }
	for {
		select {
		case o := <-done:
			if o.err != nil {
				return nil, o.err
			}
			return o.files, checkOutputSize(helm, o.files)
		case <-ctx.Done():
			if own := (*LimitError)(nil); errors.As(context.Cause(ctx), &own) {
				return nil, exceeded(own.What)
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, errors.Join(exceeded("didn't finish in time"), ctx.Err())
			}
			return nil, ctx.Err()
		case <-ticker.C:
		}
		nowHeap, nowStacks := memoryInUse()
		switch {
		case nowStacks > stacks+stackLimit*atOnce:
			return nil, exceeded("calls itself endlessly")
		case nowHeap > memory.most:
			return nil, exceeded(memory.exceeded)
		}
	}
}

// An allowance is how much memory the program may use while it renders.
type allowance struct {
	most     uint64 // bytes of its heap
	exceeded string // what to say about more
}

// heapAllowance is what several renderings at once may use, beside what is in use: heapLimit each, but no more
// than half of what the program may have. The rest is for its stacks, and for a text that needs twice its size
// while it grows.
func heapAllowance(renderings, inUse uint64, limit int64) allowance {
	own := inUse + heapLimit*renderings
	most := max(uint64(limit)/2, inUse+leastHeap)
	if most >= own {
		return allowance{own, fmt.Sprintf("needs more than %d MiB of memory", heapLimit>>20)}
	}
	return allowance{most, fmt.Sprintf("needs more than %d MiB of the %d MiB that this process may use", (most-inUse)>>20, limit>>20)}
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
