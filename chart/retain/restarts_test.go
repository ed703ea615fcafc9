package retain

import (
	"fmt"
	"testing"
)

// TestValuesOnlyInPodTemplatesRestartThePods: in whatever form a template has them. Copies and hashes of something that is
// kept stay.
func TestValuesOnlyInPodTemplatesRestartThePods(t *testing.T) {
	pod := func(kind, template string) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: d}\nspec: {template: %s}\n", kind, template)
	}
	const containers = "spec: {containers: [{name: a, image: i}]}"
	env := func(value string) string {
		return `{spec: {containers: [{name: a, env: [{name: X, value: "` + value + `"}]}]}}`
	}
	withPassword := func(pod string) string {
		return "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {p: {{ $p }}}\n---\n" + pod
	}
	for name, c := range map[string]struct {
		template string
		restarts bool
	}{
		"an annotation":               {pod("Deployment", `{metadata: {annotations: {x: "{{ randAlphaNum 5 }}"}}, `+containers+`}`), true},
		"a time as annotation":        {pod("Deployment", `{metadata: {annotations: {x: "{{ now | unixEpoch }}-{{ uuidv4 }}"}}, `+containers+`}`), true},
		"a label":                     {pod("StatefulSet", `{metadata: {labels: {x: "{{ uuidv4 }}"}}, `+containers+`}`), true},
		"an environment":              {pod("Deployment", env("{{ randAlphaNum 12 }}")), true},
		"a time in an environment":    {pod("DaemonSet", env("{{ now }}")), true},
		"an argument":                 {pod("Deployment", `{spec: {containers: [{name: a, args: [--id={{ uuidv4 }}]}]}}`), true},
		"a volume's name":             {pod("Deployment", `{spec: {containers: [{name: a}], volumes: [{name: "v-{{ randAlphaNum 6 | lower }}", emptyDir: {}}]}}`), true},
		"in two workloads":            {"{{ $p := randAlphaNum 12 }}" + pod("Deployment", env("{{ $p }}")) + "---\n" + pod("StatefulSet", env("{{ $p }}")), true},
		"in a kind of somebody else":  {`apiVersion: argoproj.io/v1alpha1` + "\nkind: Rollout\nmetadata: {name: d}\nspec: {template: " + env("{{ randAlphaNum 12 }}") + "}\n", true},
		"a CronJob":                   {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: d}\nspec: {jobTemplate: {spec: {template: " + env("{{ randAlphaNum 12 }}") + "}}}\n", true},
		"a marker beside a copy":      {withPassword(pod("Deployment", env("{{ $p }}-{{ uuidv4 }}"))), true},
		"a time as a label":           {pod("DaemonSet", `{metadata: {labels: {x: "t{{ now | unixEpoch }}-{{ randAlphaNum 5 }}"}}, `+containers+`}`), true},
		"an init container":           {pod("Deployment", `{spec: {initContainers: [{name: i, env: [{name: X, value: {{ randAlphaNum 12 }}}]}], containers: [{name: a}]}}`), true},
		"a config map's name":         {pod("Deployment", `{spec: {containers: [{name: a}], volumes: [{name: v, configMap: {name: "c-{{ randAlphaNum 8 | lower }}"}}]}}`), true},
		"a Knative service":           {"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: d}\nspec: {template: " + env("{{ randAlphaNum 12 }}") + "}\n", true},
		"a hash of a marker":          {pod("Deployment", env("{{ now | toString | sha256sum | trunc 10 }}")), true},
		"base64 of a copy":            {withPassword(pod("Deployment", env("{{ $p | b64enc }}"))), false},
		"a Job, which can't change":   {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: d}\nspec: {template: " + env("{{ randAlphaNum 12 }}") + "}\n", false},
		"a copy":                      {withPassword(pod("Deployment", env("{{ $p }}"))), false},
		"a copy in a connection":      {withPassword(pod("Deployment", env("postgres://u:{{ $p }}@db/x"))), false},
		"a hash":                      {withPassword(pod("Deployment", env("{{ $p | sha256sum }}"))), false},
		"a part of a hash":            {withPassword(pod("Deployment", env("{{ $p | sha256sum | trunc 12 }}"))), false},
		"kept by its annotation":      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {deployer.io/generated: keep}}\nspec: {template: " + env("{{ randAlphaNum 12 }}") + "}\n", false},
		"outside of the pod template": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {x: {{ uuidv4 }}}}\nspec: {template: " + env("x") + "}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			before := s.deploy(c.template, nil)
			for range 2 {
				after := s.deploy(c.template, nil)
				if restarts := after.Manifest != before.Manifest; restarts != c.restarts {
					t.Fatalf("restarts %v, want %v:\n%s\nfrom:\n%s\nto:\n%s", restarts, c.restarts, after.lines(), before.Manifest, after.Manifest)
				}
				before = after
			}
		})
	}
}
