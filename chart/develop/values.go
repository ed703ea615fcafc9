package develop

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/internal/lazyregexp"
)

// unknownValues are the paths of given values that no template of the chart reads, and that the chart has no defaults
// for: typing errors, mostly. Where a template hands all values on, nobody can tell, and there are none.
func unknownValues(c *helmchart.Chart, given map[string]any) []string {
	k := knownValues{chart: c, reads: readsOf(c)}
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
			for _, inner := range unknownValues(sub, below) {
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
	templateAction = lazyregexp.New(`(?s)\{\{.*?\}\}`)
	valuesRead     = lazyregexp.New(`\bValues((?:\.[A-Za-z_]\w*)*)`)
	namedRead      = lazyregexp.New(`\b(?:index|get|hasKey|dig|pluck|pick)\b`)
	quotedWord     = lazyregexp.New("\"([^\"\\n]+)\"|`([^`]+)`")
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

func (r *valueReads) addText(text string) {
	for _, action := range templateAction().FindAllString(text, -1) {
		action = strings.ReplaceAll(action, `"Values" .Values`, "") // for a template that reads .Values again
		for _, m := range valuesRead().FindAllStringSubmatch(action, -1) {
			switch {
			case m[1] != "":
				r.paths = append(r.paths, strings.Split(m[1][1:], "."))
			case namedRead().MatchString(action):
				for _, word := range quotedWord().FindAllStringSubmatch(action, -1) {
					r.paths = append(r.paths, []string{word[1] + word[2]})
				}
			default:
				r.everything = true
			}
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

// duplicateKeys finds keys that a mapping of a YAML text has twice: the last one counts, and nobody is told.
func duplicateKeys(text []byte) []string {
	var out []string
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var document yaml.Node
		if d.Decode(&document) != nil {
			return out // the end, or what is no YAML, of which others tell
		}
		addDuplicateKeys(&document, nil, &out)
	}
}

func addDuplicateKeys(n *yaml.Node, names []string, out *[]string) {
	if n.Kind != yaml.MappingNode {
		for i, item := range n.Content {
			at := names
			if n.Kind == yaml.SequenceNode {
				at = append(slices.Clone(names), fmt.Sprint(i))
			}
			addDuplicateKeys(item, at, out)
		}
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := append(slices.Clone(names), key.Value)
		if line, twice := first[key.Value]; twice && key.Tag != "!!merge" {
			*out = append(*out, fmt.Sprintf("%s is set twice, in lines %d and %d: the last one counts", strings.Join(at, "."), line, key.Line))
		}
		first[key.Value] = key.Line
		addDuplicateKeys(n.Content[i+1], at, out)
	}
}
