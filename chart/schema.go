package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/internal/lazyregexp"
)

// SchemaError says that values don't fit a values.schema.json.
type SchemaError struct {
	Problems string // all of them, one line each, by chart
}

func (e *SchemaError) Error() string {
	return "values don't meet the specifications of the schema(s) in the following chart(s):\n" + e.Problems // Helm's words
}

// Hint says what to do about it.
func (e *SchemaError) Hint() string {
	return "correct the values, or render with them anyway: --skip-schema-validation"
}

// ValidateValues checks values by the schemas of a chart and its subcharts. A schema may refer to other files of its chart, and then
// to nothing else, on no web server either; otherwise it is Helm's chartutil.ValidateAgainstSchema. The error has Helm's words.
func ValidateValues(c *helmchart.Chart, values map[string]any) error {
	if !SchemaRefersToFiles(c) {
		return chartutil.ValidateAgainstSchema(c, values)
	}
	var problems strings.Builder
	alone := *c
	alone.SetDependencies()
	if err := validateWithFiles(&alone, values); err != nil {
		fmt.Fprintf(&problems, "%s:\n%s", c.Name(), err)
	}
	for _, child := range c.Dependencies() {
		below, ok := values[child.Name()].(map[string]any)
		switch {
		case ok:
			if err := ValidateValues(child, below); err != nil {
				problems.WriteString(err.Error())
			}
		case values[child.Name()] != nil:
			fmt.Fprintf(&problems, "%s:\ninvalid type for values: expected object (map), got %T\n", child.Name(), values[child.Name()])
		}
	}
	if problems.Len() > 0 {
		return errors.New(problems.String())
	}
	return nil
}

var schemaReference = lazyregexp.New(`"\$(?:ref|dynamicRef)"\s*:\s*"([^"]*)"`)

// SchemaRefersToFiles reports whether the schema of a chart or a subchart refers to another file. If it has an address of its own on a
// web server, that is a file of the chart.
func SchemaRefersToFiles(c *helmchart.Chart) bool {
	return slices.ContainsFunc(allCharts(c), func(c *helmchart.Chart) bool {
		return slices.ContainsFunc(schemaReference().FindAllSubmatch(c.Schema, -1), func(m [][]byte) bool {
			u, err := url.Parse(string(m[1]))
			isFile := func(f *helmchart.File) bool { return f.Name == path.Clean(u.Path) }
			return err == nil && (u.Scheme == "file" || u.Scheme == "" && u.Path != "" && (baseOfSchema(c) == nil || slices.ContainsFunc(c.Files, isFile)))
		})
	})
}

// baseOfSchema is the address on a web server that the schema of a chart says that it has; nil if it says none.
func baseOfSchema(c *helmchart.Chart) *url.URL {
	var schema struct {
		ID string `json:"$id"`
	}
	if json.Unmarshal(c.Schema, &schema) != nil {
		return nil
	}
	if u, err := url.Parse(schema.ID); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u
	}
	return nil
}

// schemaFile is the address of a chart's schema, in which the root directory is the chart's.
const schemaFile = "file:///" + chartutil.SchemafileName

func validateWithFiles(c *helmchart.Chart, values map[string]any) (err error) {
	if c.Schema == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unable to validate schema: %v", p) // as in Helm
		}
	}()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(filesOf{c})
	if err := compiler.AddResource(schemaFile, schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile(schemaFile)
	if err != nil {
		return err
	}
	if err := compiled.Validate(values); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaFile+"#'\n") + "\n") // as Helm has it
	}
	return nil
}

// filesOf loads the files of a chart for a schema of it.
type filesOf struct{ chart *helmchart.Chart }

func (l filesOf) Load(address string) (any, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(u.Path, "/")
	if u.Scheme != "file" {
		base, found := baseOfSchema(l.chart), false
		if base != nil && base.Host == u.Host {
			name, found = strings.CutPrefix(u.Path, strings.TrimSuffix(path.Dir("/"+strings.TrimPrefix(base.Path, "/")), "/")+"/")
		}
		if !found {
			return nil, fmt.Errorf("a schema that refers to files of its chart can't refer to %s", address)
		}
	}
	for _, f := range l.chart.Files {
		if f.Name == name {
			return jsonschema.UnmarshalJSON(bytes.NewReader(f.Data))
		}
	}
	return nil, fmt.Errorf("the chart has no file %s: %w", name, fs.ErrNotExist)
}
