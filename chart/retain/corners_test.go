package retain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deployer/chart"
)

const password = secret + `data: {password: {{ randAlphaNum 16 | b64enc }}}`

// TestCorners: what is kept of the second rendering, and what isn't.
func TestCorners(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second any
		values, later map[string]any
		object        string
		path          []any
		kept          bool // the field is what it was
		says          string
	}{
		{name: "another field changes", first: password + "\ntype: a", second: password + "\ntype: b", object: "Secret/s", path: []any{"data", "password"}, kept: true},
		{name: "a user beside it", first: secret + `stringData: {user: root, password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {user: bob, password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "a user beside it that is gone", first: secret + `stringData: {user: root, password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "a user beside it that is new", first: secret + `stringData: {password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {user: bob, password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "the user of the same thing", first: secret + `stringData: {db-user: root, db-password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {db-user: bob, db-password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "db-password"}, says: "what says whose it is has changed"},
		{name: "several users above a block", first: text("user a\nuser b\n[db]\nx = 1\npassword = {{ randAlphaNum 16 }}"), second: text("user a\nuser b\n[db]\nx = 2\npassword = {{ randAlphaNum 16 }}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1"},
		{name: "a block that begins with something generated", first: text("x\ntoken {{ randAlphaNum 16 }}\n  name a"), second: text("y\ntoken {{ randAlphaNum 16 }}\n  name a"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1"},
		{name: "users of several in a field", first: secret + `stringData: {users: "root,", passwords: "{{ randAlphaNum 16 }},"}`, second: secret + `stringData: {users: "bob,", passwords: "{{ randAlphaNum 16 }},"}`,
			object: "Secret/s", path: []any{"stringData", "passwords"}, says: "what says whose it is has changed"},
		{name: "users beside another thing", first: secret + `stringData: {users: "root,", session: "{{ randAlphaNum 16 }},"}`, second: secret + `stringData: {users: "bob,", session: "{{ randAlphaNum 16 }},"}`,
			object: "Secret/s", path: []any{"stringData", "session"}, kept: true},
		{name: "users of several variables", first: text("USERS=root,\nPASSWORDS={{ randAlphaNum 16 }},"), second: text("USERS=bob,\nPASSWORDS={{ randAlphaNum 16 }},"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "a user with a line break", first: secret + `stringData: {user: "root\n", password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {user: "bob\n", password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "a user in a comment behind it", first: text("token_0: {{ randAlphaNum 16 }} # root"), second: text("token_0: {{ randAlphaNum 16 }} # bob"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "a version in a comment above it", first: text("# made by x 1.2.3\npassword={{ randAlphaNum 16 }}"), second: text("# made by x 1.3.0\npassword={{ randAlphaNum 16 }}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1"},
		{name: "the user of an object in a label", first: secret + "  labels: {example.com/username: root}\nstringData: {password: {{ randAlphaNum 16 }}}", second: secret + "  labels: {example.com/username: bob}\nstringData: {password: {{ randAlphaNum 16 }}}",
			object: "Secret/s", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "the team of an object in a label", first: secret + "  labels: {owner: a}\nstringData: {password: {{ randAlphaNum 16 }}}", second: secret + "  labels: {owner: b}\nstringData: {password: {{ randAlphaNum 16 }}}",
			object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "the user of something else", first: secret + `stringData: {smtp-user: root, db-password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {smtp-user: bob, db-password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "db-password"}, kept: true},
		{name: "a host beside it", first: secret + `stringData: {host: a, user: root, password: {{ randAlphaNum 16 }}}`, second: secret + `stringData: {host: b, user: root, password: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "the user of a document", first: text("user: root\npassword: {{ randAlphaNum 16 }}"), second: text("user: bob\npassword: {{ randAlphaNum 16 }}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "the user of a document with a separator", first: text("---\nuser: root\npassword: {{ randAlphaNum 16 }}"), second: text("---\nuser: bob\npassword: {{ randAlphaNum 16 }}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "the user of a document, in another branch", first: text("profile: {login: root}\nauth: {password: {{ randAlphaNum 16 }}}"), second: text("profile: {login: bob}\nauth: {password: {{ randAlphaNum 16 }}}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "the user of a document, above", first: text("user: root\nauth: {password: {{ randAlphaNum 16 }}}"), second: text("user: bob\nauth: {password: {{ randAlphaNum 16 }}}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "the host of a document", first: text("server: {host: a}\nsession: {secret: {{ randAlphaNum 16 }}}"), second: text("server: {host: b}\nsession: {secret: {{ randAlphaNum 16 }}}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1", kept: false},
		{name: "users of several branches", first: text("smtp: {user: a}\ndb: {user: x}\nsession: {secret: {{ randAlphaNum 16 }}}"), second: text("smtp: {user: b}\ndb: {user: x}\nsession: {secret: {{ randAlphaNum 16 }}}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1", kept: false},
		{name: "the user of another branch than its own", first: text("smtp: {user: a}\ndb: {user: x, password: {{ randAlphaNum 16 }}}"), second: text("smtp: {user: b}\ndb: {user: x, password: {{ randAlphaNum 16 }}}"),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "Secret/s stringData.a kept from 1", kept: false},
		{name: "a table of a user", first: text("[profile]\nlogin = \"root\"\n[auth]\npassword = \"{{ randAlphaNum 16 }}\""), second: text("[profile]\nlogin = \"bob\"\n[auth]\npassword = \"{{ randAlphaNum 16 }}\""),
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "labels", first: labelled("app-1.0.0", "1.0.0"), second: labelled("app-2.0.0", "2.0.0"), object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "a URL of another user", first: withURL("root", "db"), second: withURL("bob", "db"), object: "Secret/s", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "a URL of another host", first: withURL("root", "db"), second: withURL("root", "db2"), object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "a user of the pods", first: usedBy("root"), second: usedBy("bob"), object: "Secret/s", path: []any{"stringData", "password"}, says: "a copy of it belongs to somebody else now"},
		{name: "a field with a number, beside a user with another", first: secret + `stringData: {user-0: root, user-1: bob, password-1: {{ randAlphaNum 16 }}}`,
			second: secret + `stringData: {user-0: eve, user-1: bob, password-1: {{ randAlphaNum 16 }}}`, object: "Secret/s", path: []any{"stringData", "password-1"}, kept: true},
		{name: "the user with its number in base64", first: secret + `data: {user-0: cm9vdA==, password-0: {{ randAlphaNum 16 | b64enc }}}`,
			second: secret + `data: {user-0: Ym9i, password-0: {{ randAlphaNum 16 | b64enc }}}`, object: "Secret/s", path: []any{"data", "password-0"}, says: "what says whose it is has changed"},
		{name: "the user with its number is now stringData", first: secret + `data: {user-0: cm9vdA==, password-0: {{ randAlphaNum 16 | b64enc }}}`,
			second: secret + `stringData: {user-0: root, password-0: {{ randAlphaNum 16 }}}`, object: "Secret/s", path: []any{"stringData", "password-0"}, kept: true},
		{name: "no user with its number any more", first: secret + `stringData: {user-0: root, password-0: {{ randAlphaNum 16 }}}`,
			second: secret + `stringData: {password-0: {{ randAlphaNum 16 }}}`, object: "Secret/s", path: []any{"stringData", "password-0"}, says: "what says whose it is has changed"},
		{name: "a copy with the same number, of a user that is replaced", first: numberedCopy("root", "p-0"), second: numberedCopy("bob", "p-0"),
			object: "ConfigMap/c", path: []any{"data", "p-0"}, says: "what says whose it is has changed"},
		{name: "a user in the kernel of the pods", first: runAs("1000"), second: runAs("1001"), object: "Secret/s", path: []any{"stringData", "password"}, kept: true},
		{name: "a copy without a number", first: numberedCopy("root", "p"), second: numberedCopy("bob", "p"), object: "Secret/s", path: []any{"stringData", "password-0"}, says: "what says whose it is has changed"},
		{name: "a number in the name of the release", first: numberedSecret("r1", "x"), second: numberedSecret("r1", "x, note: y"), object: "Secret/r1-db", path: []any{"stringData", "password"}, kept: true},
		{name: "a number in the name of the object", first: numberedSecret("db-1", "root"), second: numberedSecret("db-1", "bob"), object: "Secret/db-1-db", path: []any{"stringData", "password"}, says: "what says whose it is has changed"},
		{name: "another length", first: password, second: strings.Replace(password, "16", "32", 1), object: "Secret/s", path: []any{"data", "password"}, kept: true},
		{name: "a renamed key", first: password, second: strings.Replace(password, "password:", "pass:", 1), object: "Secret/s", path: []any{"data", "pass"}},
		{name: "a field before one that has it cut off", first: withCut("a", "b", "1"), second: withCut("a", "b", "2"), object: "Secret/s", path: []any{"stringData", "a"}, kept: true},
		{name: "a field behind one that has it cut off", first: withCut("b", "a", "1"), second: withCut("b", "a", "2"), object: "Secret/s", path: []any{"stringData", "b"}, kept: true},
		{name: "a field beside a part of it", first: withPart("1"), second: withPart("2"), object: "Secret/s", path: []any{"stringData", "a"}, kept: true},
		{name: "two values in one word", first: inOneWord("1"), second: inOneWord("2"), object: "Secret/s", path: []any{"stringData", "a"}, kept: true},
		{name: "data becomes stringData", first: secret + `data: {p: {{ randAlphaNum 16 | b64enc }}}`, second: secret + `stringData: {p: {{ randAlphaNum 16 }}}`,
			object: "Secret/s", path: []any{"stringData", "p"}, kept: true, says: "kept from 1"},
		{name: "a value is given", first: secret + `data: {p: {{ .Values.p | default (randAlphaNum 16) | b64enc }}}`, second: secret + `data: {p: {{ .Values.p | default (randAlphaNum 16) | b64enc }}}`,
			later: map[string]any{"p": "given"}, object: "Secret/s", path: []any{"data", "p"}},
		{name: "a value isn't given any more", first: secret + `data: {p: {{ .Values.p | default (randAlphaNum 16) | b64enc }}}`, second: secret + `data: {p: {{ .Values.p | default (randAlphaNum 16) | b64enc }}}`,
			values: map[string]any{"p": "given"}, object: "Secret/s", path: []any{"data", "p"}, kept: true},
		{name: "htpasswd of another password", first: secret + `stringData: {a: "{{ htpasswd "bob" .Values.p }}"}`, second: secret + `stringData: {a: "{{ htpasswd "bob" .Values.p }}"}`,
			values: map[string]any{"p": "a"}, later: map[string]any{"p": "b"}, object: "Secret/s", path: []any{"stringData", "a"}, says: "made of another value"},
		{name: "htpasswd of another user", first: secret + `stringData: {a: "{{ htpasswd .Values.u "p" }}"}`, second: secret + `stringData: {a: "{{ htpasswd .Values.u "p" }}"}`,
			values: map[string]any{"u": "a"}, later: map[string]any{"u": "b"}, object: "Secret/s", path: []any{"stringData", "a"}, says: "what says whose it is has changed"},
		{name: "encryptAES of other text", first: secret + `stringData: {a: {{ encryptAES "k" .Values.p }}}`, second: secret + `stringData: {a: {{ encryptAES "k" .Values.p }}}`,
			values: map[string]any{"p": "a"}, later: map[string]any{"p": "b"}, object: "Secret/s", path: []any{"stringData", "a"}, says: "made of another value"},
		{name: "other names in a certificate", first: secret + `{{ $c := genSelfSignedCert "a" nil (list .Values.p) 365 }}stringData: {c: {{ $c.Cert | quote }}}`,
			second: secret + `{{ $c := genSelfSignedCert "a" nil (list .Values.p) 365 }}stringData: {c: {{ $c.Cert | quote }}}`,
			values: map[string]any{"p": "a"}, later: map[string]any{"p": "b"}, object: "Secret/s", path: []any{"stringData", "c"}, says: "the names of the certificate changed"},
		{name: "another lifetime", first: secret + `stringData: {c: {{ (genCA "a" 365).Cert | quote }}}`, second: secret + `stringData: {c: {{ (genCA "a" 730).Cert | quote }}}`,
			object: "Secret/s", path: []any{"stringData", "c"}, says: "lifetime"},
		{name: "another kind of key", first: secret + `stringData: {c: {{ genPrivateKey "ecdsa" | quote }}}`, second: secret + `stringData: {c: {{ genPrivateKey "ed25519" | quote }}}`,
			object: "Secret/s", path: []any{"stringData", "c"}, says: "the kind of key has changed"},
		{name: "one more certificate of the CA", first: secret + `{{ $ca := genCA "ca" 365 }}stringData: {ca: {{ $ca.Cert | quote }}}`,
			second: secret + `{{ $ca := genCA "ca" 365 }}stringData: {ca: {{ $ca.Cert | quote }}, c: {{ (genSignedCert "x" nil nil 365 $ca).Cert | quote }}}`,
			object: "Secret/s", path: []any{"stringData", "ca"}, says: "belongs to it and is new"},
		{name: "one more copy of the CA", first: secret + `{{ $ca := genCA "ca" 365 }}stringData: {ca: {{ $ca.Cert | quote }}}`,
			second: secret + `{{ $ca := genCA "ca" 365 }}stringData: {ca: {{ $ca.Cert | quote }}, c: {{ $ca.Cert | quote }}}`,
			object: "Secret/s", path: []any{"stringData", "ca"}, kept: true},
		{name: "a prefix in one word", first: secret + `stringData: {a: app{{ randAlphaNum 12 }}}`, second: secret + `stringData: {a: svc{{ randAlphaNum 12 }}}`,
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what is around it"},
		{name: "one more of a list", first: secret + `stringData: {a: "{{ randAlphaNum 9 }},{{ randAlphaNum 9 }}"}`, second: secret + `stringData: {a: "{{ randAlphaNum 9 }},{{ randAlphaNum 9 }},{{ randAlphaNum 9 }}"}`,
			object: "Secret/s", path: []any{"stringData", "a"}, says: "what is around it"},
		{name: "one more entry of a map", first: keysOf(20), second: keysOf(21),
			object: "ConfigMap/c", path: []any{"data", "a"}, says: "other parts than before"},
		{name: "a section is new", first: config + "data:\n  c: |\n    [a]\n    p = {{ randAlphaNum 9 }}\n", second: config + "data:\n  c: |\n    [0]\n    p = {{ randAlphaNum 9 }}\n    [a]\n    q = 1\n    p = {{ randAlphaNum 9 }}\n",
			object: "ConfigMap/c", path: []any{"data", "c"}, says: "ConfigMap/c data.c"},
		{name: "a template becomes a hook", first: password, second: strings.Replace(password, "  name: s\n", "  name: s\n  annotations: {helm.sh/hook: pre-upgrade}\n", 1) + "\n---\n" + config,
			object: "ConfigMap/c", path: []any{"data"}, kept: true, says: "Secret/s data.password kept from 1"},
		{name: "a hook becomes a template", first: strings.Replace(password, "  name: s\n", "  name: s\n  annotations: {helm.sh/hook: pre-install}\n", 1) + "\n---\n" + config, second: password + "\n---\n" + config,
			object: "ConfigMap/c", path: []any{"data"}, kept: true, says: "Secret/s data.password kept from 1"},
		{name: "one more item in any order", first: listOf("a", "b", "c") + "\n---\n" + secret, second: listOf("a", "b", "c", "d") + "\n---\n" + secret, object: "Secret/s", path: []any{"data"}, kept: true, says: `items[name="b"].value kept from 1`},
		{name: "a checksum elsewhere goes with its Secret", first: checksumInEnvironment("a"), second: checksumInEnvironment("b"),
			object: "Deployment/d", path: []any{"spec", "template", "spec", "containers", 0, "env", 0, "value"}, says: "what it is the hash of has changed"},
		{name: "a hash of a password isn't a checksum", first: hashOfPassword("a"), second: hashOfPassword("b"), object: "Secret/s", path: []any{"stringData", "h"}, kept: true},
		{name: "a hash of a hash", first: hashOfHash("a"), second: hashOfHash("b"), object: "Secret/s", path: []any{"stringData", "c"}, kept: true},
		{name: "JSON in any order stays JSON", first: shuffledJSON("1"), second: shuffledJSON("2"), object: "ConfigMap/c", path: []any{"data", "p"}, kept: true, says: "data.c kept from 1"},
		{name: "restarts go on", first: workload(`{{ randAlphaNum 5 }}`), second: workload(`{{ randAlphaNum 5 }}`), object: "Deployment/d", path: podAnnotation, says: "restarts the pods"},
		{name: "restarts by hash go on", first: workload(`{{ randAlphaNum 5 | sha256sum }}`), second: workload(`{{ randAlphaNum 5 | sha256sum }}`), object: "Deployment/d", path: podAnnotation, says: "restarts the pods"},
		{name: "restarts by time go on", first: workload(`{{ now.UnixNano }}`), second: workload(`{{ now.UnixNano }}`), object: "Deployment/d", path: podAnnotation, says: "restarts the pods"},
		{name: "restarts by hash of time go on", first: workload(`{{ now | toString | sha256sum }}`), second: workload(`{{ now | toString | sha256sum }}`), object: "Deployment/d", path: podAnnotation, says: "restarts the pods"},
		{name: "a checksum stays", first: checksummed("a"), second: checksummed("a"), object: "Deployment/d", path: podAnnotation, kept: true},
		{name: "a checksum in part stays", first: checksummed("a", " | trunc 10"), second: checksummed("a", " | trunc 10"), object: "Deployment/d", path: podAnnotation, kept: true},
		{name: "a checksum goes with its Secret", first: checksummed("a"), second: checksummed("b"), object: "Deployment/d", path: podAnnotation, says: "what it is the hash of has changed"},
		{name: "a copy in an annotation", first: secret + `{{ $p := randAlphaNum 16 }}data: {p: {{ $p | b64enc }}}` + "\n---\n" + workload(`{{ $p }}`), second: secret + `{{ $p := randAlphaNum 16 }}data: {p: {{ $p | b64enc }}}` + "\n---\n" + workload(`{{ $p }}`),
			object: "Deployment/d", path: podAnnotation, kept: true},
		{name: "a hash of a password in an annotation", first: secret + `{{ $p := randAlphaNum 16 }}data: {p: {{ $p | b64enc }}}` + "\n---\n" + workload(`{{ $p | sha256sum }}`), second: secret + `{{ $p := randAlphaNum 16 }}data: {p: {{ $p | b64enc }}}` + "\n---\n" + workload(`{{ $p | sha256sum }}`),
			object: "Deployment/d", path: podAnnotation, kept: true},
		{name: "an annotation asks for new ones", first: password, second: strings.Replace(password, "  name: s\n", "  name: s\n  annotations: {deployer.io/generated: renew}\n", 1),
			object: "Secret/s", path: []any{"data", "password"}, says: "deployer.io/generated: renew"},
		{name: "a generated name and what refers to it", first: config + "data: {ref: job-{{ randAlphaNum 9 | lower }}}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: z}\n",
			second: "{{ $n := printf \"job-%s\" (randAlphaNum 9 | lower) }}" + config + "data: {ref: {{ $n }}}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: {{ $n }}}\n",
			object: "ConfigMap/c", path: []any{"data", "ref"}, says: "generated name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			first := s.deploy(c.first, c.values)
			if c.later == nil {
				c.later = c.values
				if c.name == "a value isn't given any more" {
					c.later = nil
				}
			}
			second := s.deploy(c.second, c.later)
			now := field(t, second.Manifest, c.object, c.path...)
			var was any
			if c.path[0] == "stringData" && !strings.Contains(first.Manifest, "stringData") {
				was = decodeB64(t, field(t, first.Manifest, c.object, "data", c.path[1]))
			} else if strings.Contains(first.Manifest, "name: "+c.object[strings.Index(c.object, "/")+1:]) {
				was = field(t, first.Manifest, c.object, c.path...)
			}
			if (now == was) != c.kept || !strings.Contains(second.lines(), c.says) {
				t.Errorf("kept %v, want %v, saying %q:\n%s\nfrom:\n%s\nto:\n%s", now == was, c.kept, c.says, second.lines(), first.Manifest, second.Manifest)
			}
		})
	}
}

// labelled is a Secret with the labels of a version of a chart.
func labelled(chart, version string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  labels: {app.kubernetes.io/name: " + chart + ", helm.sh/chart: " + chart + ", app.kubernetes.io/version: " + version + "}\n" +
		"stringData: {username: app, password: {{ randAlphaNum 16 }}}"
}

// withCut is a password in a field, and cut off in another one.
func withCut(whole, cut, level string) string {
	fields := map[string]string{whole: "{{ $p }}", cut: "{{ trunc 8 $p }}"}
	return "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {a: " + fields["a"] + ", b: " + fields["b"] + ", level: x" + level + "}"
}

// withPart is a password, and a part of it that isn't its beginning.
func withPart(level string) string {
	return "{{ $p := randAlphaNum 20 }}" + secret + "stringData: {a: {{ $p }}, b: {{ substr 4 16 $p }}, level: x" + level + "}"
}

// inOneWord is a password and a token, and both in one word.
func inOneWord(level string) string {
	return "{{ $p := randAlphaNum 12 }}{{ $t := randAlphaNum 12 }}" + secret + "stringData: {a: {{ $p }}{{ $t }}, b: {{ $p }}, c: {{ $t }}, level: x" + level + "}"
}

// withURL is a password, and a URL with it.
func withURL(user, host string) string {
	return "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {password: {{ $p }}, url: \"postgres://" + user + ":{{ $p }}@" + host + "/app\"}"
}

// usedBy is a password, and a workload that uses it.
func usedBy(user string) string {
	return "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {password: {{ $p }}}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n" +
		"spec: {template: {spec: {containers: [{name: a, env: [{name: USER, value: " + user + "}, {name: PASSWORD, value: {{ $p }}}]}]}}}"
}

// runAs is a password, and a container that has it and runs as a user of the kernel.
func runAs(user string) string {
	return "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {password: {{ $p }}}\n---\n" + pods("securityContext: {runAsUser: "+user+"}, env: [{name: PASSWORD, value: {{ $p }}}]")
}

// numberedSecret is a Secret of a user, with a number in its name.
func numberedSecret(prefix, user string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + prefix + "-db}\nstringData: {user: " + user + ", password: {{ randAlphaNum 16 }}}\n"
}

// numberedCopy is the password of a user with a number, and a copy of it.
func numberedCopy(user, key string) string {
	return "{{ $p := randAlphaNum 16 }}" + secret + `stringData: {user-0: ` + user + `, password-0: {{ $p }}}` + "\n---\n" + config + "data: {" + key + ": {{ $p }}}"
}

// items is a list in any order, each with something generated.
func listOf(names ...string) string {
	all := ""
	for _, name := range names {
		all += ` "` + name + `" 1`
	}
	return config + "items: [{{ range keys (dict" + all + ") }}{name: {{ . }}, value: {{ randAlphaNum 12 }}},{{ end }}]"
}

// keysOf is a text of the keys of a map, of which there are enough that no order repeats by chance.
func keysOf(n int) string {
	return fmt.Sprintf("{{ $d := dict }}{{ range until %d }}{{ $_ := set $d (printf \"k%%d\" .) 1 }}{{ end }}", n) + config + `data: {a: {{ $d | keys | join "," | quote }}}`
}

func hashOfPassword(level string) string {
	return secret + `{{ $p := randAlphaNum 16 }}stringData: {p: {{ $p }}, h: "{{ printf "user:%s" $p | sha256sum }}", level: ` + level + `}`
}

// hashOfHash has a hash before what it is made of, which is a hash of the password.
func hashOfHash(level string) string {
	return secret + `{{ $p := randAlphaNum 16 }}stringData: {c: {{ $p | sha256sum | sha256sum }}, h: {{ $p | sha256sum }}, p: {{ $p }}, level: ` + level + `}`
}

// shuffledJSON is a text in JSON with a list in any order.
func shuffledJSON(level string) string {
	return config + `{{ $p := randAlphaNum 12 }}data: {p: {{ $p }}, c: {{ dict "l" (keys (dict "aa" 1 "bb" 2 "cc" 3 "dd" 4 "ee" 5 "ff" 6 "gg" 7)) "level" ` + level + ` "p" $p | toJson | quote }}}`
}

var podAnnotation = []any{"spec", "template", "metadata", "annotations", "x"}

func workload(value string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {metadata: {annotations: {x: \"" + value + "\"}}}}\n"
}

func checksummed(level string, more ...string) map[string]string {
	return map[string]string{
		"secret.yaml": secret + `data: {p: {{ randAlphaNum 16 | b64enc }}, level: {{ "` + level + `" | b64enc }}}`,
		"d.yaml":      workload(`{{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum` + strings.Join(more, "") + ` }}`),
	}
}

// TestAllOfASetIsRenewed: a certificate that is due takes along its CA, the other
// certificates, and their copies, but nothing else.
func TestAllOfASetIsRenewed(t *testing.T) {
	template := `{{ $ca := genCA "ca" 3650 }}{{ $c := genSignedCert "a" nil nil 90 $ca }}` + secret +
		`stringData: {ca: {{ $ca.Cert | quote }}, crt: {{ $c.Cert | quote }}, key: {{ $c.Key | quote }}, p: {{ randAlphaNum 12 }}}
---
` + config + `data: {ca: {{ $ca.Cert | quote }}}`
	s := newStory(t)
	first := s.deploy(template, nil)
	s.now = s.now.Add(59 * 24 * time.Hour)
	if early := s.plan(template, nil); early.Manifest != first.Manifest || len(early.Warnings) > 0 {
		t.Fatalf("renewed before two thirds: %v\n%s", early.Warnings, early.lines())
	}
	s.now = s.now.Add(2 * 24 * time.Hour)
	second := s.deploy(template, nil)
	for _, key := range []string{"ca", "crt", "key"} {
		if field(t, first.Manifest, "Secret/s", "stringData", key) == field(t, second.Manifest, "Secret/s", "stringData", key) {
			t.Errorf("%s is kept", key)
		}
	}
	if field(t, second.Manifest, "Secret/s", "stringData", "ca") != field(t, second.Manifest, "ConfigMap/c", "data", "ca") {
		t.Error("the copy of the CA is another one")
	}
	if field(t, first.Manifest, "Secret/s", "stringData", "p") != field(t, second.Manifest, "Secret/s", "stringData", "p") {
		t.Error("the password has changed too")
	}
	if len(second.Warnings) != 1 || !strings.Contains(second.Warnings[0], "certificate of Secret/n/s expires on ") {
		t.Errorf("warnings: %q", second.Warnings)
	}
}

// TestFailedRevisionsCountWhereTheyAreLive: the value that a release wrote last is
// kept; what somebody has changed by hand isn't.
func TestFailedRevisionsCountWhereTheyAreLive(t *testing.T) {
	s := newStory(t)
	read := func(r *Result) any { return field(t, r.Manifest, "Secret/s", "data", "password") }
	document := func(r *Result) string { return r.Manifest }
	first := s.deploy(password, nil)
	s.policy = Renew
	failed := s.deploy(password, nil)
	s.earlier[1].Successful = false
	s.policy = Keep
	if got := read(s.plan(password, nil)); got != read(first) {
		t.Error("nothing is live, and the value of a failed revision counts")
	}
	s.live["Secret/s"] = document(failed)
	if r := s.plan(password, nil); read(r) != read(failed) || !strings.Contains(r.lines(), "kept from 2") {
		t.Errorf("the live value of a failed revision doesn't count: %s", r.lines())
	}
	s.live["Secret/s"] = document(first)
	if got := read(s.plan(password, nil)); got != read(first) {
		t.Error("a value that was never written counts")
	}
	s.live["Secret/s"] = secret + "data: {password: YnkgaGFuZA==}"
	if got := read(s.plan(password, nil)); got != read(first) {
		t.Error("a value set by hand, or of a failed revision, counts")
	}
	s.earlier = s.earlier[1:] // the first install has failed
	s.live["Secret/s"] = document(failed)
	if got := read(s.plan(password, nil)); got != read(failed) {
		t.Error("what a failed install has written is lost")
	}
}

// TestJSONStaysJSON: what is put into JSON in a text doesn't make YAML of it.
func TestJSONStaysJSON(t *testing.T) {
	s := newStory(t)
	for _, level := range []string{"1", "1", "2", "2"} {
		c := field(t, s.deploy(shuffledJSON(level), nil).Manifest, "ConfigMap/c", "data", "c").(string)
		if !json.Valid([]byte(c)) {
			t.Errorf("no JSON: %s", c)
		}
	}
}

// TestCommentsAreNotHeldBack: what the chart says in a text of an order that is generated is
// as the chart has it now.
func TestCommentsAreNotHeldBack(t *testing.T) {
	s := newStory(t)
	of := func(comment string) string {
		return config + "data:\n  c: |\n    # " + comment + "\n{{ range keys (dict \"aa\" 1 \"bb\" 2 \"cc\" 3 \"dd\" 4 \"ee\" 5 \"ff\" 6 \"gg\" 7) }}    {{ . }}: {{ randAlphaNum 12 }}\n{{ end }}"
	}
	s.deploy(of("before"), nil)
	if got := field(t, s.deploy(of("after"), nil).Manifest, "ConfigMap/c", "data", "c").(string); !strings.Contains(got, "# after") {
		t.Errorf("held back: %s", got)
	}
}

// TestAgreeingByChanceIsNotKeeping: a value that comes out as a failed revision had it is
// none that the templates state.
func TestAgreeingByChanceIsNotKeeping(t *testing.T) {
	const template = config + `data: {a: "{{ randInt 0 2 }}"}`
	s := newStory(t)
	was := field(t, s.deploy(template, nil).Manifest, "ConfigMap/c", "data", "a").(string)
	other := map[string]string{"0": "1", "1": "0"}[was]
	s.earlier = append(s.earlier, Revision{Number: 2, Manifest: strings.Replace(s.earlier[0].Manifest, `"`+was+`"`, `"`+other+`"`, 1)})
	s.live["ConfigMap/c"] = s.earlier[0].Manifest
	for range 12 {
		if got := field(t, s.plan(template, nil).Manifest, "ConfigMap/c", "data", "a"); got != was {
			t.Fatalf("got %v, want %v", got, was)
		}
	}
}

// TestWebhookIsRenewedAsAWhole: with a certificate that is due go its CA, the bundle of the
// webhook, the copy of it and the checksum that restarts the pods.
func TestWebhookIsRenewedAsAWhole(t *testing.T) {
	template := map[string]string{
		"_helpers.tpl": `{{ define "certs" }}{{ if not (hasKey .Values "certs") }}{{ $ca := genCA "ca" 3650 }}{{ $_ := set .Values "certs" (dict "ca" $ca "c" (genSignedCert "a" nil nil 90 $ca)) }}{{ end }}{{ end }}`,
		"secret.yaml":  `{{ include "certs" . }}` + secret + `data: {ca.crt: {{ .Values.certs.ca.Cert | b64enc }}, tls.crt: {{ .Values.certs.c.Cert | b64enc }}, tls.key: {{ .Values.certs.c.Key | b64enc }}}`,
		"hook.yaml": `{{ include "certs" . }}apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: a.b.c, clientConfig: {caBundle: {{ .Values.certs.ca.Cert | b64enc }}}}]`,
		"d.yaml": workload(`{{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}`),
	}
	bundle, checksum := []any{"webhooks", 0, "clientConfig", "caBundle"}, podAnnotation
	s := newStory(t)
	first := s.deploy(template, map[string]any{})
	s.now = s.now.Add(59 * 24 * time.Hour)
	early := s.plan(template, map[string]any{})
	for _, c := range []struct {
		object string
		path   []any
	}{{"MutatingWebhookConfiguration/w", bundle}, {"Deployment/d", checksum}, {"Secret/s", []any{"data", "ca.crt"}}, {"Secret/s", []any{"data", "tls.key"}}} {
		if field(t, first.Manifest, c.object, c.path...) != field(t, early.Manifest, c.object, c.path...) {
			t.Errorf("%s %v is renewed before two thirds:\n%s", c.object, c.path, early.lines())
		}
	}
	s.now = s.now.Add(2 * 24 * time.Hour)
	due := s.deploy(template, map[string]any{})
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if field(t, first.Manifest, "Secret/s", "data", key) == field(t, due.Manifest, "Secret/s", "data", key) {
			t.Errorf("%s is kept:\n%s", key, due.lines())
		}
	}
	if field(t, due.Manifest, "MutatingWebhookConfiguration/w", bundle...) != field(t, due.Manifest, "Secret/s", "data", "ca.crt") {
		t.Error("the webhook has another CA than the Secret")
	}
	if field(t, first.Manifest, "Deployment/d", checksum...) == field(t, due.Manifest, "Deployment/d", checksum...) {
		t.Error("the pods aren't restarted with the new certificate")
	}
	s.now = time.Now() // the new one was made just now
	if again := s.plan(template, map[string]any{}); again.Manifest != due.Manifest || len(again.Warnings) > 0 {
		t.Errorf("renewed twice: %v\n%s", again.Warnings, again.lines())
	}
}

// TestTimesAreKeptWhole: a part of a time that agrees with another part of a later one is
// nothing that the chart states.
func TestTimesAreKeptWhole(t *testing.T) {
	segments := segmentsOf([]string{"2026-11-22T14:06:13.641Z", "2027-12-30T03:13:16.902Z"})
	if was := segments.match("2026-11-22T14:06:09.640Z"); len(was) != 1 {
		t.Errorf("got %q of %+v", was, segments)
	}
}

// TestNumbersAreNotShuffled fails if a time or a number isn't kept because another rendering has the same digits in another order by
// chance, or if a list of numbers isn't known as one of which only the order is generated.
func TestNumbersAreNotShuffled(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		wanted bool
	}{
		{"2026-11-29T21:48:32.930Z", "2026-11-29T21:48:32.093Z", false},
		{"417", "741", false},
		{"id-417", "id-741", false},
		{"8080,9090", "9090,8080", true},
		{"abc1", "1cab", true},
		{"abc", "abd", false},
	} {
		if got := shuffledParts([]string{c.a, c.b}) != nil; got != c.wanted {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

// TestRandomTextsThatBeginOrEndAlikeAreKept: characters that two renderings of a password share by chance belong to the password,
// and those that all renderings share to the chart.
func TestRandomTextsThatBeginOrEndAlikeAreKept(t *testing.T) {
	const recorded = "Aq7w8E9r1T2y"
	for name, test := range map[string]struct {
		renderings []string
		want       string
	}{
		"alike at the beginning": {[]string{"1yMlZMRlEBkK", "1yMq7pTz03Vc", "g5Lw0cXn8RuD"}, recorded},
		"alike at the end":       {[]string{"lZMRlEBkK1yM", "q7pTz03Vc1yM", "w0cXn8RuDg5L"}, recorded},
		"a prefix of the chart":  {[]string{"1yMlZMRlEBkK", "1yMq7pTz03Vc", "1yMw0cXn8RuD"}, "1yMlZMRlEBkK"},
	} {
		of := func(password string) *chart.Rendered {
			return &chart.Rendered{Manifest: secret + "stringData:\n  a: |\n    [eve]\n    password = " + password + "\n"}
		}
		next := 0
		r := Renderer{Calls: chartOf("{{ randAlphaNum 12 }}").TemplateCalls(chart.Input{})}
		r.Render = func(context.Context) (*chart.Rendered, error) {
			next++
			return of(test.renderings[next]), nil
		}
		result, _, err := r.Decide(context.Background(), Input{
			Rendered: NewRevision(of(test.renderings[0]).Manifest, nil),
			Earlier:  []Revision{{Number: 1, Successful: true, Manifest: of(recorded).Manifest}},
		})
		if err != nil || result.Manifest != of(test.want).Manifest {
			t.Errorf("%s: %v, want %s:\n%s", name, err, test.want, result.Manifest)
		}
	}
}

// TestNotesHaveWhatIsDeployed: text rendered beside the manifest gets kept values.
func TestNotesHaveWhatIsDeployed(t *testing.T) {
	s := newStory(t)
	template := secret + "stringData: {p: {{ randAlphaNum 16 }}}"
	first := s.deploy(template, nil)
	second := s.plan(template, nil)
	if len(second.replacements) != 2 {
		t.Fatal(second.replacements)
	}
	want := "password: " + field(t, first.Manifest, "Secret/s", "stringData", "p").(string)
	if got := second.Replace("password: " + second.replacements[0]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
