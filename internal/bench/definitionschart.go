package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The definitions of the made chart. Operators of databases have such.
const (
	madeDefinitions = 10
	definitionSize  = 400 << 10 // bytes
)

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

// definitionField is one property of a pod template or the like, which is what makes definitions large.
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

// writeDefinitionsChart writes a chart with ten CustomResourceDefinitions of 400 KB in crds/ and a
// few objects, and returns its directory.
func writeDefinitionsChart(dir string) (string, error) {
	chart := filepath.Join(dir, "ten-definitions-of-400-kb")
	files := map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: definitions\nversion: 1.0.0\n",
		"values.yaml":            "changed: 0\n",
		"templates/objects.yaml": objectsTemplate(40),
	}
	for i := range madeDefinitions {
		var text strings.Builder
		fmt.Fprintf(&text, definitionHead, i)
		for field := 0; text.Len() < definitionSize; field++ {
			fmt.Fprintf(&text, definitionField, field, i, (field*7919+i*104729)%100003, 100+(field*31337+i)%9973)
		}
		files[fmt.Sprintf("crds/things%d.yaml", i)] = text.String()
	}
	return chart, writeFiles(chart, files)
}

// objectsTemplate is a template of n objects, a quarter each of the kinds, named after the release. The value
// changed, 0 by default, is how many of them have another content.
func objectsTemplate(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\n"+kinds[i%len(kinds)], i, fmt.Sprintf("{{ if lt %d (int .Values.changed) }}new{{ else }}old{{ end }}", i))
	}
	return strings.ReplaceAll(text.String(), "  name: o-", "  name: {{ .Release.Name }}-")
}

// writeFiles writes files below a directory.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
