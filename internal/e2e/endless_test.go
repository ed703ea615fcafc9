package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestEndlessTemplatesEnd: templates that come to no end, or need more memory than
// there is, are an error that names the chart, and take no machine down.
func TestEndlessTemplatesEnd(t *testing.T) {
	w := worldOf(t)      // by itself: each takes what memory it may
	const most = 3 << 20 // KiB
	for name, text := range map[string]string{
		"range":    `{{ range 100000000000 }}{{ end }}`,
		"lines":    "{{ range 100000000000 }}a line of text\n{{ end }}",
		"tpl":      `{{ tpl .Values.self . }}`,
		"include":  `{{ define "a" }}{{ include "b" . }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"template": `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
		"repeat":   `{{ repeat 1100000000 "x" }}`,
		"until":    `{{ range until 10000000000 }}{{ end }}`,
	} {
		chart := w.chartOf(map[string]string{
			"templates/innocent.yaml": "a: 1\n", "templates/deep/guilty.yaml": text, "values.yaml": "self: '{{ tpl .Values.self . }}'\n",
		})
		for _, args := range [][]string{{"template", chart}, {"install", "x", chart, "--timeout", "3s"}} {
			if (args[0] == "template") == (name == "range") {
				continue // without --timeout it has a minute
			}
			cmd, done := w.command(deployerBinary, args...)
			r := done(cmd.Run())
			used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
			if r.code != 1 || used > most || !strings.Contains(r.err, "rendering chart c: ") {
				t.Errorf("%s: want exit code 1, the chart's name and less than %d MiB, not %d:\n%.2000s", name, most>>10, used>>10, r)
			}
		}
	}
	w.statuses("x")
}

// TestTemplatesKeepToTheMemoryOfTheProcess: what grows without end is an error that names the
// memory that the program may use, also while a chart is rendered twice at once.
func TestTemplatesKeepToTheMemoryOfTheProcess(t *testing.T) {
	w := worldOf(t)
	w.ok("install", "x", w.chart("{{ $made := randAlphaNum 8 }}"+configMap("a", "1")))
	for name, text := range map[string]string{
		"lines": "{{ range 100000000000 }}a line of text\n{{ end }}",
		"map":   `{{ $d := dict }}{{ range until 100000000 }}{{ $_ := set $d (toString .) . }}{{ end }}`,
	} {
		chart := w.chartOf(map[string]string{"templates/guilty.yaml": text + "{{ genPrivateKey `ecdsa` }}"})
		for _, args := range [][]string{{"template", chart}, {"upgrade", "x", chart}} {
			cmd, done := w.command(deployerBinary, args...)
			cmd.Env = append(cmd.Env, "GOMEMLIMIT=640MiB")
			r := done(cmd.Run())
			if r.code != 1 || !strings.Contains(r.err, "rendering chart c: it needs more than ") || !strings.Contains(r.err, " of the 640 MiB that this process may use") {
				t.Errorf("%s: want exit code 1 and the chart's name:\n%.2000s", name, r)
			}
		}
	}
	w.statuses("x", "deployed")
}

// TestSchemasAndLintsEnd: a schema whose references double with each step, and templates without end in lint.
func TestSchemasAndLintsEnd(t *testing.T) {
	w := worldOf(t)
	schema := `{"$defs": {"d0": {"type": "string"}`
	for i := range 40 {
		schema += fmt.Sprintf(`, "d%d": {"allOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}`, i+1, i, i)
	}
	schema += `}, "properties": {"a": {"$ref": "#/$defs/d40"}}}`
	chart := w.chartOf(map[string]string{"templates/a.yaml": configMap("a", "1"), "values.yaml": "a: x\n", "values.schema.json": schema})
	for _, args := range [][]string{{"template", chart, "--timeout", "2s"}, {"install", "x", chart, "--timeout", "1s"}} {
		w.says(w.exits(1, args...), "stderr", "rendering chart c: values.schema.json (didn't finish in time|needs more than)")
	}
	w.ok("template", chart, "--skip-schema-validation")
	endless := w.chartOf(map[string]string{"templates/a.yaml": "{{ range 100000000000 }}a line of text\n{{ end }}"})
	w.says(w.exits(1, "lint", endless), "stderr", "it needs more than [0-9]+ MiB of memory")
	w.statuses("x")
}
