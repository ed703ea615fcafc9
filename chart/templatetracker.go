package chart

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/internal/lazyregexp"
)

// Helm's engine doesn't say which template it is evaluating. So a mark is put at the start of
// each template: a lookup of a made-up kind, which calls lookupProvider. The mark prints
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
func (p *templateTracker) addMarks(root *helmchart.Chart) {
	for _, c := range allCharts(root) {
		c.Templates = rewriteFiles(c.Templates, func(t *helmchart.File) string {
			if strings.HasPrefix(path.Base(t.Name), "_") {
				return string(t.Data) // not evaluated by itself
			}
			p.names = append(p.names, c.ChartFullPath()+"/"+t.Name)
			return fmt.Sprintf(templateMark, len(p.names)-1) + string(t.Data)
		})
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
