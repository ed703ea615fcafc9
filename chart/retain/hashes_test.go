package retain

import (
	"strings"
	"testing"
)

// TestHashesChangeExactlyWithWhatTheyHash: in whatever form a chart has the hash of what it renders.
func TestHashesChangeExactlyWithWhatTheyHash(t *testing.T) {
	const include = `include (print $.Template.BasePath "/secret.yaml") .`
	pod := func(metadata, fields string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {metadata: {" + metadata + "}, spec: {containers: [{name: a, " + fields + "}]}}}\n"
	}
	annotated := func(sum string) string { return pod(`annotations: {x: "{{ `+sum+` }}"}`, "image: i") }
	for name, workload := range map[string]string{
		"an annotation":               annotated(include + " | sha256sum"),
		"SHA-1":                       annotated(include + " | sha1sum"),
		"SHA-512, cut off":            annotated(include + " | sha512sum | trunc 20"),
		"Adler-32":                    annotated(include + " | adler32sum"),
		"base64 of it":                annotated(include + " | sha256sum | b64enc"),
		"in a label":                  pod(`labels: {x: "{{ `+include+` | sha256sum | trunc 63 }}"}`, "image: i"),
		"behind a word in a label":    pod(`labels: {x: "v-{{ `+include+` | sha256sum | trunc 40 }}"}`, "image: i"),
		"a variable":                  pod("", `env: [{name: SUM, value: "{{ `+include+` | sha256sum }}"}]`),
		"an argument":                 pod("", `args: ["--sum={{ `+include+` | sha256sum }}"]`),
		"of two templates":            annotated("print (" + include + `) (include (print $.Template.BasePath "/config.yaml") .) | sha256sum`),
		"by a helper":                 `{{ define "sum" }}{{ ` + include + ` | sha256sum }}{{ end }}` + annotated(`include "sum" .`),
		"in a variable of a template": `{{ $sum := ` + include + ` | sha256sum }}` + annotated("$sum"),
		"by toYaml":                   annotated("(" + include + " | fromYaml).stringData | toYaml | sha256sum"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(level string) map[string]string {
				return map[string]string{
					"secret.yaml": secret + "stringData: {level: x" + level + ", p: {{ randAlphaNum 16 }}}\n",
					"config.yaml": config + "data: {a: b}\n",
					"d.yaml":      workload,
				}
			}
			s := newStory(t)
			document := func(r *Result) string {
				for _, text := range documentTexts(Revision{Manifest: r.Manifest}) {
					if strings.Contains(text, "kind: Deployment") {
						return text
					}
				}
				return ""
			}
			first := s.deploy(of("1"), nil)
			same := s.deploy(of("1"), nil)
			if document(same) != document(first) {
				t.Errorf("changed with nothing:\n%s\nfrom:\n%s\nto:\n%s", same.lines(), document(first), document(same))
			}
			if other := s.deploy(of("2"), nil); document(other) == document(same) {
				t.Errorf("not changed with its Secret:\n%s\n%s", other.lines(), document(other))
			}
			again := s.deploy(of("2"), nil)
			if document(again) != document(&Result{Manifest: s.earlier[2].Manifest}) {
				t.Errorf("changed with nothing the second time:\n%s", again.lines())
			}
		})
	}
}

// TestValuesAreComputedAsInAllRenderings: what a value looks like in one of them may have another reason by chance.
func TestValuesAreComputedAsInAllRenderings(t *testing.T) {
	for _, texts := range [][]string{{"ABCD1234", "Qbcdx234"}, {"abcd1234", "Qbcdx234"}, {"AbCd1234", "Qbcdx234"}} {
		whole := &value{places: []*place{{versions: []string{texts[0] + "efgh", texts[1] + "ijkl"}}}}
		cut := &value{places: []*place{{versions: texts}}}
		findSources([]*value{whole, cut})
		recorded := "QWertz123456"
		whole.recorded = &recorded
		if got := cut.computed(); len(cut.sources) != 1 || got != "QWertz12" {
			t.Errorf("%q is computed as %q", texts, got)
		}
	}
}

// TestATextOfSeveralValuesFollowsAllOfThem: a new copy of two passwords in one word has both as they are kept, or the one that is
// kept beside the one that is renewed.
func TestATextOfSeveralValuesFollowsAllOfThem(t *testing.T) {
	of := func(user, more string) string {
		return "{{ $p := randAlphaNum 12 }}{{ $t := randAlphaNum 12 }}" + secret + "stringData:\n  a: {{ $p }}\n  b: |\n    user: " + user + "\n    password: {{ $t }}\n" + more
	}
	for _, user := range []string{"root", "bob"} {
		s := newStory(t)
		was := field(t, s.deploy(of("root", ""), nil).Manifest, "Secret/s", "stringData", "a")
		r := s.deploy(of(user, "---\n"+config+"data: {both: {{ $p }}{{ $t }}}"), nil)
		both := field(t, r.Manifest, "ConfigMap/c", "data", "both")
		_, token, _ := strings.Cut(field(t, r.Manifest, "Secret/s", "stringData", "b").(string), "password: ")
		if want := was.(string) + strings.TrimSpace(token); both != want || field(t, r.Manifest, "Secret/s", "stringData", "a") != was {
			t.Errorf("%s: %s, want %s:\n%s\n%s", user, both, want, r.lines(), r.Manifest)
		}
	}
}
