package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kinds are what the release consists of, in turn. Each has a place for the value
// that phases change.
var kinds = []string{
	"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: o-%[1]d\ndata:\n  value: %[2]s\n",
	"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: o-%[1]d\n  annotations:\n    value: %[2]s\n",
	"apiVersion: v1\nkind: Service\nmetadata:\n  name: o-%[1]d\n  annotations:\n    value: %[2]s\nspec:\n  selector:\n    app: o-%[1]d\n  ports:\n    - port: 80\n",
	"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: o-%[1]d\n  annotations:\n    value: %[2]s\nrules:\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get]\n",
}

// perTemplate is how many objects a template of the chart has.
const perTemplate = 50

// writeChart writes a chart with n objects, of which the value .Values.changed
// changes so many, and returns its directory.
func writeChart(dir string, n int) (string, error) {
	chart := filepath.Join(dir, "bench")
	templates := filepath.Join(chart, "templates")
	if err := os.MkdirAll(templates, 0o755); err != nil {
		return "", err
	}
	files := map[string]string{
		filepath.Join(chart, "Chart.yaml"):  "apiVersion: v2\nname: bench\nversion: 1.0.0\n",
		filepath.Join(chart, "values.yaml"): "changed: 0\ngeneration: 0\n",
	}
	for first := 0; first < n; first += perTemplate {
		var text strings.Builder
		for i := first; i < min(first+perTemplate, n); i++ {
			value := fmt.Sprintf("{{ if lt %d (int .Values.changed) }}new-{{ .Values.generation }}{{ else }}old{{ end }}", i)
			fmt.Fprintf(&text, "---\n"+kinds[i%len(kinds)], i, value)
		}
		files[filepath.Join(templates, fmt.Sprintf("objects-%d.yaml", first))] = text.String()
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return chart, nil
}
