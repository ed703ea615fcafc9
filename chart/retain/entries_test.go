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

	// The place of a user is a position in disguise, or whose password it is stands around it.
	"a map by numbers": {text(`users:
{{- range $i, $u := .Values.users }}
  u{{ $i }}: {login: {{ $u }}, password: {{ randAlphaNum 12 }}}
{{- end }}`), false},
	"a map in a list": {text(`teams:
- name: all
  users:
{{- range .Values.users }}
  - {name: {{ . }}, password: {{ randAlphaNum 12 }}}
{{- end }}`), true},
	"fields by numbers":             {secret + `stringData: { {{ range $i, $u := .Values.users }}user-{{ $i }}: {{ $u }}, password-{{ $i }}: {{ randAlphaNum 12 }}, {{ end }} }`, false},
	"variables by numbers":          {text("{{- range $i, $u := .Values.users }}\nUSER_{{ $i }}={{ $u }}\nPASSWORD_{{ $i }}={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"variables with numbers":        {text("{{- range $i, $u := .Values.users }}\nUSER{{ $i }}_NAME={{ $u }}\nUSER{{ $i }}_PASSWORD={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"an environment by numbers":     {container(`env: [{{ range $i, $u := .Values.users }}{name: USER_{{ $i }}, value: {{ $u }}}, {name: PASSWORD_{{ $i }}, value: {{ randAlphaNum 12 }}},{{ end }}]`), false},
	"connection strings":            {text("{{- range .Values.users }}\npostgres://{{ . }}:{{ randAlphaNum 12 }}@db/app\n{{- end }}"), true},
	"connection strings in a list":  {text("urls:\n{{- range .Values.users }}\n- postgres://{{ . }}:{{ randAlphaNum 12 }}@db/app\n{{- end }}"), true},
	"connection strings by numbers": {text("{{- range $i, $u := .Values.users }}\nurl{{ $i }}: postgres://{{ $u }}:{{ randAlphaNum 12 }}@db/app\n{{- end }}"), false},
	"pgpass":                        {text("{{- range .Values.users }}\ndb:5432:*:{{ . }}:{{ randAlphaNum 12 }}\n{{- end }}"), true},
	"comments":                      {text("{{- range .Values.users }}\n# {{ . }}\npassword={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"documents":                     {text("kind: users\n{{- range .Values.users }}\n---\nuser: {{ . }}\npassword: {{ randAlphaNum 12 }}\n{{- end }}"), false},
	"objects by numbers": {`{{ range $i, $u := .Values.users }}
---
apiVersion: v1
kind: Secret
metadata: {name: user-{{ $i }}}
stringData: {username: {{ $u }}, password: {{ randAlphaNum 12 }}}
{{ end }}`, false},
	"objects by name": {`{{ range .Values.users }}
---
apiVersion: v1
kind: Secret
metadata: {name: user-{{ . }}}
stringData: {username: {{ . }}, password: {{ randAlphaNum 12 }}}
{{ end }}`, true},
	"sections by numbers": {text(`{{- range $i, $u := .Values.users }}
[user{{ $i }}]
name = {{ $u }}
password = {{ randAlphaNum 12 }}
{{- end }}`), false},
	"XML":                     {text("<users>\n{{- range .Values.users }}\n<user name=\"{{ . }}\" password=\"{{ randAlphaNum 12 }}\"/>\n{{- end }}\n</users>"), true},
	"XML of several lines":    {text("<users>\n{{- range .Values.users }}\n<user>\n<name>{{ . }}</name>\n<password>{{ randAlphaNum 12 }}</password>\n</user>\n{{- end }}\n</users>"), true},
	"HCL":                     {text("{{- range .Values.users }}\nuser \"{{ . }}\" {\n  password = \"{{ randAlphaNum 12 }}\"\n}\n{{- end }}"), true},
	"SQL":                     {text("{{- range .Values.users }}\nCREATE USER {{ . }} WITH PASSWORD '{{ randAlphaNum 12 }}';\n{{- end }}"), true},
	"a nested list":           {text("users: [{{ range .Values.users }}[{{ . }}, {{ randAlphaNum 12 }}], {{ end }}]"), true},
	"two lists":               {text("users: [{{ range .Values.users }}{{ . }}, {{ end }}]\nids: [{{ range .Values.users }}{name: {{ . }}, password: {{ randAlphaNum 12 }}}, {{ end }}]"), true},
	"documents alone":         {text("{{- range .Values.users }}\n---\nuser: {{ . }}\npassword: {{ randAlphaNum 12 }}\n{{- end }}"), false},
	"documents with a branch": {text("{{- range .Values.users }}\n---\nprofile:\n  login: {{ . }}\nauth:\n  password: {{ randAlphaNum 12 }}\n{{- end }}"), false},

	// Whose password it is stands in another branch.
	"a map by numbers with branches": {text(`users:
{{- range $i, $u := .Values.users }}
  u{{ $i }}: {profile: {login: {{ $u }}}, auth: {password: {{ randAlphaNum 12 }}}}
{{- end }}`), false},
	"JSON by numbers with branches":       {text(`{ {{ range $i, $u := .Values.users }}{{ if $i }}, {{ end }}"u{{ $i }}": {"profile": {"name": "{{ $u }}"}, "auth": {"token": {"value": "{{ randAlphaNum 12 }}"}}}{{ end }} }`), false},
	"a map by numbers without identities": {text("users:\n{{- range $i, $u := .Values.users }}\n  u{{ $i }}: {who: {is: {{ $u }}}, auth: {password: {{ randAlphaNum 12 }}}}\n{{- end }}\n  u9: {}"), false},
	"a list with branches":                {text("{{- range .Values.users }}\n- profile: {login: {{ . }}}\n  auth: {password: {{ randAlphaNum 12 }}}\n{{- end }}"), true},
	"a list with a name and branches":     {text("{{- range $i, $u := .Values.users }}\n- name: n{{ $i }}\n  profile: {login: {{ $u }}}\n  auth: {password: {{ randAlphaNum 12 }}}\n{{- end }}"), false},
	"properties by numbers with branches": {text("{{- range $i, $u := .Values.users }}\nu{{ $i }}.profile.login={{ $u }}\nu{{ $i }}.auth.password={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"TOML by numbers with branches":       {text("{{- range $i, $u := .Values.users }}\n[u{{ $i }}.profile]\nlogin = \"{{ $u }}\"\n[u{{ $i }}.auth]\npassword = \"{{ randAlphaNum 12 }}\"\n{{- end }}"), false},
	"TOML with branches":                  {text("{{- range .Values.users }}\n[[users]]\nlogin = \"{{ . }}\"\n[users.auth]\npassword = \"{{ randAlphaNum 12 }}\"\n{{- end }}"), false},
	"objects by numbers with branches": {`{{ range $i, $u := .Values.users }}
---
apiVersion: example.com/v1
kind: Account
metadata: {name: user-{{ $i }}}
spec: {profile: {login: {{ $u }}}, auth: {password: {{ randAlphaNum 12 }}}}
{{ end }}`, false},
	"variables by letters":           {text("{{- range $i, $u := .Values.users }}\nUSER_{{ substr $i (int (add1 $i)) \"ABCDEF\" }}={{ $u }}\nPASSWORD_{{ substr $i (int (add1 $i)) \"ABCDEF\" }}={{ randAlphaNum 12 }}\n{{- end }}"), false},
	"fields by letters":              {secret + `stringData: { {{ range $i, $u := .Values.users }}user-{{ substr $i (int (add1 $i)) "ABCDEF" }}: {{ $u }}, password-{{ substr $i (int (add1 $i)) "ABCDEF" }}: {{ randAlphaNum 12 }}, {{ end }} }`, false},
	"an environment by letters":      {container(`env: [{{ range $i, $u := .Values.users }}{name: USER_{{ substr $i (int (add1 $i)) "ABCDEF" }}, value: {{ $u }}}, {name: PASSWORD_{{ substr $i (int (add1 $i)) "ABCDEF" }}, value: {{ randAlphaNum 12 }}},{{ end }}]`), false},
	"a map by letters":               {text("users:\n{{- range $i, $u := .Values.users }}\n  {{ substr $i (int (add1 $i)) \"abcdef\" }}: {profile: {login: {{ $u }}}, auth: {password: {{ randAlphaNum 12 }}}}\n{{- end }}"), false},
	"a map by names with logins":     {text("users:\n{{- range .Values.users }}\n  {{ . }}: {login: {{ . }}, password: {{ randAlphaNum 12 }}}\n{{- end }}"), true},
	"camel case by numbers":          {text("{{- range $i, $u := .Values.users }}\nuserName{{ $i }}: {{ $u }}\nuserPassword{{ $i }}: {{ randAlphaNum 12 }}\n{{- end }}"), false},
	"documents in fields by numbers": {secret + "stringData:\n{{- range $i, $u := .Values.users }}\n  u{{ $i }}.yaml: |\n    user: {{ $u }}\n    password: {{ randAlphaNum 12 }}\n{{- end }}", false},
	"documents in base64 by numbers": {secret + "data:\n{{- range $i, $u := .Values.users }}\n  u{{ $i }}: {{ printf \"%s\" $u | b64enc }}\n{{- end }}\nstringData: { {{ range $i, $u := .Values.users }}note-{{ $i }}: {{ $u }}, password-{{ $i }}: {{ randAlphaNum 12 }}, {{ end }} }", false},
	"arguments with flags":           {container(`args: [{{ range .Values.users }}"-u", {{ . }}, "-p", {{ randAlphaNum 12 }},{{ end }}]`), false},

	// The name of a property, a machine or what stands above a line says whose it is.
	"properties of Hadoop":              {hadoop("<property>\n<name>{{ $u }}.password</name>\n<value>PW</value>\n</property>"), true},
	"indented properties of Hadoop":     {hadoop("  <property>\n    <name>{{ $u }}.password</name>\n    <value>PW</value>\n    <final>true</final>\n  </property>"), true},
	"properties of Hadoop in a line":    {hadoop("  <property><name>{{ $u }}.password</name><value>PW</value></property>"), true},
	"properties of Hadoop by numbers":   {hadoop("<property>\n<name>u{{ $i }}.user</name>\n<value>{{ $u }}</value>\n</property>\n<property>\n<name>u{{ $i }}.password</name>\n<value>PW</value>\n</property>"), false},
	"properties of Hadoop by letters":   {hadoop("<property>\n<name>{{ substr $i (int (add1 $i)) \"abcdef\" }}.user</name>\n<value>{{ $u }}</value>\n</property>\n<property>\n<name>{{ substr $i (int (add1 $i)) \"abcdef\" }}.password</name>\n<value>PW</value>\n</property>"), false},
	"numbered properties in a line":     {hadoop("<property><name>u{{ $i }}.user</name><value>{{ $u }}</value></property>\n<property><name>u{{ $i }}.password</name><value>PW</value></property>"), false},
	"an XML element with attributes":    {hadoop("  <user username=\"{{ $u }}\"\n    password=\"PW\"\n    roles=\"x\"/>"), true},
	"XML elements by name":              {hadoop("<{{ $u }}>\n<password>PW</password>\n</{{ $u }}>"), true},
	"netrc":                             {eachLine("machine h login {{ $u }} password PW"), true},
	"netrc with several lines":          {eachLine("machine h\nlogin {{ $u }}\npassword PW"), true},
	"netrc with indented lines":         {eachLine("machine h\n  login {{ $u }}\n  password PW"), true},
	"netrc with two lines":              {eachLine("machine h login {{ $u }}\npassword PW"), true},
	"netrc by machine":                  {eachLine("machine {{ $u }}\nlogin admin\npassword PW"), true},
	"netrc by numbers":                  {eachLine("machine h{{ $i }}\nlogin {{ $u }}\npassword PW"), false},
	"numbers below a comment":           {eachLine("# the password of {{ $u }}\nPASSWORD_{{ $i }}=PW"), false},
	"numbers in YAML below a comment":   {eachLine("# the account of {{ $u }}\nu{{ $i }}:\n  password: PW"), false},
	"a comment in a numbered map":       {eachLine("u{{ $i }}:\n  # the account of {{ $u }}\n  password: PW"), false},
	"below a sentence":                  {eachLine("# the password of {{ $u }}:\npassword=PW"), false},
	"below a comment of XML":            {eachLine("<!-- {{ $u }} -->\n<password>PW</password>"), false},
	"numbers with an unknown word":      {eachLine("users[{{ $i }}].whom={{ $u }}\nusers[{{ $i }}].password=PW"), false},
	"SQL of two lines":                  {eachLine("CREATE USER {{ $u }}\nWITH PASSWORD 'PW';"), false},
	"SQL of roles":                      {eachLine("CREATE ROLE {{ $u }}\nWITH PASSWORD 'PW';"), false},
	"useradd":                           {eachLine("useradd {{ $u }}\necho PW | passwd --stdin"), false},
	"passwd":                            {eachLine("{{ $u }}:PW:19000:0:99999:7:::"), true},
	"pgbouncer":                         {eachLine("\"{{ $u }}\" \"PW\""), true},
	"ACLs of Redis":                     {eachLine("user {{ $u }} on >PW ~* &* +@all"), true},
	"CSV":                               {eachLine("{{ $u }},PW,admin"), true},
	"JDBC":                              {eachLine("jdbc:postgresql://h:5432/db?user={{ $u }}&password=PW"), true},
	"connection strings of many hosts":  {eachLine("mongodb://{{ $u }}:PW@h1:27017,h2:27017/db?replicaSet=r"), true},
	"users of NATS":                     {text("authorization {\n  users = [\n{{- range .Values.users }}\n    {user: \"{{ . }}\", password: \"{{ randAlphaNum 12 }}\"}\n{{- end }}\n  ]\n}"), true},
	"nested elements of XML":            {eachLine("<user>\n<login>\n<name>{{ $u }}</name>\n</login>\n<password>PW</password>\n</user>"), false},
	"branches of XML":                   {eachLine("<user>\n<profile>\n<login>{{ $u }}</login>\n</profile>\n<auth>\n<password>PW</password>\n</auth>\n</user>"), false},
	"branches of XML alone":             {eachLine("<profile>\n<login>{{ $u }}</login>\n</profile>\n<auth>\n<password>PW</password>\n</auth>"), false},
	"indented branches of XML":          {eachLine("<user>\n  <profile>\n    <login>{{ $u }}</login>\n  </profile>\n  <auth>\n    <password>PW</password>\n  </auth>\n</user>"), false},
	"elements with lines of text":       {eachLine("<db>\n<user>\n{{ $u }}\n</user>\n<password>\nPW\n</password>\n</db>"), false},
	"a comment above an element":        {eachLine("# {{ $u }}\n<auth>\n<password>PW</password>\n</auth>"), false},
	"netrc below comments":              {eachLine("# {{ $u }}\nmachine h{{ $i }}\nlogin admin\npassword PW"), false},
	"branches of HCL":                   {eachLine("db {\n  profile {\n    login = {{ $u }}\n  }\n  password = PW\n}"), false},
	"a machine in a configuration":      {eachLine("db_user = {{ $u }}\nmachine = big\ndb_password = PW"), false},
	"branches of objects with a label":  {strings.Replace(numberedObjects("labels: {owner: team}", "a: {login: {{ $u }}}, b: {login: x}, auth: {password: PW}"), "v1\nkind: Secret", "example.com/v1\nkind: Account", 1), false},
	"objects by numbers with a label":   {numberedObjects("labels: {user: {{ $u }}}", "password: PW"), false},
	"objects by numbers with an owner":  {numberedObjects("annotations: {example.com/owner: {{ $u }}}", "password: PW"), false},
	"objects by numbers without a user": {numberedObjects("labels: {app: x}", "who: {{ $u }}, password: PW"), false},
	"fields of data and stringData": {secret + "data:\n  x: eA==\n{{- range $i, $u := .Values.users }}{{ if eq (mod $i 2) 0 }}\n  {{ $u }}: {{ randAlphaNum 12 | b64enc }}{{ end }}{{ end }}\n" +
		"stringData:\n  y: z\n{{- range $i, $u := .Values.users }}{{ if eq (mod $i 2) 1 }}\n  {{ $u }}: {{ randAlphaNum 12 }}{{ end }}{{ end }}\n", true},
}

// eachLine is a text with lines for each user, in which $u is the user, $i a number, and PW the password.
func eachLine(lines string) string {
	return text("{{- range $i, $u := .Values.users }}\n" + strings.ReplaceAll(lines, "PW", "{{ randAlphaNum 12 }}") + "\n{{- end }}")
}

// hadoop is eachLine in XML.
func hadoop(lines string) string {
	return text("<configuration>\n{{- range $i, $u := .Values.users }}\n" + strings.ReplaceAll(lines, "PW", "{{ randAlphaNum 12 }}") + "\n{{- end }}\n</configuration>")
}

// numberedObjects are Secrets, one for each user.
func numberedObjects(metadata, data string) string {
	return "{{ range $i, $u := .Values.users }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: user-{{ $i }}, " + metadata + "}\n" +
		"stringData: {" + strings.ReplaceAll(data, "PW", "{{ randAlphaNum 12 }}") + "}\n{{ end }}"
}

// numberedForms are those in which an entry has a number, and keeps its password where its number and user are the same.
var numberedForms = []string{
	"a map by numbers", "fields by numbers", "variables by numbers", "variables with numbers", "an environment by numbers",
	"connection strings by numbers", "objects by numbers", "sections by numbers", "a map by numbers with branches",
	"JSON by numbers with branches", "properties by numbers with branches", "TOML by numbers with branches",
	"objects by numbers with branches", "variables by letters", "fields by letters", "an environment by letters",
	"a map by letters", "camel case by numbers", "documents in fields by numbers", "properties of Hadoop by numbers",
	"properties of Hadoop by letters", "netrc by numbers", "numbers below a comment", "numbers in YAML below a comment",
	"a comment in a numbered map", "numbers with an unknown word", "objects by numbers with a label", "objects by numbers with an owner",
	"objects by numbers without a user",
}

// isRecognizable reports whether a form must keep the password of a user in an edit of the list.
func isRecognizable(name, user string, before, after []string) bool {
	return entryForms[name].recognizable || slices.Equal(before, after) ||
		slices.Contains(numberedForms, name) && slices.Index(before, user) == slices.Index(after, user)
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
	plain := runs().ReplaceAllStringFunc(manifest, func(run string) string {
		if text, err := decode64(run); err == nil && isReadable([]byte(text)) {
			return text
		}
		return run
	})
	for _, word := range userOrPassword().FindAllString(plain, -1) {
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
					if isRecognizable(name, user, users2[0], users2[1]) {
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

// twoIdentities are entries with a name and another identity, one for each user, in which PW is the password.
var twoIdentities = map[string]string{
	"a section":             "[NAME]\nemail = ADDRESS\npassword = PW\n",
	"a TOML table":          "[users.NAME]\nemail = \"ADDRESS\"\npassword = \"PW\"\n",
	"a YAML item":           "- {name: NAME, email: ADDRESS, password: PW}\n",
	"variables":             "NAME_EMAIL=ADDRESS\nNAME_PASSWORD=PW\n",
	"exported variables":    "export NAME_EMAIL=\"ADDRESS\"\nexport NAME_PASSWORD=\"PW\"\n",
	"variables of an image": "ENV NAME_EMAIL ADDRESS\nENV NAME_PASSWORD PW\n",
	"variables of systemd":  "Environment=\"NAME_EMAIL=ADDRESS\"\nEnvironment=\"NAME_PASSWORD=PW\"\n",
	"settings of Java":      "-DNAME.email=ADDRESS\n-DNAME.password=PW\n",
	"settings of Helm":      "--set=NAME.email=ADDRESS\n--set NAME.password=PW\n",
	"PHP":                   "define('NAME_EMAIL', 'ADDRESS');\ndefine('NAME_PASSWORD', 'PW');\n",
	"JavaScript":            "const NAME_EMAIL = 'ADDRESS';\nconst NAME_PASSWORD = 'PW';\n",
	"netrc":                 "machine NAME\nlogin ADDRESS\npassword PW\n",
	"netrc in a line":       "machine NAME login ADDRESS password PW\n",
	"properties of Hadoop":  "<property>\n<name>NAME.email</name>\n<value>ADDRESS</value>\n</property>\n<property>\n<name>NAME.password</name>\n<value>PW</value>\n</property>\n",
	"an element of XML":     "<user>\n<name>NAME</name>\n<email>ADDRESS</email>\n<password>PW</password>\n</user>\n",
	"XML":                   "<property name=\"NAME.email\" value=\"ADDRESS\"/>\n<property name=\"NAME.password\" value=\"PW\"/>\n",
}

// TestAnEntryIsAnothersIfOneOfTwoIdentitiesHasChanged: it is renewed then, and the entries beside it are kept.
func TestAnEntryIsAnothersIfOneOfTwoIdentitiesHasChanged(t *testing.T) {
	of := func(entry string, names ...string) string {
		out := ""
		for i := 0; i < len(names); i += 2 {
			out += strings.NewReplacer("NAME", names[i], "ADDRESS", names[i+1], "PW", "{{ randAlphaNum 14 }}").Replace(entry)
		}
		return text(out)
	}
	for name, entry := range twoIdentities {
		for edit, changed := range map[string][2]string{"another name": {"mallory", "a@b"}, "another email": {"root", "m@b"}} {
			t.Run(name+" "+edit, func(t *testing.T) {
				t.Parallel()
				s := newStory(t)
				read := func(template string) []string {
					return lazyregexp.New(`\b[A-Za-z0-9]{14}\b`)().FindAllString(s.deploy(template, nil).Manifest, -1)
				}
				was := read(of(entry, "root", "a@b", "bob", "c@d", "eve", "e@f"))
				is := read(of(entry, changed[0], changed[1], "bob", "c@d", "eve", "e@f"))
				if len(was) != 3 || len(is) != 3 || was[0] == is[0] || was[1] != is[1] || was[2] != is[2] {
					t.Errorf("%v has become %v:\n%s", was, is, s.earlier[1].Manifest)
				}
			})
		}
	}
}

// TestTheLineBeforeSaysWhoseAPasswordIs fails if a user gets the password of another one because the line that names him says
// more behind the name.
func TestTheLineBeforeSaysWhoseAPasswordIs(t *testing.T) {
	for _, line := range []string{"user cn=USER,dc=example", "user DOMAIN:USER", "login USER, ops", "db_user USER"} {
		for _, password := range []string{"password {{ randAlphaNum 20 }}", "db_password {{ randAlphaNum 16 | b64enc }}"} {
			s := newStory(t)
			read := func(user string) string {
				of := s.deploy(text(strings.Replace(line, "USER", user, 1)+"\n"+password), nil).Manifest
				return of[strings.LastIndex(strings.TrimSpace(of), " "):]
			}
			alices, again, bobs := read("alice"), read("alice"), read("bob")
			if alices != again || bobs == alices {
				t.Errorf("%s, %s: %q, %q, and of another user %q", line, password, alices, again, bobs)
			}
		}
	}
}

// TestUsersByOtherWords fails if a user gets the password of another one where the word for the user is joined to another, or the
// line is in the words of a program.
func TestUsersByOtherWords(t *testing.T) {
	for _, entry := range []string{
		"accessKey: USER\nsecretKey: PW", "MINIO_ACCESS_KEY=USER\nMINIO_SECRET_KEY=PW", "PGUSER=USER\nPGPASSWORD=PW", "binddn cn=USER\nbindpw PW",
		"bind_dn = \"cn=USER,dc=x\"\nbind_password = 'PW'", "dbuser=USER\ndbpass=PW", "userid: USER\npassword: PW",
		"$cfg['user'] = 'USER';\n$cfg['password'] = 'PW';", "os.environ[\"DB_USER\"] = \"USER\"\nos.environ[\"DB_PASSWORD\"] = \"PW\"",
		"props.setProperty(\"user\", \"USER\");\nprops.setProperty(\"password\", \"PW\");", "protected $user = 'USER';\nprotected $password = 'PW';",
		"declare -x DB_USER=USER\ndeclare -x DB_PASSWORD=PW", "<entry key=\"db.user\">USER</entry>\n<entry key=\"db.password\">PW</entry>",
		"--from-literal=username=USER\n--from-literal=password=PW", "--set-string auth.username=USER\n--set-string auth.password=PW", "# user: USER\npassword=PW",
		"<db>\n<profile>\n<login>USER</login>\n</profile>\n<audit>\n<user>x</user>\n</audit>\n<auth>\n<password>PW</password>\n</auth>\n</db>",
		"<login>\n<name>USER</name>\n</login>\n<password>PW</password>", "<db>\n<user>\nUSER\n</user>\n<password>PW</password>\n</db>",
		"<db>\n<login\n name=\"USER\"/>\n<password>PW</password>\n</db>", "<auth>\n<id>1</id>\n<password>PW</password>\n</auth>\n<profile>\n<login>USER</login>\n</profile>",
		"<admin-user>USER</admin-user>\n<db-auth>\n<password>PW</password>\n</db-auth>", "<user>\n  <login>\n    <name>USER</name>\n  </login>\n  <password>PW</password>\n</user>",
		"# USER\n<auth>\n<password>PW</password>\n</auth>", "<!-- USER -->\n<auth>\n<password>PW</password>\n</auth>", "# the account of USER\n[db]\npassword=PW",
		"[main]\nx=y\n# the account of USER\n[db]\npassword=PW", "machine h0\nlogin admin\npassword x\n# USER\nmachine h1\nlogin admin\npassword PW",
		"db_user = USER\nmachine = big\ndb_password = PW", "admin_user = USER\nmachine = big\npassword = PW", "db_user = USER\nmachine big\nport 5\ndb_password = PW",
		"admin_user = USER\nmachine big\npassword PW", "CREATE USER app WITH PASSWORD 'PW';\nuser=USER\npassword=PW", "ALTER ROLE app PASSWORD 'PW';\nuser USER\npassword PW",
		"CREATE USER app PASSWORD 'PW';\nCREATE USER USER\nWITH PASSWORD 'PW';", "PW=PW\nuser=USER\npassword=PW", "PW PW\nuser USER\npassword PW",
		"user PW\nuser USER\npassword PW", "# the password of USER1\npassword=PW", "# the account of USER1\nPASSWORD_0=PW", "# the account of USER1\nu0:\n  password: PW",
		"# USER\npassword: PW", "a: b\n# the password of USER\npassword: PW\nc: d", "password: PW # of USER\nc: d", "u0:\n  password: PW\n  # the account of USER\nu1:\n  x: y",
		"- name: u0 # USER\n  password: PW", "# of USER\n- name: u0\n  password: PW", "# USER password\npassword=PW",
		"<smtp>\n<login>USER</login>\n<password>PW</password>\n</smtp>\ntoken PW", "[db]\nuser USER PW\ntoken=PW",
		"[db]\nPW PW\nuser USER\npassword PW", "[db]\nuser=USER\nuser=admin\npassword=PW",
		"# USER\nport=1\npassword=PW", "smtp.auth.user=USER\nsmtp.password=PW", "[db]\nbackup_user=USER\ndb_password=PW", "smtp_user_5=USER\ndb_password_5=PW",
	} {
		s := newStory(t)
		read := func(user string) string {
			of := s.deploy(text(strings.NewReplacer("DB_USER", "DB_USER", "PGUSER", "PGUSER", "CREATE USER USER", "CREATE USER "+user, "CREATE USER", "CREATE USER", "USER", user, "PW", "{{ randAlphaNum 23 }}").Replace(entry)), nil).Manifest
			found := lazyregexp.New(`\b[A-Za-z0-9]{23}\b`)().FindAllString(of, -1)
			return found[len(found)-1]
		}
		alices, again, bobs := read("alice"), read("alice"), read("bob")
		if alices == "" || alices != again || bobs == alices {
			t.Errorf("%s: %q, %q, and of another user %q", entry, alices, again, bobs)
		}
	}
}

// nobodys are texts before and after a change that says of no password whose it is, in which PW is the password.
var nobodys = map[string][2]string{
	"a password in a comment":        {text("{{ $p := randAlpha 23 }}# {{ $p }}\npassword_0: {{ $p }}"), text("{{ $p := randAlpha 23 }}# {{ $p }}\npassword_0: {{ $p }}\na: b")},
	"something random in a comment":  {text("# id of {{ randAlpha 10 }}\npassword_0: PW"), text("# id of {{ randAlpha 10 }}\npassword_0: PW\na: b")},
	"something random above a line":  {text("# id of {{ randAlpha 10 }}\npassword=PW"), text("# id of {{ randAlpha 10 }}\npassword=PW\na=b")},
	"a comment in s3":                {text("s3:\n  # {{ randAlpha 12 }}\n  secretKey: PW"), text("s3:\n  # {{ randAlpha 12 }}\n  secretKey: PW\na: b")},
	"a comment in oauth2":            {text("oauth2:\n  # the cookie secret\n  cookieSecret: PW"), text("oauth2:\n  # the secret of cookies\n  cookieSecret: PW")},
	"a day":                          {text("# generated for x on Mon Nov 30 2026\npassword=PW"), text("# generated for x on Tue Dec 1 2026\npassword=PW")},
	"a setting in a comment":         {text("# debug = false\npassword = PW"), text("# debug = true\npassword = PW")},
	"the comment of another section": {text("[a]\nlevel = x\npassword = PW\n# root\n[b]\nq = r"), text("[a]\nlevel = x\npassword = PW\n# bob\n[b]\nq = r")},
	"a license":                      {text("# Copyright A\n# All rights reserved\npassword=PW"), text("# Copyright B\n# All rights reserved\npassword=PW")},
	"an interpreter":                 {text("#!/bin/sh\nexport P=PW"), text("#!/bin/bash\nexport P=PW")},
	"an item of a text":              {text("* a\npassword=PW"), text("* b\npassword=PW")},
	"an option":                      {text("-- SET x\npassword=PW"), text("-- SET y\npassword=PW")},
	"a machine":                      {text("machine = big\n[db]\nuser = u\npassword = PW"), text("machine = small\n[db]\nuser = u\npassword = PW")},
	"another role":                   {text("export PGPASSWORD=PW\npsql <<EOF\nCREATE ROLE readonly;\nEOF"), text("export PGPASSWORD=PW\npsql <<EOF\nCREATE ROLE readonly;\nCREATE ROLE writer;\nEOF")},
	"a script":                       {secret + "stringData: {login: \"#!/bin/sh\\necho a\", password: PW}", secret + "stringData: {login: \"#!/bin/sh\\necho b\", password: PW}"},
	"a configuration":                {secret + "stringData: {client: \"[a]\\nb=c\\n\", password: PW}", secret + "stringData: {client: \"[a]\\nb=d\\n\", password: PW}"},
	"how many users":                 {secret + "stringData: {users: \"10\", tokens: PW}", secret + "stringData: {users: \"20\", tokens: PW}"},
	"an attribute":                   {text("<a x=\"1\">\n<password>PW</password>\n</a>"), text("<a x=\"2\">\n<password>PW</password>\n</a>")},
	"a property":                     {text("<configuration scan=\"1\">\n<property>\n<name>p</name>\n<value>PW</value>\n</property>\n</configuration>"), text("<configuration scan=\"2\">\n<property>\n<name>p</name>\n<value>PW</value>\n</property>\n</configuration>")},
	"another element":                {text("<db>\n<user>x</user>\n<password>PW</password>\n</db>"), text("<db>\n<user>x</user>\n<password>PW</password>\n<port>1</port>\n</db>\n<a>\n<b>1</b>\n</a>")},
	"an object with 0 in its name":   {strings.Replace(secret, "name: s", "name: auth0", 1) + "stringData: {domain: a, session-secret: PW}", strings.Replace(secret, "name: s", "name: auth0", 1) + "stringData: {domain: b, session-secret: PW}"},
}

// TestWhatSaysNothingOfAnOwnerRenewsNothing fails if a password is renewed because of what says of nobody that it is his.
func TestWhatSaysNothingOfAnOwnerRenewsNothing(t *testing.T) {
	for name, change := range nobodys {
		s := newStory(t)
		read := func(template string) string {
			return lazyregexp.New(`\b[A-Za-z0-9]{23}\b`)().FindString(s.deploy(strings.NewReplacer("PGPASSWORD", "PGPASSWORD", "PW", "{{ randAlphaNum 23 }}").Replace(template), nil).Manifest)
		}
		if was, is := read(change[0]), read(change[1]); was == "" || was != is {
			t.Errorf("%s: %q has become %q", name, was, is)
		}
	}
}

// TestEntriesThatLookLikeYAML fails if entries of LDIF, which repeat their keys, get each other's passwords, or lose their own.
func TestEntriesThatLookLikeYAML(t *testing.T) {
	s := newStory(t)
	read := func(users ...string) []string {
		ldif := ""
		for _, user := range users {
			ldif += "dn: cn=" + user + ",dc=x\nuserPassword: {{ randAlphaNum 23 }}\n\n"
		}
		return lazyregexp.New(`\b[A-Za-z0-9]{23}\b`)().FindAllString(s.deploy(text(ldif), nil).Manifest, -1)
	}
	was, swapped := read("alice", "bob"), read("bob", "alice")
	if len(was) != 2 || len(swapped) != 2 || swapped[0] == was[0] || swapped[1] == was[1] {
		t.Errorf("%v, swapped %v", was, swapped)
	}
}

// TestSecretOfBadData fails if a chart can't be upgraded that has forgotten to encode the data of a Secret.
func TestSecretOfBadData(t *testing.T) {
	s := newStory(t)
	s.deploy(secret+"data: {password: {{ randAlphaNum 20 | b64enc }}, user: {{ b64enc \"a\" }}}\n", nil)
	s.deploy(secret+"data: {password: {{ randAlphaNum 10 }}}\n", nil)
}

// TestNumberedSecretWithoutData fails if a chart can't be upgraded whose Secret has a number and nothing in it.
func TestNumberedSecretWithoutData(t *testing.T) {
	s := newStory(t)
	for range 2 {
		s.deploy("apiVersion: v1\nkind: Secret\nmetadata: {name: user-0, annotations: {a: {{ randAlphaNum 12 }}}}\n", nil)
	}
}

// TestKeptValuesInEveryStyle fails if a document can't be read again that has kept values in several styles, of another length.
func TestKeptValuesInEveryStyle(t *testing.T) {
	const template = `{{- $p := .Values.password | default (randAlphaNum 20) }}
` + secret + `stringData:
  url: >
    postgres://app:{{ $p }}@db/app
  app.conf: {{ printf "m=x\npassword=%s\n" $p | quote }}
  password: {{ $p }}
`
	s := newStory(t)
	s.deploy(template, map[string]any{"password": "Short123"})
	m := s.deploy(template, nil).Manifest
	p := field(t, m, "Secret/s", "stringData", "password").(string)
	if url := field(t, m, "Secret/s", "stringData", "url").(string); url != "postgres://app:"+p+"@db/app\n" {
		t.Errorf("url: %q beside %s", url, p)
	}
	if conf := field(t, m, "Secret/s", "stringData", "app.conf").(string); conf != "m=x\npassword="+p+"\n" {
		t.Errorf("app.conf: %q beside %s", conf, p)
	}
}

// TestOtherCaseMayBeShorter fails if a chart can't be upgraded whose values are shorter in lower case.
func TestOtherCaseMayBeShorter(t *testing.T) {
	s := newStory(t)
	for range 4 {
		s.deploy(secret+"stringData:\n  a: {{ keys .Values.cities | first }}\n  p: {{ randAlphaNum 12 }}\n", map[string]any{"cities": map[string]any{"İzmir": 1, "Aydın": 1, "Iğdır": 1, "Iſğ İı": 1}})
	}
}

// TestDocumentsAreNoIdentities fails if entries of a document are renewed because another one, whose key says name or login, has
// changed.
func TestDocumentsAreNoIdentities(t *testing.T) {
	of := func(user string) string {
		list := func(key string) string {
			return "\n  " + key + ".yaml: |\n    users:\n    - " + key + ": " + user + "\n      secret: {{ randAlphaNum 12 }}\n    - " + key + ": bob\n      secret: {{ randAlphaNum 12 }}"
		}
		return secret + "stringData:" + list("login") + list("name") + list("username")
	}
	s := newStory(t)
	first, second := s.deploy(of("root"), nil), s.deploy(of("mallory"), nil)
	for _, key := range []string{"login", "name", "username"} {
		was := strings.Split(field(t, first.Manifest, "Secret/s", "stringData", key+".yaml").(string), "secret: ")
		is := strings.Split(field(t, second.Manifest, "Secret/s", "stringData", key+".yaml").(string), "secret: ")
		if was[2] != is[2] || was[1][:12] == is[1][:12] {
			t.Errorf("%s: %q has become %q\n%s", key, was, is, second.lines())
		}
	}
}
