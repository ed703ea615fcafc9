// Package limits ends the evaluation of a chart that takes too much time or memory.
package limits

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// Helm's engine can't stop a template that runs without end. So a rendering runs in its own
// goroutine, which is abandoned when it exceeds a limit: the program then exits soon.
const (
	// renderLimit is how long a rendering may take. A chart of a thousand objects takes less
	// than a second.
	renderLimit = time.Minute

	// heapLimit and stackLimit are how much more memory the program may need while it
	// renders. Go ends a program whose stack needs 512 MiB.
	heapLimit  = 512 << 20
	stackLimit = 128 << 20

	// minHeap is what a rendering may need wherever it runs.
	minHeap = 96 << 20

	// limitCheckInterval is short, because a template can fill half a gigabyte in a quarter of a second, and Go then
	// may be unable to stop it until it has.
	limitCheckInterval = time.Millisecond
)

// A Limit is what a rendering may exceed.
type Limit int

// The limits.
const (
	Time   Limit = iota
	Stack        // it calls itself endlessly
	Memory       // what it has made takes too much
)

// An Error says that a rendering took too much.
type Error struct {
	Chart    string
	Template string // the one that was being evaluated, or values.schema.json; empty when it isn't known
	What     string // "took more than 1m0s"
}

func (e *Error) Error() string {
	if e.Template == "" {
		return fmt.Sprintf("rendering chart %s: it %s", e.Chart, e.What)
	}
	return fmt.Sprintf("rendering chart %s: %s %s", e.Chart, e.Template, e.What)
}

// Hint says what to look for.
func (e *Error) Hint() string {
	switch e.Template {
	case SchemaFile:
		return "look for references to references in the schema, or render without it: --skip-schema-validation"
	case "":
		return "look for an endless range, include or tpl in its templates"
	}
	return "look for an endless range, include or tpl in it, or in what it includes"
}

// SchemaFile is the name of a chart's schema, for Error.Template.
const SchemaFile = "values.schema.json"

// Run calls work, which evaluates a chart or its schema in Helm's library, and returns its error. When a limit is
// exceeded, or the deadline of ctx, it returns an *Error, and work continues: what it writes may be read only if there
// is no error. at then names the template; nil is for callers that don't know it.
func Run(ctx context.Context, chart string, at func(Limit) string, work func() error) error {
	done := make(chan error, 1)
	heap, stacks := memoryInUse()
	mostHeap, needsMore := heapAllowance(heap, ProcessMemory())
	go func() { done <- work() }()
	tooLong := time.After(renderLimit)
	ticker := time.NewTicker(limitCheckInterval)
	defer ticker.Stop()
	exceeded := func(limit Limit, what string) error {
		e := &Error{Chart: chart, What: what}
		if at != nil {
			e.Template = at(limit)
		}
		return e
	}
	for {
		select {
		case err := <-done:
			return err
		case <-tooLong:
			return exceeded(Time, fmt.Sprintf("took more than %s", renderLimit))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.Join(exceeded(Time, "didn't finish in time"), ctx.Err())
			}
			return ctx.Err()
		case <-ticker.C:
		}
		nowHeap, nowStacks := memoryInUse()
		switch {
		case nowStacks > stacks+stackLimit:
			return exceeded(Stack, "calls itself endlessly")
		case nowHeap > mostHeap:
			return exceeded(Memory, needsMore)
		}
	}
}

// heapAllowance is how many bytes of heap the program may use during a rendering, and what to say about more: heapLimit
// beside what is in use, but no more than half of what the program may have. The rest is for its stacks, and for a text
// that needs twice its size while it grows.
func heapAllowance(inUse uint64, limit int64) (most uint64, needsMore string) {
	own := inUse + heapLimit
	most = max(uint64(limit)/2, inUse+minHeap)
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
