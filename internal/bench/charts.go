package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kinds are what the releases consist of, in turn. Each has a place for a value that upgrades change.
var kinds = []string{
	"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%[1]d\ndata:\n  value: %[2]s\n",
	"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}-%[1]d\n  annotations:\n    value: %[2]s\n",
	"apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}-%[1]d\n  annotations:\n    value: %[2]s\nspec:\n  selector:\n    app: o-%[1]d\n  ports:\n    - port: 80\n",
	"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {{ .Release.Name }}-%[1]d\n  annotations:\n    value: %[2]s\nrules:\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get]\n",
}

// perTemplate is how many objects a template of a chart has.
const perTemplate = 50

// objectsChart is a chart with n objects, of which the value changed, 0 by default, changes so many.
func objectsChart(n int) map[string]string {
	files := map[string]string{"values.yaml": "changed: 0\n"}
	for first := 0; first < n; first += perTemplate {
		var text strings.Builder
		for i := first; i < min(first+perTemplate, n); i++ {
			fmt.Fprintf(&text, "---\n"+kinds[i%len(kinds)], i, fmt.Sprintf("{{ if lt %d (int .Values.changed) }}new{{ else }}old{{ end }}", i))
		}
		files[fmt.Sprintf("templates/objects-%d.yaml", first)] = text.String()
	}
	return files
}

// secrets is how many Secrets the chart of secretsChart has beside its 200 objects.
const secrets = 40

// secretsChart is a chart with Secrets, each with its value.
func secretsChart(value func(i int) string) map[string]string {
	var text strings.Builder
	for i := range secrets {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}-%d\nstringData:\n  password: %s\n", i, value(i))
	}
	files := objectsChart(200)
	files["templates/secrets.yaml"] = text.String()
	return files
}

// definitionHead and definitionField make a definition as large as those of operators of databases.
const definitionHead = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things%[1]d.bench.deployer.io
spec:
  group: bench.deployer.io
  scope: Namespaced
  names: {kind: Thing%[1]d, plural: things%[1]d, singular: thing%[1]d, listKind: Thing%[1]dList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
`

const definitionField = `                field%[1]d:
                  description: |-
                    Field %[1]d of thing %[2]d says how the controller treats part %[3]d of the workload.
                    It defaults to %[4]d; more about it: https://example.com/things/%[2]d/fields/%[1]d
                  type: object
                  properties:
                    name: {type: string, maxLength: %[4]d, description: "the name of part %[3]d"}
                    count: {type: integer, format: int32, minimum: 0, maximum: %[4]d}
                    values:
                      type: array
                      items:
                        type: object
                        required: [key]
                        properties:
                          key: {type: string, description: "which of the %[4]d values"}
                          value: {type: string, maxLength: %[4]d}
`

// definitionsChart is a chart with ten CustomResourceDefinitions of 400 KB in crds/ and a few objects.
func definitionsChart() map[string]string {
	files := objectsChart(40)
	for i := range 10 {
		var text strings.Builder
		fmt.Fprintf(&text, definitionHead, i)
		for field := 0; text.Len() < 400<<10; field++ {
			fmt.Fprintf(&text, definitionField, field, i, (field*7919+i*104729)%100003, 100+(field*31337+i)%9973)
		}
		files[fmt.Sprintf("crds/things%d.yaml", i)] = text.String()
	}
	return files
}

// writeChart writes a chart of these files.
func writeChart(chart string, files map[string]string) error {
	files["Chart.yaml"] = "apiVersion: v2\nname: bench\nversion: 1.0.0\n"
	for name, text := range files {
		path := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
