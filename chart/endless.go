package chart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"text/template/parse"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/chart/internal/limits"
	"deployer/internal/lazyregexp"
)

// searchLimit is how long each template may take while the endless one is looked for.
const searchLimit = 2 * time.Second

// endlessTemplate names the template that has exceeded a limit; empty if it isn't known. The engine doesn't tell, and what it is
// doing goes on: with memory running out there is no time to look.
func (c *Chart) endlessTemplate(limit limits.Limit, in Input, capabilities *chartutil.Capabilities) string {
	switch limit {
	case limits.Time:
		return c.slowTemplate(in, capabilities)
	case limits.Stack:
		return c.recursiveTemplate(in)
	}
	return ""
}

// slowTemplate renders each template by itself.
func (c *Chart) slowTemplate(in Input, capabilities *chartutil.Capabilities) string {
	in.SkipSchema, in.endless = true, func(limits.Limit) string { return "" }
	for n := 0; ; n++ {
		helm := copyChart(c.Helm)
		ctx, cancel := context.WithTimeout(context.Background(), searchLimit)
		defer cancel()
		values, err := renderValues(ctx, helm, in, capabilities)
		name := makeOthersPartial(helm, n)
		if err != nil || name == "" {
			return ""
		}
		if _, err := executeTemplates(ctx, helm, values, in); errors.As(err, new(*LimitError)) {
			return name
		}
	}
}

// makeOthersPartial gives all templates but the nth names that aren't rendered by themselves, and returns the name of that one.
func makeOthersPartial(helm *helmchart.Chart, n int) (name string) {
	for _, part := range allCharts(helm) {
		var templates []*helmchart.File
		for _, f := range part.Templates {
			if !strings.HasPrefix(path.Base(f.Name), "_") {
				if n == 0 {
					name = path.Join(part.ChartFullPath(), f.Name)
				} else {
					f = &helmchart.File{Name: path.Join(path.Dir(f.Name), "_"+path.Base(f.Name)), Data: f.Data}
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
			add("", fmt.Sprint(part.Values))
		}
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
