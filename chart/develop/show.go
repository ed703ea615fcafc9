package develop

import (
	"fmt"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// A Part is a part of a chart that can be shown.
type Part string

// The parts of a chart.
const (
	All    Part = "all"
	Chart  Part = "chart"
	Values Part = "values"
	Readme Part = "readme"
	CRDs   Part = "crds"
)

// Show returns a part of a chart in Helm's form. A JSONPath expression picks
// from its values; it has a meaning with Values and All only.
// (helm.sh/helm/v3/pkg/action/show.go)
func Show(c *helmchart.Chart, part Part, path string) (string, error) {
	var out strings.Builder
	wanted := func(p Part) bool { return part == p || part == All }
	separate := func() {
		if part == All {
			out.WriteString("---\n")
		}
	}
	if wanted(Chart) {
		text, err := yaml.Marshal(c.Metadata)
		if err != nil {
			return "", fmt.Errorf("showing Chart.yaml of %s: %w", c.Name(), err)
		}
		fmt.Fprintf(&out, "%s\n", text)
	}
	if wanted(Values) && c.Values != nil {
		separate()
		text, err := values(c, path)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	if wanted(Readme) {
		if text, ok := readme(c); ok {
			separate()
			fmt.Fprintf(&out, "%s\n", text)
		}
	}
	if crds := c.CRDObjects(); wanted(CRDs) && len(crds) > 0 {
		if !strings.HasPrefix(string(crds[0].File.Data), "---") {
			separate()
		}
		for _, crd := range crds {
			fmt.Fprintf(&out, "%s\n", crd.File.Data)
		}
	}
	return out.String(), nil
}

// Document is a part of a chart for programs: All is an object of the other parts, the readme a text, CRDs a list.
// A part that isn't there is nil.
func Document(c *helmchart.Chart, part Part) (any, error) {
	switch part {
	case Chart:
		return c.Metadata, nil
	case Values:
		return c.Values, nil
	case Readme:
		if text, ok := readme(c); ok {
			return text, nil
		}
		return nil, nil
	case CRDs:
		objects := []any{}
		for _, crd := range c.CRDObjects() {
			var object any
			if err := yaml.Unmarshal(crd.File.Data, &object); err != nil {
				return nil, fmt.Errorf("reading %s of %s: %w", crd.Filename, c.Name(), err)
			}
			objects = append(objects, object)
		}
		return objects, nil
	}
	all := map[string]any{}
	for _, p := range []Part{Chart, Values, Readme, CRDs} {
		document, err := Document(c, p)
		if err != nil {
			return nil, err
		}
		all[string(p)] = document
	}
	return all, nil
}

// values are values.yaml as it was written, or what a JSONPath picks of it.
func values(c *helmchart.Chart, path string) (string, error) {
	var out strings.Builder
	if path == "" {
		for _, f := range c.Raw {
			if f.Name == chartutil.ValuesfileName {
				fmt.Fprintln(&out, string(f.Data))
			}
		}
		return out.String(), nil
	}
	expression := jsonpath.New("values").AllowMissingKeys(true) // as Helm
	if err := expression.Parse(path); err != nil {
		return "", fmt.Errorf("error parsing jsonpath %s: %w", path, err)
	}
	if err := expression.Execute(&out, c.Values); err != nil {
		return "", fmt.Errorf("reading %s from the values of %s: %w", path, c.Name(), err)
	}
	return out.String(), nil
}

func readme(c *helmchart.Chart) (string, bool) {
	for _, f := range c.Files {
		switch strings.ToLower(f.Name) {
		case "readme.md", "readme.txt", "readme":
			return string(f.Data), true
		}
	}
	return "", false
}
