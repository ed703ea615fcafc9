package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// A shownPlan is what tests read of plan -o json.
type shownPlan struct {
	Summary struct{ Create, Update, Delete, Unchanged, Random int }
	Stages  []struct {
		Kind    string
		Objects []struct {
			Object, Action, Reason, Unverified string
			Random                             bool
			Fields                             []struct {
				Path, Kind string
				Random     bool
			}
		}
	}
	Warnings []struct{ Text, Object string }
}

// plan is the plan of a command line, read.
func (w *world) plan(args ...string) shownPlan {
	w.Helper()
	r := w.ok(append([]string{"plan", "-o", "json"}, args...)...)
	var out shownPlan
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		w.Fatalf("%v in:\n%s", err, r)
	}
	return out
}

// whims lists the objects of a plan that change, and their fields, with a mark
// where only templates' making things up is behind it.
func (p shownPlan) whims() []string {
	var out []string
	mark := func(text string, random bool) {
		if random {
			text += " random"
		}
		out = append(out, text)
	}
	for _, stage := range p.Stages {
		for _, o := range stage.Objects {
			if o.Action == "unchanged" {
				continue
			}
			mark(o.Action+" "+o.Object, o.Random)
			for _, f := range o.Fields {
				mark(f.Path, f.Random)
			}
		}
	}
	slices.Sort(out)
	return out
}

const randomTemplates = `apiVersion: v1
kind: Secret
metadata: {name: made-up}
stringData:
  password: {{ randAlphaNum 12 }}
  mixed: "user={{ .Values.user }};pw={{ randAlphaNum 8 }}"
---
{{- $old := lookup "v1" "Secret" .Release.Namespace "guarded" }}
apiVersion: v1
kind: Secret
metadata: {name: guarded}
data:
  password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 12 | b64enc }}{{ end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: clock}
data: {when: "{{ now.UnixNano }}", user: "{{ .Values.user }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {check: "{{ randAlphaNum 9 | sha256sum }}"}}
    spec: {containers: [{name: a, image: r/x}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "n-{{ uuidv4 }}"}
`

// TestRandomChangesAreMarked: what changes only because templates make
// values up, or look at the clock, is marked and counted when it isn't kept; what looks its value up
// first isn't changed.
func TestRandomChangesAreMarked(t *testing.T) {
	w := newWorld(t)
	chart := w.chartOf(map[string]string{"templates/t.yaml": randomTemplates, "values.yaml": "user: bob\n"})
	w.ok("install", "x", chart)
	name := func(p shownPlan, action string) string {
		for _, stage := range p.Stages {
			for _, o := range stage.Objects {
				if o.Action == action {
					return o.Object
				}
			}
		}
		w.Fatalf("nothing to %s in %+v", action, p)
		return ""
	}
	check := func(what string, p shownPlan, random int, want ...string) {
		want = append(want, "create "+name(p, "create")+" random", "delete "+name(p, "delete")+" random")
		slices.Sort(want)
		if got := p.whims(); !slices.Equal(got, want) {
			w.Errorf("%s: got %q\nwant %q", what, got, want)
		}
		if p.Summary.Random != random || p.Summary.Unchanged != 1 {
			w.Errorf("%s: summary %+v, want %d random and 1 unchanged", what, p.Summary, random)
		}
	}
	object := func(kind, name string) string { return fmt.Sprintf("%s/%s/%s", kind, w.ns, name) }
	check("nothing else", w.plan("x", chart, "--generated", "renew"), 5,
		"update "+object("Secret", "made-up")+" random", "data.mixed random", "data.password random",
		"update "+object("ConfigMap", "clock")+" random", "data.when random",
		"update "+object("Deployment", "d")+" random", "spec.template.metadata.annotations.check random")
	check("another value too", w.plan("x", chart, "--generated", "renew", "--set", "user=ann"), 3,
		"update "+object("Secret", "made-up"), "data.mixed", "data.password random",
		"update "+object("ConfigMap", "clock"), "data.when random", "data.user",
		"update "+object("Deployment", "d")+" random", "spec.template.metadata.annotations.check random")
}
