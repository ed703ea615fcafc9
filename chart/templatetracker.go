package chart

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	helmchart "helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"deployer/internal/lazyregexp"
)

// Helm's engine doesn't say which template it is evaluating. So a mark is put at the start of
// each template: a lookup of a made-up kind, which calls our provider. The mark prints
// nothing, but moves the columns of the first line.
const (
	templateMarkKind = "deployer.io/template"
	templateMark     = `{{$_ := lookup "" "` + templateMarkKind + `" "" "%d"}}`
)

// A templateTracker has the templates by number, and the one that began last.
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
var firstLinePosition = lazyregexp.New(`([^\s()<>"]+):1:(\d+)`)

// restoreColumns corrects the columns in an error of the engine to those in the chart.
func (p *templateTracker) restoreColumns(err error) error {
	if err == nil {
		return nil
	}
	text := firstLinePosition().ReplaceAllStringFunc(err.Error(), func(place string) string {
		m := firstLinePosition().FindStringSubmatch(place)
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

// A trackingProvider records marks and passes other lookups to the lookupProvider.
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

// Get records the start of the template with the number name, and finds nothing.
func (p *trackingClient) Get(ctx context.Context, name string, opts metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	p.tracker.recordStart(name)
	return p.lookupClient.Get(ctx, name, opts, sub...)
}
