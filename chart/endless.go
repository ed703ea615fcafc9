package chart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template/parse"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/chart/internal/limits"
	"deployer/internal/lazyregexp"
)

// searchLimit is how long the endless template is looked for.
const searchLimit = 5 * time.Second

// endlessTemplate names the template that has exceeded a limit; empty if it isn't known. The engine doesn't tell, and what it is
// doing goes on: with memory running out there is no time to look.
func (c *Chart) endlessTemplate(ctx context.Context, limit limits.Limit, in Input, capabilities *chartutil.Capabilities) string {
	switch limit {
	case limits.Time:
		return c.slowTemplate(ctx, in, capabilities, searchLimit)
	case limits.Stack:
		return c.recursiveTemplate(in)
	}
	return ""
}

// slowTemplate renders one template after the other, offline, until the time is up, and names the one that has taken most of it.
// Nothing is looked for when ctx has ended.
func (c *Chart) slowTemplate(ctx context.Context, in Input, capabilities *chartutil.Capabilities, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	in.SkipSchema, in.Lookup, in.DNS, in.endless = true, Lookup{}, false, nil
	for n := 0; ; n++ {
		helm := copyChart(c.Helm)
		values, err := renderValues(ctx, helm, in, capabilities)
		name := makeOthersPartial(helm, n)
		if err != nil || name == "" {
			return ""
		}
		began := time.Now()
		_, err = executeTemplates(ctx, helm, values, in)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && time.Since(began) > limit/2:
			return name
		case ctx.Err() != nil, errors.As(err, new(*LimitError)):
			return "" // what has taken too much memory goes on
		}
	}
}

// makeOthersPartial gives all templates but the nth names that aren't rendered by themselves, and returns the name of that one.
// By their old names they can still be included.
func makeOthersPartial(helm *helmchart.Chart, n int) (name string) {
	for _, part := range allCharts(helm) {
		var templates []*helmchart.File
		for _, f := range part.Templates {
			if !strings.HasPrefix(path.Base(f.Name), "_") {
				full := path.Join(part.ChartFullPath(), f.Name)
				if n == 0 {
					name = full
				} else {
					partial := path.Join(path.Dir(f.Name), "_not-rendered-"+path.Base(f.Name))
					alias := fmt.Sprintf("{{ define %q }}{{ template %q . }}{{ end }}", full, path.Join(part.ChartFullPath(), partial))
					f = &helmchart.File{Name: partial, Data: slices.Concat(f.Data, []byte(alias))}
				}
				n--
			}
			templates = append(templates, f)
		}
		part.Templates = templates
	}
	return name
}

// includedName matches where a template includes another one, and the function tpl, which includes what values say.
var includedName = lazyregexp.New(`\b(?:template|include) "([^"]+)"|\btpl\b`)

// recursiveTemplate names the only template that includes something that includes itself.
func (c *Chart) recursiveTemplate(in Input) string {
	includes, files := map[string][]string{}, []string{}
	add := func(name, text string) {
		for _, m := range includedName().FindAllStringSubmatch(text, -1) {
			includes[name] = append(includes[name], m[1])
		}
	}
	for _, part := range allCharts(c.Helm) {
		for _, f := range part.Templates {
			trees, tree := map[string]*parse.Tree{}, parse.New("")
			tree.Mode = parse.SkipFuncCheck
			name := path.Join(part.ChartFullPath(), f.Name)
			if _, err := tree.Parse(string(f.Data), "", "", trees); err != nil {
				continue // the engine has parsed it; whatever it includes isn't known
			}
			for defined, tree := range trees {
				if defined == "" {
					defined = name
					files = append(files, name)
				}
				add(defined, tree.Root.String())
			}
		}
		add("", fmt.Sprint(part.Values))
	}
	add("", fmt.Sprint(in.Values))
	found := ""
	for _, file := range files {
		switch {
		case strings.HasPrefix(path.Base(file), "_") || !reachesItself(file, includes, map[string]bool{}):
		case found != "":
			return ""
		default:
			found = file
		}
	}
	return found
}

// reachesItself reports whether what a template includes includes itself. visiting has the templates that lead to it as true, and
// those that have been looked at as false.
func reachesItself(name string, includes map[string][]string, visiting map[string]bool) bool {
	if isAbove, seen := visiting[name]; seen {
		return isAbove
	}
	visiting[name] = true
	for _, next := range includes[name] {
		if reachesItself(next, includes, visiting) {
			return true
		}
	}
	visiting[name] = false
	return false
}

// A LimitError says that rendering a chart took too much time or memory, or that its output is too large. It has the
// Chart, the Template, which is empty if it isn't known, and What, such as "took more than 1m0s".
type LimitError = limits.Error

// outputLimit is how many bytes a chart may render to. A release record can't hold more.
const outputLimit = 128 << 20

// renderWithinLimits calls work, which renders a chart, and returns an error when a limit is exceeded.
func renderWithinLimits(ctx context.Context, helm *helmchart.Chart, in Input, work func() (map[string]string, error)) (map[string]string, error) {
	var files map[string]string
	err := limits.Run(ctx, helm.Name(), in.endless, func() (err error) {
		files, err = work()
		return err
	})
	if err != nil {
		return nil, err // and work may still be writing files
	}
	return files, checkOutputSize(helm, files)
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

// TemplateError says that a template can't be evaluated.
type TemplateError struct {
	Chart  string
	At     string   // web/templates/_helpers.tpl:5:3, where it went wrong; empty when the engine doesn't say
	Kind   string   // "parse error" or "execution error" where Helm says so, else empty
	Expr   string   // the expression there; may be empty
	Reason string   // what went wrong
	Via    []string // places that led to At, outermost first
	Err    error    // the error of Helm's engine
}

func (e *TemplateError) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "rendering chart %s: ", e.Chart)
	switch {
	case e.Kind != "":
		fmt.Fprintf(&out, "%s at (%s): ", e.Kind, e.At) // Helm's words
	case e.At != "":
		out.WriteString(e.At + ": ")
	}
	if e.Expr != "" {
		fmt.Fprintf(&out, "in <%s>: ", e.Expr)
	}
	out.WriteString(e.Reason)
	if len(e.Via) > 0 {
		fmt.Fprintf(&out, " (from %s)", strings.Join(e.Via, ", "))
	}
	return out.String()
}

func (e *TemplateError) Unwrap() error { return e.Err }

var (
	// One link of the chain that text/template writes.
	executingLink = lazyregexp.New(`^(?:template: )?(\S+:\d+(?::\d+)?): executing "(?:[^"\\]|\\.)*" at <(.*?)>: `)
	callingLink   = lazyregexp.New(`^error calling (?:include|tpl): `)
	// Helm's way of telling parse errors and the words of required and fail.
	locatedError = lazyregexp.New(`^((?:parse|execution) error) at \((\S+?)\): (?s:(.*))$`)
	tplLink      = lazyregexp.New(`^(?s:error during tpl function execution for ".*?"): `)
)

// templateError finds the innermost position in the chain of an engine error, and the
// positions that led to it.
func templateError(helm *helmchart.Chart, err error) error {
	if errors.As(err, new(*LimitError)) || errors.Is(err, context.Canceled) {
		return err
	}
	e := &TemplateError{Chart: helm.Name(), Reason: err.Error(), Err: err}
	if m := locatedError().FindStringSubmatch(e.Reason); m != nil {
		e.Kind, e.At, e.Reason = m[1], m[2], m[3]
		return e
	}
	for {
		rest := tplLink().ReplaceAllString(callingLink().ReplaceAllString(e.Reason, ""), "")
		m := executingLink().FindStringSubmatch(rest)
		if m == nil {
			return e
		}
		if e.At != "" && !slices.Contains(e.Via, e.At) {
			e.Via = append(e.Via, e.At)
		}
		e.At, e.Expr, e.Reason = m[1], m[2], rest[len(m[0]):]
	}
}
