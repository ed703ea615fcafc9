package retain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deployer/internal/lazyregexp"
)

// A form lists users, each with a password behind the name.
type form struct {
	template string
	// recognizable says that an entry is recognised among others that have changed.
	recognizable bool
}

// entryForms are lists of users in the forms that charts have them in. Passwords have twelve characters.
var entryForms = map[string]form{
	"a YAML list": {text(`users:
{{- range .Values.users }}
- login: {{ . }}
  secret: {{ randAlphaNum 12 }}
{{- end }}`), true},
	"a YAML list with a role": {text(`users:
{{- range .Values.users }}
- username: {{ . }}
  password: {{ randAlphaNum 12 }}
  role: {{ if eq . "root" }}admin{{ else }}viewer{{ end }}
{{- end }}`), true},
	"a YAML list without names": {text(`users:
{{- range .Values.users }}
- owner: {{ . }}
  password: {{ randAlphaNum 12 }}
{{- end }}`), true},
	"a YAML list with another name": {text(`users:
{{- range $i, $u := .Values.users }}
- name: n{{ $i }}
  user: {{ $u }}
  password: {{ randAlphaNum 12 }}
{{- end }}`), false},
	"a YAML map":                {text("{{- range .Values.users }}\n{{ . }}: {{ randAlphaNum 12 }}\n{{- end }}"), true},
	"a JSON list":               {text(`[{{ range $i, $u := .Values.users }}{{ if $i }}, {{ end }}{"user": "{{ $u }}", "token": "{{ randAlphaNum 12 }}"}{{ end }}]`), true},
	"a JSON list without names": {text(`[{{ range $i, $u := .Values.users }}{{ if $i }}, {{ end }}{"who": "{{ $u }}", "token": "{{ randAlphaNum 12 }}"}{{ end }}]`), true},
	"a TOML table": {text(`{{- range .Values.users }}
[[user]]
name = "{{ . }}"
password = "{{ randAlphaNum 12 }}"
{{- end }}`), false},
	"INI": {text(`{{- range .Values.users }}
[{{ . }}]
password = {{ randAlphaNum 12 }}
{{- end }}`), true},
	"lines":             {text("{{- range .Values.users }}\n{{ . }}:{{ randAlphaNum 12 }}\n{{- end }}"), true},
	"lines with a word": {text("{{- range .Values.users }}\nuser {{ . }} password {{ randAlphaNum 12 }} always\n{{- end }}"), true},
	"pairs of lines":    {text("{{- range .Values.users }}\nuser={{ . }}\npassword={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"one line":          {secret + `stringData: {a: "{{ range .Values.users }}{{ . }}={{ randAlphaNum 12 }};{{ end }}"}`, false},
	"arguments":         {container(`args: [{{ range .Values.users }}--user={{ . }}, --token={{ randAlphaNum 12 }},{{ end }}]`), false},
	"one argument each": {container(`args: [{{ range .Values.users }}--user={{ . }}:{{ randAlphaNum 12 }},{{ end }}]`), true},
	"an environment":    {container(`env: [{{ range .Values.users }}{name: {{ . }}, value: {{ randAlphaNum 12 }}},{{ end }}]`), true},
	"fields":            {secret + `stringData: { {{ range .Values.users }}{{ . }}: {{ randAlphaNum 12 }}, {{ end }} }`, true},
}

// text is a Secret with a text in many lines.
func text(s string) string {
	return secret + "stringData:\n  a: |\n    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
}

// container is a container that isn't in a pod template, where values restart the pods.
func container(fields string) string {
	return "apiVersion: example.com/v1\nkind: Runner\nmetadata: {name: d}\nspec: {containers: [{name: a, " + fields + "}]}\n"
}

var userOrPassword = lazyregexp.New(`\b(?:root|bob|mallory|eve|carl|dora)\b|\b[A-Za-z0-9]{12}\b`)

// passwords are those of a manifest, by user.
func passwords(manifest string) map[string]string {
	out := map[string]string{}
	user := ""
	for _, word := range userOrPassword().FindAllString(manifest, -1) {
		if len(word) < 12 {
			user = word
		} else {
			out[user] = word
		}
	}
	return out
}

func users(names ...string) map[string]any {
	list := []any{}
	for _, name := range names {
		list = append(list, name)
	}
	return map[string]any{"users": list}
}

// TestNoEntryGetsTheValueOfAnother: whatever happens to a list, a password stays with its user, or is renewed.
func TestNoEntryGetsTheValueOfAnother(t *testing.T) {
	edits := map[string][2][]string{
		"replaced":              {{"root", "bob"}, {"mallory", "bob"}},
		"the only one replaced": {{"root"}, {"mallory"}},
		"added in front":        {{"root", "bob"}, {"mallory", "root", "bob"}},
		"added behind":          {{"root", "bob"}, {"root", "bob", "mallory"}},
		"removed in the middle": {{"root", "bob", "eve"}, {"root", "eve"}},
		"reordered":             {{"root", "bob", "eve"}, {"eve", "root", "bob"}},
		"swapped":               {{"root", "bob"}, {"bob", "root"}},
		"all replaced":          {{"root", "bob"}, {"eve", "mallory"}},
		"unchanged":             {{"root", "bob"}, {"root", "bob"}},
	}
	for name, form := range entryForms {
		for edit, users2 := range edits {
			t.Run(fmt.Sprint(name, " ", edit), func(t *testing.T) {
				t.Parallel()
				s := newStory(t)
				before := passwords(s.deploy(form.template, users(users2[0]...)).Manifest)
				result := s.deploy(form.template, users(users2[1]...))
				after := passwords(result.Manifest)
				if len(before) != len(users2[0]) || len(after) != len(users2[1]) {
					t.Fatalf("passwords %v and %v", before, after)
				}
				for user, password := range after {
					for owner, theirs := range before {
						if password == theirs && owner != user {
							t.Errorf("%s gets the password of %s", user, owner)
						}
					}
					if _, known := before[user]; !known || password == before[user] {
						continue
					}
					if form.recognizable || edit == "unchanged" {
						t.Errorf("the password of %s is renewed:\n%s", user, result.lines())
					}
					if !slices.ContainsFunc(result.Values, func(v Value) bool { return !v.Kept() && v.Reason != "" }) {
						t.Errorf("the password of %s is renewed, and nothing says why:\n%s", user, result.lines())
					}
				}
			})
		}
	}
}
