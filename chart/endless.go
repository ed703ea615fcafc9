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
