package chart

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Templates are programs, and Helm's engine has no way to stop one. So it runs in a
// goroutine of its own that is watched, and left behind when it takes too much: the
// program ends then, and what it was doing with it.
const (
	// renderLimit is how long a rendering may take, in which a chart of a thousand
	// objects takes less than a second.
	renderLimit = time.Minute

	// heapLimit and stackLimit are how much more memory the program may need while it
	// renders. Go ends a program whose stack needs 512 MiB.
	heapLimit  = 1 << 30
	stackLimit = 128 << 20

	// outputLimit is how much a chart may render to: what its record holds of it.
	outputLimit = 128 << 20

	limitCheckInterval = 5 * time.Millisecond
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
	return "does a range, an include or a tpl in it, or in what it includes, come to no end?"
}

// renderWithinLimits runs what renders helm within the limits. The work may go on when it has
// returned with an error.
func renderWithinLimits(ctx context.Context, helm *helmchart.Chart, at func() string, work func() (map[string]string, error)) (map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, renderLimit, &LimitError{What: fmt.Sprintf("took more than %s", renderLimit)})
	defer cancel()
	type outcome struct {
		files map[string]string
		err   error
	}
	done := make(chan outcome, 1)
	heap, stacks := memoryInUse()
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
				return nil, errors.Join(exceeded("didn't come to its end in time"), ctx.Err())
			}
			return nil, ctx.Err()
		case <-ticker.C:
		}
		nowHeap, nowStacks := memoryInUse()
		switch {
		case nowStacks > stacks+stackLimit:
			return nil, exceeded("calls itself without end")
		case nowHeap > heap+heapLimit:
			return nil, exceeded(fmt.Sprintf("needs more than %d MiB of memory", heapLimit>>20))
		}
	}
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
		What: fmt.Sprintf("renders to %d MiB; all templates together may to %d MiB", len(files[largest])>>20, outputLimit>>20)}
}

// Which template is being evaluated Helm's engine doesn't tell. So each begins with
// a lookup of a kind that isn't one, which comes to our provider. It assigns to a
// variable and prints nothing; only columns of the first line are moved.
const (
	templateMarkKind = "deployer.io/template"
	templateMark     = `{{$_ := lookup "" "` + templateMarkKind + `" "" "%d"}}`
)

// templateTracker knows the templates by number, and which began last.
type templateTracker struct {
	names []string
	last  atomic.Int64
}

// addMarks puts the marks into the templates of a chart, a copy of the caller's own, and
// of its subcharts. Their files are copied.
func (p *templateTracker) addMarks(c *helmchart.Chart) {
	templates := make([]*helmchart.File, 0, len(c.Templates))
	for _, t := range c.Templates {
		if t == nil || strings.HasPrefix(t.Name[strings.LastIndex(t.Name, "/")+1:], "_") {
			templates = append(templates, t) // not evaluated by itself
			continue
		}
		marked := *t
		marked.Data = append(fmt.Appendf(nil, templateMark, len(p.names)), t.Data...)
		p.names = append(p.names, c.ChartFullPath()+"/"+t.Name)
		templates = append(templates, &marked)
	}
	c.Templates = templates
	for _, sub := range c.Dependencies() {
		p.addMarks(sub)
	}
}

// current is the template that began last; empty before the first.
func (p *templateTracker) current() string {
	if n := int(p.last.Load()) - 1; n >= 0 && n < len(p.names) {
		return p.names[n]
	}
	return ""
}

// recordStart takes note of a mark.
func (p *templateTracker) recordStart(number string) {
	if n, err := strconv.Atoi(number); err == nil {
		p.last.Store(int64(n) + 1)
	}
}

// firstLinePosition finds places in the first line of a file, in an error of the engine.
var firstLinePosition = regexp.MustCompile(`([^\s()<>"]+):1:(\d+)`)

// restoreColumns gives an error of the engine with the columns as they are in the chart.
func (p *templateTracker) restoreColumns(err error) error {
	if err == nil {
		return nil
	}
	text := firstLinePosition.ReplaceAllStringFunc(err.Error(), func(place string) string {
		m := firstLinePosition.FindStringSubmatch(place)
		column, _ := strconv.Atoi(m[2]) // only digits
		for n, name := range p.names {
			if moved := len(fmt.Sprintf(templateMark, n)); name == m[1] && column >= moved {
				return fmt.Sprintf("%s:1:%d", name, column-moved)
			}
		}
		return place
	})
	if text == err.Error() {
		return err
	}
	return &relocatedError{text: text, err: err}
}

// relocatedError is an error of the engine with other columns.
type relocatedError struct {
	text string
	err  error
}

func (e *relocatedError) Error() string { return e.text }
func (e *relocatedError) Unwrap() error { return e.err }

// A watched provider takes note of the marks, and asks the real one about all else.
type trackingProvider struct {
	tracker *templateTracker
	offline bool // lookup finds nothing
	*lookupProvider
}

// GetClientFor implements engine.ClientProvider.
func (w trackingProvider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	switch {
	case kind == templateMarkKind && apiVersion == "":
		return &trackingClient{&lookupClient{ctx: w.ctx, kind: kind}, w.tracker}, false, nil
	case w.offline:
		return &lookupClient{ctx: w.ctx, kind: kind}, false, nil
	}
	return w.lookupProvider.GetClientFor(apiVersion, kind)
}

// trackingClient is the client of the marks.
type trackingClient struct {
	*lookupClient
	tracker *templateTracker
}

// Get takes note of the template with the number name, and finds nothing.
func (p *trackingClient) Get(ctx context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	p.tracker.recordStart(name)
	return p.lookupClient.Get(ctx, name, opts, sub...)
}
