package retain

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// dockerLogin is an entry of a .dockerconfigjson for a user.
func dockerLogin(user string) string {
	return ` {{ $p := (randAlphaNum 12) }}{{ printf "\"username\":%q,\"password\":%q,\"auth\":%q" ` + user + ` $p (printf "%s:%s" ` + user + ` $p | b64enc) }}`
}

// moreForms are entryForms in pods, and in base64.
var moreForms = map[string]form{
	"dockerconfigjson": {secret + `data:
  .dockerconfigjson: {{ define "d" }}{"auths":{ {{ range $i, $u := .Values.users }}{{ if $i }},{{ end }}"{{ $u }}.io":{` + dockerLogin("$u") + `}{{ end }} }}{{ end }}{{ include "d" . | b64enc }}`, true},
	"dockerconfigjson of one registry":   {secret + `{{ define "d" }}{"auths":{"r.io":{` + dockerLogin("(first .Values.users)") + `}}}{{ end }}data: {.dockerconfigjson: {{ include "d" . | b64enc }}}`, true},
	"arguments of pods":                  {pods(`args: [{{ range .Values.users }}--user={{ . }}, --token={{ randAlphaNum 12 }},{{ end }}]`), false},
	"one argument each of pods":          {pods(`args: [{{ range .Values.users }}--user={{ . }}:{{ randAlphaNum 12 }},{{ end }}]`), true},
	"an environment of pods":             {pods(`env: [{{ range .Values.users }}{name: {{ . }}, value: {{ randAlphaNum 12 }}},{{ end }}]`), true},
	"a user in an environment of pods":   {pods(`env: [{name: USER, value: {{ first .Values.users }}}, {name: PASSWORD, value: {{ randAlphaNum 12 }}}]`), true},
	"an environment by numbers, of pods": {pods(`env: [{{ range $i, $u := .Values.users }}{name: USER_{{ $i }}, value: {{ $u }}}, {name: PASSWORD_{{ $i }}, value: {{ randAlphaNum 12 }}},{{ end }}]`), false},
	"connection strings of pods":         {pods(`args: [{{ range .Values.users }}--url=postgres://{{ . }}:{{ randAlphaNum 12 }}@db/app,{{ end }}]`), true},
	"Basic authorization":                {text("{{- range .Values.users }}\n{{ . }}: Basic {{ printf \"%s:%s\" . (randAlphaNum 12) | b64enc }}\n{{- end }}"), true},
	"keys and values":                    {secret + `stringData: {admin-user: {{ first .Values.users }}, admin-password: {{ randAlphaNum 12 }}}`, true},
	"a line of the only user":            {secret + `stringData: {a: "CREATE USER {{ first .Values.users }} WITH PASSWORD '{{ randAlphaNum 12 }}'"}`, true},
	"a URL of the only user":             {secret + `stringData: {a: "postgres://{{ first .Values.users }}:{{ randAlphaNum 12 }}@db"}`, true},
	"attributes of the only user":        {secret + `stringData: {a: '<login user="{{ first .Values.users }}" password="{{ randAlphaNum 12 }}"/>'}`, true},
}

func pods(fields string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, " + fields + "}]}}}\n"
}

// withCopies is a template that has the password of the first user in another Secret too, where nothing says whose it is.
func withCopies(template string) string {
	user := "."
	if strings.Contains(template, "$u :=") {
		user = "$u"
	}
	if strings.Contains(template, "first .Values.users") && !strings.Contains(template, "range .Values") {
		user = "(first .Values.users)"
	}
	return `{{ $all := dict }}{{ range .Values.users }}{{ $_ := set $all . (randAlphaNum 12) }}{{ end }}{{ $_ := set .Values "all" $all }}
apiVersion: v1
kind: Secret
metadata: {name: copy}
stringData: {first: {{ get $all (first .Values.users) }}}
---
` + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(template, "{{ randAlphaNum 12 }}", "{{ get $.Values.all "+user+" }}"), "(randAlphaNum 12)", "(get $.Values.all "+user+")"), "randAlphaNum 12", "get $.Values.all "+user)
}

// edits are lists of users, before and after.
var edits = map[string][2][]string{
	"replaced":              {{"root", "bob"}, {"mallory", "bob"}},
	"the only one replaced": {{"root"}, {"mallory"}},
	"added in front":        {{"root", "bob"}, {"mallory", "root", "bob"}},
	"added behind":          {{"root", "bob"}, {"root", "bob", "mallory"}},
	"removed in the middle": {{"root", "bob", "eve"}, {"root", "eve"}},
	"the first removed":     {{"root", "bob", "eve"}, {"bob", "eve"}},
	"reordered":             {{"root", "bob", "eve"}, {"eve", "root", "bob"}},
	"swapped":               {{"root", "bob"}, {"bob", "root"}},
	"all replaced":          {{"root", "bob"}, {"eve", "mallory"}},
	"unchanged":             {{"root", "bob"}, {"root", "bob"}},
}

// TestNoEntryGetsTheValueOfAnotherThroughACopy: also if the same value stands where nothing says whose it is, and so is kept there.
func TestNoEntryGetsTheValueOfAnotherThroughACopy(t *testing.T) {
	forms := maps.Clone(entryForms)
	maps.Copy(forms, moreForms)
	for name, form := range forms {
		template := withCopies(form.template)
		for _, edit := range []string{"replaced", "added in front", "swapped", "unchanged"} {
			lists := edits[edit]
			t.Run(name+" "+edit, func(t *testing.T) {
				t.Parallel()
				s := newStory(t)
				first := s.deploy(template, users(lists[0]...))
				before := passwords(first.Manifest)
				result := s.deploy(template, users(lists[1]...))
				after := passwords(result.Manifest)
				for _, r := range []*Result{first, result} {
					if p := passwords(r.Manifest); len(p) < 2 || !slices.Contains(slices.Collect(maps.Values(without(p, ""))), p[""]) {
						t.Fatalf("no copy: %v\n%s", p, r.Manifest)
					}
				}
				for user, password := range without(after, "") {
					for owner, theirs := range without(before, "") {
						if password == theirs && owner != user {
							t.Errorf("%s gets the password of %s:\n%s", user, owner, result.lines())
						}
					}
				}
				for user, password := range after {
					if was, known := before[user]; known && was != password && !slices.ContainsFunc(result.Values, func(v Value) bool { return !v.Kept() && v.Reason != "" }) {
						t.Errorf("the password of %s is renewed, and nothing says why:\n%s", user, result.lines())
					}
				}
				if edit == "unchanged" && !maps.Equal(before, after) && !strings.Contains(name, "of pods") {
					t.Errorf("renewed without a change:\n%s", result.lines())
				}
			})
		}
	}
}

func without(m map[string]string, key string) map[string]string {
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// withCopy is a chart with a password, and the Secret in which it stands without a user.
func withCopy(other string) string {
	return "{{ $p := randAlphaNum 16 }}" + strings.Replace(secret, "name: s", "name: copy", 1) + "stringData: {p: {{ $p }}}\n---\n" + other
}

// TestNoUserComesToAnOldValueLater: also if the one who had it has gone in a revision before.
func TestNoUserComesToAnOldValueLater(t *testing.T) {
	s := newStory(t)
	of := func(names ...string) string {
		list := ""
		for _, name := range names {
			list += "\n- {name: " + name + ", password: {{ $p }}}"
		}
		return withCopy(text("a: b\nusers:" + list))
	}
	first := field(t, s.deploy(of("root"), nil).Manifest, "Secret/copy", "stringData", "p")
	if field(t, s.deploy(of(), nil).Manifest, "Secret/copy", "stringData", "p") != first {
		t.Error("renewed when its copy goes")
	}
	if r := s.deploy(of("mallory"), nil); field(t, r.Manifest, "Secret/copy", "stringData", "p") == first {
		t.Errorf("mallory gets the password of root:\n%s", r.lines())
	}
}

// TestCopiesFollowWhereTheyBelongToNobodyElse: a copy in a new place, or in a line whose other words have changed, gets the value
// that is kept; one that would come to another owner is renewed with all its copies.
func TestCopiesFollowWhereTheyBelongToNobodyElse(t *testing.T) {
	deployment := func(name, fields string) string {
		return strings.ReplaceAll(pods(fields), "name: d", "name: "+name)
	}
	resource := func(name, fields string) string {
		return "apiVersion: db.example.com/v1\nkind: DatabaseUser\nmetadata: {name: " + name + "}\nspec: {" + fields + "}\n"
	}
	htpasswd := func(user string) string { return secret + `stringData: {auth: "{{ htpasswd "` + user + `" $p }}"}` }
	hashOf := func(name string) string {
		return config + "data: {x: {{ sha256sum $p }}}\n---\n" + strings.Replace(secret, "name: s", "name: "+name, 1) + `stringData: {a: "{{ htpasswd "root" (sha256sum $p) }}"}`
	}
	for name, c := range map[string]struct {
		first, second string
		kept          bool
	}{
		"a new field":                                          {secret, secret + "stringData: {a: {{ $p }}}", true},
		"a new object":                                         {"", secret + "stringData: {a: {{ $p }}}", true},
		"a copy goes":                                          {secret + "stringData: {a: {{ $p }}}", "", true},
		"another name of its field":                            {secret + "stringData: {a: {{ $p }}}", secret + "stringData: {b: {{ $p }}}", false},
		"a Secret of another name":                             {secret + "stringData: {a: {{ $p }}}", strings.Replace(secret, "name: s", "name: s2", 1) + "stringData: {a: {{ $p }}}", false},
		"a ConfigMap of another name":                          {config + "data: {a: x={{ $p }}}", strings.Replace(config, "name: c", "name: c2", 1) + "data: {a: x={{ $p }}}", true},
		"a workload of another name":                           {deployment("a", `env: [{name: P, value: {{ $p }}}]`), deployment("b", `env: [{name: P, value: {{ $p }}}]`), true},
		"another line of a text":                               {text("a={{ $p }}\nb=1"), text("a={{ $p }}\nb=2\nc=3"), true},
		"another host in a line of a text":                     {text("a=postgres://u:{{ $p }}@db/x\nb=1"), text("a=postgres://u:{{ $p }}@db2/x\nb=1"), true},
		"another user in a line of a text":                     {text("a=postgres://u:{{ $p }}@db/x\nb=1"), text("a=postgres://v:{{ $p }}@db/x\nb=1"), false},
		"another host in an argument":                          {deployment("a", `args: ["--db=postgres://u:{{ $p }}@db/x"]`), deployment("a", `args: ["--db=postgres://u:{{ $p }}@db2/x"]`), true},
		"another user in an argument":                          {deployment("a", `args: ["--db=postgres://u:{{ $p }}@db/x"]`), deployment("a", `args: ["--db=postgres://v:{{ $p }}@db/x"]`), false},
		"another option behind it":                             {text("a: {{ $p }} # one"), text("a: {{ $p }} # two"), true},
		"a line more with it":                                  {text("a={{ $p }}"), text("a={{ $p }}\nb={{ $p }}"), true},
		"a hash more of it":                                    {text("a={{ $p }}"), text("a={{ $p }}\nb={{ $p | sha256sum }}"), true},
		"htpasswd of another user":                             {htpasswd("root"), htpasswd("bob"), false},
		"htpasswd of the same user":                            {htpasswd("root") + "\n---\n" + config + "data: {a: \"1\"}", htpasswd("root") + "\n---\n" + config + "data: {a: \"2\"}", true},
		"htpasswd of several users, one other":                 {text(`{{ htpasswd "root" $p }}` + "\n" + `{{ htpasswd "eve" "x" }}`), text(`{{ htpasswd "bob" $p }}` + "\n" + `{{ htpasswd "eve" "x" }}`), false},
		"htpasswd of a hash, in a Secret of another name":      {hashOf("s"), hashOf("s2"), false},
		"a hash of another user":                               {text("root={{ $p | sha256sum }}\nx=1"), text("bob={{ $p | sha256sum }}\nx=1"), false},
		"a new user in htpasswd":                               {text(`{{ htpasswd "root" $p }}` + "\nx: y"), text(`{{ htpasswd "root" $p }}` + "\n" + `{{ htpasswd "bob" $p }}` + "\nx: y"), true},
		"a new field beside one that is cut off":               {secret + "stringData: {s: {{ trunc 8 $p }}}", secret + "stringData: {s: {{ trunc 8 $p }}, b: {{ $p }}}", true},
		"a new object, and another has it cut off":             {secret + "stringData: {s: {{ trunc 8 $p }}}\n---\n" + config + "data: {a: b}", secret + "stringData: {s: {{ trunc 8 $p }}}\n---\n" + strings.Replace(secret, "name: s", "name: s2", 1) + "stringData: {a: {{ $p }}}", true},
		"a new hash beside one that is cut off":                {secret + "stringData: {h: {{ sha256sum $p }}, s: {{ sha256sum $p | trunc 8 }}}", secret + "stringData: {h: {{ sha256sum $p }}, s: {{ sha256sum $p | trunc 8 }}, b: {{ $p }}}", true},
		"another name of the field that is cut off":            {secret + "stringData: {s: {{ trunc 8 $p }}}", secret + "stringData: {b: {{ trunc 8 $p }}}", false},
		"another name of the field beside one that is cut off": {secret + "stringData: {s: {{ trunc 8 $p }}, a: {{ $p }}}", secret + "stringData: {s: {{ trunc 8 $p }}, b: {{ $p }}}", false},
		"a custom resource of another name":                    {resource("root", "password: {{ $p }}"), resource("mallory", "password: {{ $p }}"), false},
		"a new custom resource":                                {"", resource("root", "password: {{ $p }}"), true},
		"another host in another argument":                     {deployment("a", `args: ["--host=db", "--password={{ $p }}"]`), deployment("a", `args: ["--host=db2", "--password={{ $p }}"]`), true},
		"a line with another host":                             {text("host=db\npassword={{ $p }}"), text("host=db2\npassword={{ $p }}"), true},
		"another cluster in another argument":                  {deployment("a", `args: ["--cluster-id=a", "--cluster-name=a", "--key=a", "--host-name=a", "--password={{ $p }}"]`), deployment("a", `args: ["--cluster-id=b", "--cluster-name=b", "--key=b", "--host-name=b", "--password={{ $p }}"]`), true},
		"another user of a cluster":                            {deployment("a", `args: ["--cluster-user-name=a", "--password={{ $p }}"]`), deployment("a", `args: ["--cluster-user-name=b", "--password={{ $p }}"]`), false},
		"another access key in another argument":               {deployment("a", `args: ["--access-key=a", "--secret={{ $p }}"]`), deployment("a", `args: ["--access-key=b", "--secret={{ $p }}"]`), false},
		"another cluster of the same argument":                 {deployment("a", `args: ["--cluster-name=a", "--cluster-password={{ $p }}"]`), deployment("a", `args: ["--cluster-name=b", "--cluster-password={{ $p }}"]`), false},
		"another user in another argument":                     {deployment("a", `args: ["--user=a", "--password={{ $p }}"]`), deployment("a", `args: ["--user=b", "--password={{ $p }}"]`), false},
		"another name in another argument":                     {deployment("a", `args: ["--name=a", "--password={{ $p }}"]`), deployment("a", `args: ["--name=b", "--password={{ $p }}"]`), false},
		"another host with the number of a line":               {text("HOST_0=a\nPASSWORD_0={{ $p }}"), text("HOST_0=b\nPASSWORD_0={{ $p }}"), false},
		"another user of a password that begins with a word":   {text("a=postgres://u:fixed{{ $p }}@db/x\nb=1"), text("a=postgres://v:fixed{{ $p }}@db/x\nb=1"), false},
		"another user's key":                                   {text("{\"root\": {\"a\": \"{{ $p }}\"}}"), text("{\"bob\": {\"a\": \"{{ $p }}\"}}"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			first := field(t, s.deploy(withCopy(c.first), nil).Manifest, "Secret/copy", "stringData", "p")
			result := s.deploy(withCopy(c.second), nil)
			second := field(t, result.Manifest, "Secret/copy", "stringData", "p")
			if (first == second) != c.kept {
				t.Errorf("kept %v, want %v:\n%s\nfrom:\n%s\nto:\n%s", !c.kept, c.kept, result.lines(), s.earlier[0].Manifest, result.Manifest)
			}
			if !c.kept && !slices.ContainsFunc(result.Values, func(v Value) bool { return !v.Kept() && (v.Reason == movedCopy || v.Reason == movedOwner) }) {
				t.Errorf("nothing says why it is renewed:\n%s", result.lines())
			}
		})
	}
}
