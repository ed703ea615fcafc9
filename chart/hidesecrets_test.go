package chart

import (
	"strings"
	"testing"
)

func TestHideSecrets(t *testing.T) {
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {p: hunter2}}\n"
	for name, c := range map[string]struct {
		text   string
		hidden bool
	}{
		"a Secret":                {secret, true},
		"one without a name":      {"apiVersion: v1\nkind: Secret\nstringData: {p: hunter2}\n", true},
		"one in a list":           {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- " + secret, true},
		"one in a list in a list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - " + secret, true},
		"a list of Secrets":       {"apiVersion: v1\nkind: SecretList\nitems:\n- {metadata: {name: a}, stringData: {p: hunter2}}\n", true},
		"what can't be read":      {"kind: Secret\nstringData: [hunter2\n", true},
		"another kind":            {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {p: hunter2}\n", false},
		"one without a name too":  {"apiVersion: v1\nkind: ConfigMap\ndata: {p: hunter2}\n", false},
		"a Secret of others":      {"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\nspec: hunter2\n", false},
	} {
		got := HideSecrets("---\n# Source: web/templates/a.yaml\n" + c.text)
		if strings.Contains(got, "hunter2") == c.hidden || !strings.HasPrefix(got, "---\n# Source: web/templates/a.yaml\n") {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}
