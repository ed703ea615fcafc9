package retain

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/chart"
	"deployer/internal/kube"
)

// A story is a release of a chart, without a cluster.
type story struct {
	*testing.T
	earlier []Revision
	policy  Policy
	now     time.Time
	next    time.Duration     // until the next upgrade
	live    map[string]string // documents by Kind/name

	templates any // of the revision before
	values    map[string]any
}

// changed are the texts among values.
func changed(values map[string]any) (out []string) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{T: t, now: time.Now(), live: map[string]string{}}
}

// chartOf is a chart of templates: one, or several by name.
func chartOf(templates any) *chart.Chart {
	files, ok := templates.(map[string]string)
	if !ok {
		files = map[string]string{"t.yaml": templates.(string)}
	}
	c := &helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "c", Version: "1.0.0"}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		c.Templates = append(c.Templates, &helmchart.File{Name: "templates/" + name, Data: []byte(files[name])})
	}
	return &chart.Chart{Helm: c}
}

// deploy decides about a chart and records the outcome.
func (s *story) deploy(templates any, values map[string]any) *Result {
	s.Helper()
	r := s.plan(templates, values)
	s.templates, s.values = templates, values
	s.earlier = append(s.earlier, Revision{Number: len(s.earlier) + 1, Successful: true, Manifest: r.Manifest, Hooks: r.Hooks})
	return r
}

// slow are functions that take seconds under the race detector.
var slow = []string{"genCA", "genSelfSignedCert", "genSignedCert", "genPrivateKey", "htpasswd", "bcrypt"}

func (s *story) plan(templates any, values map[string]any) *Result {
	s.Helper()
	if text := fmt.Sprint(templates); testing.Short() && slices.ContainsFunc(slow, func(f string) bool { return strings.Contains(text, f) }) {
		s.Skip("makes keys or salted hashes, which takes long")
	}
	r, err := s.decide(chartOf(templates), values, reflect.DeepEqual(values, s.values) && reflect.DeepEqual(templates, s.templates))
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// decide renders a chart and decides what is kept.
func (s *story) decide(c *chart.Chart, values map[string]any, sameInput bool) (*Result, error) {
	in := chart.Input{Release: "r", Namespace: "n", Values: values, Upgrade: len(s.earlier) > 0}
	renderer := Renderer{Calls: c.TemplateCalls(in), Begun: time.Now()}
	renderer.Render = func(ctx context.Context) (*chart.Rendered, error) { return c.RenderAgain(ctx, in) }
	first, err := c.Render(context.Background(), in)
	if err != nil {
		return nil, err
	}
	mayBeDeployed := s.earlier // as of the last successful revision
	for i, r := range s.earlier {
		if r.Successful {
			mayBeDeployed = s.earlier[i:]
		}
	}
	r, _, err := renderer.Decide(context.Background(), Input{
		Release: "r1", Namespace: "n", Policy: s.policy, Rendered: NewRevision(first.Manifest, first.Hooks), Earlier: mayBeDeployed,
		Older: func() []Revision { return s.earlier[:len(s.earlier)-len(mayBeDeployed)] }, Now: func() time.Time { return s.now },
		NextUpgrade: func(time.Time) time.Duration { return s.next },
		SameInput:   sameInput, ChangedValues: changed(values),
		Live: func(id kube.ID) (*unstructured.Unstructured, error) {
			return objectOf(s.T, s.live[id.Kind+"/"+id.Name]), nil
		},
	})
	return r, err
}

// field is what an object of a manifest has at a path of keys and positions.
func field(t *testing.T, manifest, object string, path ...any) any {
	t.Helper()
	for _, text := range documentTexts(Revision{Manifest: manifest}) {
		o := objectOf(t, text)
		if o.GetKind()+"/"+o.GetName() != object {
			continue
		}
		var value any = o.Object
		for _, step := range path {
			switch at := step.(type) {
			case string:
				m, _ := value.(map[string]any)
				value = m[at]
			case int:
				value = value.([]any)[at]
			}
		}
		return value
	}
	t.Fatalf("no %s in:\n%s", object, manifest)
	return nil
}

// objectOf reads a document; nil if there is none.
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var root map[string]any
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if root == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: root}
}

func (r *Result) lines() string {
	var out []string
	for _, v := range r.Values {
		if v.Kept() {
			out = append(out, fmt.Sprintf("%s %s kept from %d", v.ID, v.Path, v.Revision))
		} else {
			out = append(out, fmt.Sprintf("%s %s: %s", v.ID, v.Path, v.Reason))
		}
	}
	return strings.Join(out, "\n")
}

const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n"
const config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"

// kept are snippets whose upgrade without a change has to write nothing.
var kept = map[string]string{
	"randAlphaNum":        secret + `stringData: {a: "{{ randAlphaNum 16 }}"}`,
	"unquoted":            secret + `stringData: {a: x{{ randAlphaNum 16 }}}`,
	"data":                secret + `data: {a: {{ randAlphaNum 16 | b64enc }}}`,
	"randAlpha":           secret + `data: {a: {{ randAlpha 16 | b64enc | quote }}}`,
	"randNumeric":         secret + `stringData: {a: "{{ randNumeric 12 }}"}`,
	"a number":            config + `data: {a: "x"}` + "\nn: {{ randNumeric 6 }}",
	"randAscii":           secret + `data: {a: {{ randAscii 16 | b64enc }}}`,
	"randAscii quoted":    secret + `stringData: {a: {{ randAscii 24 | quote }}}`,
	"randAscii squoted":   secret + `stringData: {a: {{ randAscii 24 | replace "'" "" | squote }}}`,
	"randBytes":           secret + `stringData: {a: {{ randBytes 32 }}}`,
	"randBytes in data":   secret + `data: {a: {{ randBytes 32 }}}`,
	"randBytes in a line": secret + "stringData:\n  a: |\n    key={{ randBytes 33 }}\n    path=/var/lib/{{ randAlphaNum 8 }}/x\n",
	"uuidv4":              config + `data: {a: {{ uuidv4 }}}`,
	"randInt":             config + `data: {a: "{{ randInt 0 3 }}"}`,
	"shuffle":             config + `data: {a: {{ shuffle "abcdefghij" }}}`,
	"keys":                config + `data: {a: {{ dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 "f" 6 "g" 7 | keys | join "," | quote }}}`,
	"values":              config + `data: {a: {{ dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 "f" 6 "g" 7 | values | join "" | quote }}}`,
	"keys as items":       config + `items: [{{ range dict "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 "f" 6 "g" 7 | keys }}{name: {{ . }}},{{ end }}]`,
	"now":                 config + `data: {a: {{ now | date "2006-01-02T15:04:05.000Z" | quote }}}`,
	"now as it is":        config + `data: {a: "{{ now }}"}`,
	"unixEpoch":           config + `data: {a: "{{ now | unixEpoch }}"}`,
	"ago":                 config + `data: {a: "{{ ago (toDate "2006" "2006") }}"}`,
	"bcrypt":              secret + `stringData: {a: {{ bcrypt "pw" }}}`,
	"htpasswd":            secret + `stringData: {a: "{{ htpasswd "bob" "pw" }}"}`,
	"htpasswd in data":    secret + `data: {a: {{ htpasswd "bob" "pw" | b64enc }}}`,
	"htpasswd of random":  secret + `{{ $p := randAlphaNum 12 }}data: {a: {{ htpasswd "bob" $p | b64enc }}, p: {{ $p | b64enc }}}`,
	"encryptAES":          secret + `stringData: {a: {{ encryptAES "key" "text" }}}`,
	"genPrivateKey":       secret + `stringData: {a: {{ genPrivateKey "ecdsa" | quote }}}`,
	"genCA":               secret + `{{ $c := genCA "ca" 365 }}data: {crt: {{ $c.Cert | b64enc }}, key: {{ $c.Key | b64enc }}}`,
	"genCA as a block":    secret + "{{ $c := genCA \"ca\" 365 }}stringData:\n  crt: |\n{{ $c.Cert | indent 4 }}\n  key: {{ $c.Key | quote }}",
	"genSelfSignedCert":   secret + `{{ $c := genSelfSignedCert "a" nil (list "b") 365 }}data: {crt: {{ $c.Cert | b64enc }}, key: {{ $c.Key | b64enc }}}`,
	"genSignedCert": secret + `{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" nil (list "b") 365 $ca }}data: {ca: {{ $ca.Cert | b64enc }}, crt: {{ $c.Cert | b64enc }}, key: {{ $c.Key | b64enc }}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: a.b.c, clientConfig: {caBundle: {{ $ca.Cert | b64enc }}}}]`,
	"a bundle":                  secret + `{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" nil nil 365 $ca }}stringData: {pem: {{ print $c.Cert $ca.Cert | quote }}}`,
	"a hash":                    secret + `{{ $p := randAlphaNum 16 }}stringData: {p: {{ $p }}, h: "{{ $p | sha256sum }}", s: {{ sha1sum $p | trunc 10 | quote }}}`,
	"a hash of nothing":         secret + `stringData: {h: "{{ randAlphaNum 9 | sha256sum }}"}`,
	"a connection":              secret + `stringData: {url: "postgres://app:{{ randAlphaNum 12 }}@db:5432/app"}`,
	"two in a line":             secret + `stringData: {a: "user={{ randAlphaNum 8 }};pw={{ randAlphaNum 8 }}"}`,
	"side by side":              secret + `stringData: {a: "{{ randAlphaNum 8 }}:{{ randAlphaNum 8 }}"}`,
	"dockerconfigjson":          secret + `{{ $p := randAlphaNum 12 }}data: {.dockerconfigjson: {{ printf "{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":%q,\"auth\":%q}}}" $p (printf "u:%s" $p | b64enc) | b64enc }}}`,
	"YAML in YAML":              config + "data:\n  c.yaml: |\n    # a comment\n    db:\n      user: app   # another\n      password: {{ randAlphaNum 12 }}\n      \"port\": 5432\n",
	"toYaml":                    config + "data:\n  c.yaml: |\n{{ dict \"a\" (dict \"p\" (randAlphaNum 12) \"n\" 1) | toYaml | indent 4 }}\n",
	"JSON":                      config + `data: {c: {{ dict "a" (dict "p" (randAscii 12) "n" 1) | toJson | quote }}}`,
	"JSON of several lines":     config + "data:\n  c: |\n{{ dict \"a\" (dict \"p\" (randAscii 12) \"n\" 1) | toPrettyJson | indent 4 }}\n",
	"INI":                       config + "data:\n  c.ini: |\n    [a]\n    password = {{ randAlphaNum 12 }}\n    [b]\n    password = {{ randAlphaNum 12 }}\n",
	"a folded block":            config + "data:\n  c: >\n    words and\n    {{ randAlphaNum 12 }}\n    more\n",
	"a list":                    "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(secret, "\n", "\n  ") + "stringData: {a: {{ randAlphaNum 12 }}}",
	"an environment":            container(`args: [--x, "--token={{ randAlphaNum 12 }}"], env: [{name: T, value: {{ randAlphaNum 12 }}}]`),
	"a time of comments":        "# {{ now }} {{ randAlphaNum 5 }}\n" + config + "data: {a: b}",
	"a function in tpl":         secret + "stringData: {a: {{ tpl \"{{ randAlphaNum 16 }}\" . }}}",
	"in a helper":               `{{ define "p" }}{{ randAlphaNum 16 }}{{ end }}` + secret + "stringData: {a: {{ include \"p\" . }}}",
	"a hook":                    secret + "  annotations: {helm.sh/hook: pre-install}\nstringData: {a: {{ randAlphaNum 16 }}}",
	"an anchor":                 secret + "stringData: {a: &x {{ randAlphaNum 16 }}, b: *x}",
	"items in any order":        container(`env: [{{ range keys (dict "aa" 1 "bb" 2 "cc" 3 "dd" 4 "ee" 5 "ff" 6 "gg" 7) }}{name: {{ . }}, value: {{ randAlphaNum 12 }}},{{ end }}]`),
	"an annotation with a copy": "{{ $p := randAlphaNum 16 }}" + secret + "stringData: {p: {{ $p }}}\n---\n" + workload("{{ $p }}"),
	"lines in any order":        config + "data:\n  c: |\n{{ range keys (dict \"aa\" 1 \"bb\" 2 \"cc\" 3 \"dd\" 4 \"ee\" 5 \"ff\" 6 \"gg\" 7) }}    {{ . }}={{ randAlphaNum 12 }}\n{{ end }}",
	"YAML in any order":         config + "data:\n  c: |\n{{ range keys (dict \"aa\" 1 \"bb\" 2 \"cc\" 3 \"dd\" 4 \"ee\" 5 \"ff\" 6 \"gg\" 7) }}    {{ . }}: {{ randAlphaNum 12 }}\n{{ end }}",
	"JSON in any order":         config + `data: {c: {{ $l := list }}{{ range $k := keys (dict "aa" 1 "bb" 2 "cc" 3 "dd" 4 "ee" 5 "ff" 6 "gg" 7) }}{{ $l = append $l (dict "name" $k "p" (randAlphaNum 9)) }}{{ end }}{{ $l | toJson | quote }}}`,
	"a JSON list":               config + `data: {c: {{ dict "l" (keys (dict "aa" 1 "bb" 2 "cc" 3 "dd" 4 "ee" 5 "ff" 6 "gg" 7)) "p" (randAlphaNum 12) | toJson | quote }}}`,
	"one character":             secret + `stringData: {a: "{{ randAlpha 1 }}"}`,
	"a kubeconfig":              secret + `{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" nil nil 365 $ca }}data: {k: {{ printf "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: %s\n  name: x\nusers:\n- name: u\n  user:\n    client-certificate-data: %s\n    client-key-data: %s\n" ($ca.Cert | b64enc) ($c.Cert | b64enc) ($c.Key | b64enc) | b64enc }}}`,
	"two of htpasswd":           secret + "data:\n  auth: {{ printf \"%s\\n%s\\n\" (htpasswd \"a\" \"x\") (htpasswd \"b\" \"y\") | b64enc }}\n",
	"PHP":                       config + "data:\n  c.php: |\n    <?php\n    define('AUTH_KEY', {{ randAscii 40 | replace \"'\" \"\" | squote }});\n    define('SALT', {{ randAscii 40 | replace \"'\" \"\" | squote }});\n",
	"XML":                       config + "data:\n  c.xml: |\n    <a>\n      <password>{{ randAlphaNum 12 }}</password>\n      <salt v=\"{{ randAlphaNum 12 }}\"/>\n    </a>\n",
	"a port":                    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: a, port: 80, nodePort: {{ randInt 30000 32767 }}}]}",
	"binaryData":                config + "binaryData: {a: {{ randBytes 40 }}}",
	"base64 twice":              secret + "data: {a: {{ randAlphaNum 12 | b64enc | b64enc }}}",
	"base64 in a line":          secret + `{{ $p := randAlphaNum 16 }}stringData: {p: {{ $p }}, h: "Basic {{ printf "user:%s" $p | b64enc }}"}`,
	"a hash of a URL":           secret + `{{ $p := randAlphaNum 16 }}stringData: {p: {{ $p }}, h: "{{ printf "user:%s" $p | sha256sum }}"}`,
	"base64 of a hash":          secret + `{{ $p := randAlphaNum 16 }}data: {p: {{ $p | b64enc }}, h: {{ $p | sha256sum | b64enc }}}`,
	"a script":                  config + "data:\n  run.sh: |\n    #!/bin/sh\n    export TOKEN=\"{{ randAlphaNum 32 }}\"\n    exec curl -H \"Authorization: Bearer {{ randAlphaNum 32 }}\" x\n",
	"TOML":                      config + "data:\n  c.toml: |\n    [a]\n    k = \"{{ randAlphaNum 9 }}\"\n    [[b]]\n    k = \"{{ randAlphaNum 9 }}\"\n    [[b]]\n    k = \"{{ randAlphaNum 9 }}\"\n",
	"ends of Windows lines":     config + "data: {c: \"a=1\\r\\nb={{ randAlphaNum 12 }}\\r\\n\"}",
	"a checksum elsewhere":      checksumInEnvironment("a"),
	"a comment in YAML":         config + "data:\n  c: |\n    # generated {{ now }}\n    a: 1\n    b: {{ randAlphaNum 12 }}\n",
	"only a comment":            config + "data:\n  c: |\n    # generated {{ now }}\n    a: 1\n",
	"its own metadata":          secret + "  annotations: {a: {{ uuidv4 }}}\n  labels: {l: {{ randAlpha 5 }}}",
}

// TestUpgradeWithoutAChangeKeepsEverything: each function, in each form.
func TestUpgradeWithoutAChangeKeepsEverything(t *testing.T) {
	for name, template := range kept {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.deploy(template, nil)
			for range 3 {
				r := s.deploy(template, nil)
				was, now := said(t, s.earlier[0]), said(t, s.earlier[len(s.earlier)-1])
				if was != now {
					t.Fatalf("from:\n%s\nto:\n%s\n%s", was, now, r.lines())
				}
				for _, v := range r.Values {
					if !v.Kept() {
						t.Errorf("not kept: %s", r.lines())
					}
				}
				if len(r.Values) == 0 && name != "a time of comments" && r.Manifest != s.earlier[0].Manifest {
					t.Error("nothing is told of as kept")
				}
			}
		})
	}
}

// checksumInEnvironment has a checksum of a Secret where it isn't an annotation.
func checksumInEnvironment(level string) string {
	return `{{ define "s" }}` + secret + `stringData: {p: {{ randAlphaNum 16 }}, level: ` + level + `}{{ end }}{{ include "s" . }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: {spec: {containers: [{name: a, env: [{name: SUM, value: "{{ include "s" . | sha256sum }}"}]}]}}}`
}

// said is what the objects of a revision say.
func said(t *testing.T, r Revision) string {
	t.Helper()
	out := ""
	for _, text := range documentTexts(r) {
		out += fmt.Sprint(objectOf(t, text).Object, "\n")
	}
	return out
}

// TestTextIsAsHelmRendersIt: of what is kept only the values are replaced.
func TestTextIsAsHelmRendersIt(t *testing.T) {
	s := newStory(t)
	const template = "# what it is for\n" + secret + "  labels: {  a:   b }   # odd\ntype: Opaque\nstringData:\n    one: '{{ randAlphaNum 9 }}'   # a comment\n    two: \"{{ randAlphaNum 9 }}\"\n    three: {{ randAlpha 9 }}\n    four: |-\n        a: {{ randAlpha 9 }}\n        \n        b: \n\n        # b\n---\n" + config + "data:   {a:   'b'}\n"
	first := s.deploy(template, nil)
	if second := s.deploy(template, nil); first.Manifest != second.Manifest {
		t.Errorf("first:\n%s\nsecond:\n%s", first.Manifest, second.Manifest)
	}
}

func decodeB64(t *testing.T, v any) string {
	t.Helper()
	out, err := base64.StdEncoding.DecodeString(fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
