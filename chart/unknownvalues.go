package chart

import (
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/internal/lazyregexp"
)

// UnknownValues are the paths of given values that no template of the chart reads, and that the chart has no defaults
// for: typing errors, mostly. all are the values that may hold templates which read others. Where a template hands all
// values on, nobody can tell, and there are none.
func UnknownValues(c *helmchart.Chart, given, all map[string]any) []string {
	if len(given) == 0 {
		return nil
	}
	k := knownValues{chart: c, reads: readsOf(c)}
	k.reads.addTextsIn(all)
	if k.reads.everything {
		return nil
	}
	return k.unknown(nil, given, c.Values)
}

type knownValues struct {
	chart *helmchart.Chart
	reads valueReads
}

func (k knownValues) unknown(names []string, given, defaults map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		at := append(slices.Clone(names), key)
		below, isMap := given[key].(map[string]any)
		stated, hasDefault := defaults[key]
		within, _ := stated.(map[string]any)
		whole, part := k.reads.of(at)
		sub := k.dependency(at)
		switch {
		case whole || len(names) == 0 && key == "global":
		case sub != nil && isMap:
			here := k.unknown(at, below, within) // of what the chart around it doesn't know
			for _, inner := range UnknownValues(sub, below, below) {
				if slices.Contains(here, key+"."+inner) {
					out = append(out, key+"."+inner)
				}
			}
		case isMap && (len(within) > 0 || part && !hasDefault):
			out = append(out, k.unknown(at, below, within)...)
		case !hasDefault && !part && !k.isDeclared(at):
			out = append(out, strings.Join(at, "."))
		}
	}
	return out
}

// dependency is the chart that gets the values of a key; nil without one.
func (k knownValues) dependency(names []string) *helmchart.Chart {
	if len(names) > 1 {
		return nil
	}
	name := names[0]
	for _, d := range k.chart.Metadata.Dependencies {
		if d.Alias == name {
			name = d.Name
		}
	}
	for _, sub := range k.chart.Dependencies() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// isDeclared reports whether Chart.yaml knows a value: as that of a chart which isn't downloaded, as a tag or in a condition.
func (k knownValues) isDeclared(names []string) bool {
	for _, d := range k.chart.Metadata.Dependencies {
		missing := (names[0] == d.Name || names[0] == d.Alias) && k.dependency(names[:1]) == nil
		if missing || names[0] == "tags" && len(d.Tags) > 0 ||
			slices.Contains(strings.Split(strings.ReplaceAll(d.Condition, " ", ""), ","), strings.Join(names, ".")) {
			return true
		}
	}
	return false
}

// valueReads are the values that templates read.
type valueReads struct {
	paths      [][]string
	everything bool // a template hands all values on
}

// of reports whether a value is read as a whole, with all below it, or something below it.
func (r valueReads) of(names []string) (whole, part bool) {
	for _, read := range r.paths {
		n := min(len(read), len(names))
		if slices.Equal(read[:n], names[:n]) {
			whole, part = whole || len(read) <= len(names), true
		}
	}
	return whole, part
}

var (
	handedOn     = lazyregexp.New(`"Values" \.Values([^.])`) // to a template that reads .Values again
	fieldsBehind = lazyregexp.New(`^(?:\.[A-Za-z_]\w*)+`)
	namingCall   = lazyregexp.New(`\b(?:index|get|hasKey) +[$\w]*\.$`)
	nameBehind   = lazyregexp.New("^ +(?:\"([^\"\\n]+)\"|`([^`]+)`)")
)

// readsOf looks through the templates of a chart, the texts that may be rendered as templates, and the named
// templates of the charts in it, which see the values of the chart that includes them.
func readsOf(c *helmchart.Chart) valueReads {
	var r valueReads
	var look func(from *helmchart.Chart)
	look = func(from *helmchart.Chart) {
		for _, f := range slices.Concat(from.Templates, from.Files, valuesFile(from)) {
			name := path.Base(f.Name)
			if from == c || strings.HasPrefix(name, "_") || from.Metadata.Type == "library" {
				r.addText(string(f.Data))
			}
		}
		for _, sub := range from.Dependencies() {
			look(sub)
		}
	}
	look(c)
	return r
}

// addText finds what a text reads. Names count wherever they stand, as an action can't be told from a text within one.
func (r *valueReads) addText(text string) {
	const values = "Values"
	text = handedOn().ReplaceAllString(text, "$1")
	for at := 0; ; {
		i := strings.Index(text[at:], values)
		if i < 0 {
			return
		}
		before, behind := text[:at+i], text[at+i+len(values):]
		at += i + len(values)
		if fields := fieldsBehind().FindString(behind); fields != "" {
			r.paths = append(r.paths, strings.Split(fields[1:], "."))
			continue
		}
		begin := strings.LastIndex(before, "{{")
		if begin < 0 || strings.Contains(before[begin:], "}}") {
			continue // in no action
		}
		if m := nameBehind().FindStringSubmatch(behind); m != nil && namingCall().MatchString(before[begin:]) {
			r.paths = append(r.paths, []string{m[1] + m[2]})
		} else {
			r.everything = true
		}
	}
}

// addTextsIn finds what texts in values read, in case that they are rendered.
func (r *valueReads) addTextsIn(value any) {
	switch v := value.(type) {
	case string:
		r.addText(v)
	case []any:
		for _, item := range v {
			r.addTextsIn(item)
		}
	case map[string]any:
		for _, item := range v {
			r.addTextsIn(item)
		}
	}
}

// valuesFile is the file with the defaults of a chart, as it is written.
func valuesFile(c *helmchart.Chart) []*helmchart.File {
	for _, f := range c.Raw {
		if f.Name == chartutil.ValuesfileName {
			return []*helmchart.File{f}
		}
	}
	return nil
}
