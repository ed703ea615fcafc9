package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rejecting are schemas of db that reject a password, each with another keyword.
// https://json-schema.org/draft/2020-12/json-schema-validation
var rejecting = map[string]string{
	"pattern":       `{"properties": {"password": {"pattern": "^never$", "maximum": 1}}}`,
	"$ref":          `{"properties": {"password": {"$ref": "#/$defs/never"}}, "$defs": {}}`,
	"oneOf":         `{"properties": {"password": {"oneOf": [{"pattern": "^never$"}, {"maxLength": 1}, {"type": "null"}, {"maximum": 1, "type": "number"}]}}}`,
	"anyOf":         `{"anyOf": [{"properties": {"password": {"const": "never"}}}, {"maxProperties": 0}]}`,
	"enum":          `{"properties": {"password": {"enum": ["never", 1]}}}`,
	"const":         `{"properties": {"password": {"const": "never"}}}`,
	"whole":         `{"const": {"password": "never"}}`,
	"not":           `{"properties": {"password": {"not": {}}}}`,
	"type":          `{"properties": {"password": {"type": "boolean"}}}`,
	"numbers":       `{"properties": {"password": {"type": "number", "maximum": 1, "multipleOf": 1000003}}}`,
	"if":            `{"if": {"required": ["password"]}, "then": {"properties": {"password": {"pattern": "^never$", "maximum": 1}}}}`,
	"additional":    `{"additionalProperties": {"pattern": "^never$", "maximum": 1}}`,
	"propertyNames": `{"propertyNames": {"pattern": "^never$"}}`,
	"dependent":     `{"dependentSchemas": {"password": {"required": ["never"]}}}`,
}

// TestErrorsOfSchemasShowNoPassword: neither of the chart's own schema, nor of a subchart's, whichever keyword
// rejects a password, and wherever it is from.
func TestErrorsOfSchemasShowNoPassword(t *testing.T) {
	for name, schema := range rejecting {
		for _, sub := range []bool{false, true} {
			for _, password := range []any{"k" + rand.Text(), `k` + rand.Text()[:6] + `'"\` + rand.Text(), 1234567890 + len(name)} {
				dir, values := schemaChart(t, schema, sub, password)
				for _, args := range [][]string{
					{"template", dir, "-f", values}, {"template", dir, "-f", values, "--debug"}, {"lint", dir, "-f", values}, {"lint", dir, "-f", values, "--with-subcharts"},
				} {
					testSchemaError(t, name, password, args)
				}
				data, err := os.ReadFile(values)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "values.yaml"), data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				testSchemaError(t, name, password, []string{"template", dir})
				testSchemaError(t, name, password, []string{"lint", dir})
			}
		}
	}
}

func testSchemaError(t *testing.T, name string, password any, args []string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := execute(t.Context(), append([]string{"deployer"}, args...), strings.NewReader(""), &out, &errOut)
	all := out.String() + errOut.String()
	if code != 1 || !strings.Contains(all, "/db") {
		t.Errorf("%s: %v: want the schema's error, not exit code %d:\n%s", name, args, code, all)
	}
	secrets := []string{"23456789"} // of the number, whatever is around it
	if text, ok := password.(string); ok {
		secrets = []string{text[:5], text[len(text)-5:]}
	}
	for _, secret := range secrets {
		if strings.Contains(strings.ToLower(all), strings.ToLower(secret)) {
			t.Errorf("%s: %v shows %v:\n%s", name, args, password, all)
		}
	}
}

// schemaChart writes a chart whose schema, or its subchart's, is about db, and a file with values.
func schemaChart(t *testing.T, schema string, sub bool, password any) (dir, values string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "c")
	metadata := "apiVersion: v2\nname: c\nversion: 1.0.0\n"
	at, given := dir, map[string]any{"db": map[string]any{"password": password}}
	if sub {
		at, given = filepath.Join(dir, "charts", "sub"), map[string]any{"sub": given}
		metadata += "dependencies: [{name: sub, version: 1.0.0}]\n"
	}
	all := `{"$defs": {"never": {"pattern": "^never$", "maximum": 1}}, "type": "object", "properties": {"db": ` + schema + `}}`
	data, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	values = filepath.Join(t.TempDir(), "given.yaml")
	for path, text := range map[string]string{
		filepath.Join(dir, "Chart.yaml"): metadata, filepath.Join(at, "values.schema.json"): all, values: string(data),
		filepath.Join(dir, "templates", "a.yaml"): "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if sub {
		if err := os.WriteFile(filepath.Join(at, "Chart.yaml"), []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, values
}
