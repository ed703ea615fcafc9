package chart

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

func TestReplaceCalls(t *testing.T) {
	const shifted = `(dateModify "+9685h7m3s" now)`
	for _, test := range []struct{ name, text, want, calls string }{
		{"no template", "now", "now", ""},
		{"a call", "a{{ now }}b", "a{{ " + shifted + " }}b", "now"},
		{"in a pipeline", `{{- date "2006" now | quote -}}`, `{{- date "2006" ` + shifted + ` | quote -}}`, "date now quote"},
		{"with a method", "{{ now.Year }}", "{{ " + shifted + ".Year }}", "now"},
		{"since", "{{ ago $t }}", `{{ printf "%T-ago" $t }}`, "ago"},
		{"fields and variables", "{{ .now }}{{ $now }}{{ $now.now }}{{ .Values.now.a }}", "{{ .now }}{{ $now }}{{ $now.now }}{{ .Values.now.a }}", ""},
		{"strings", "{{ \"now \\\" now\" }}{{ `now \\` }}{{ 'n' }}", "{{ \"now \\\" now\" }}{{ `now \\` }}{{ 'n' }}", ""},
		{"a brace in a string", `{{ "}}" | now }}`, `{{ "}}" | ` + shifted + ` }}`, "now"},
		{"comments", "{{/* now }} */}}{{- /* it's now */ -}}{{ now }}", "{{/* now }} */}}{{- /* it's now */ -}}{{ " + shifted + " }}", "now"},
		{"longer words", "{{ nowhere }}{{ knows }}", "{{ nowhere }}{{ knows }}", "nowhere knows"},
		{"a template in a text", `{{ tpl "a{{ now }}" . }}{{ tpl ` + "`{{ now }}`" + ` . }}`, `{{ tpl "a{{ (dateModify \"+9685h7m3s\" now) }}" . }}{{ tpl ` + "`{{ " + shifted + " }}`" + ` . }}`, "tpl now tpl now"},
		{"a string in a template in a text", `{{ tpl "{{ date \"2006\" now }}{{ \"now\" }}{{ keys .a }}" . }}`,
			`{{ tpl "{{ date \"2006\" (dateModify \"+9685h7m3s\" now) }}{{ \"now\" }}{{ keys .a|sortAlpha }}" . }}`, "tpl date now keys"},
		{"a template in a template in a text", `{{ tpl "{{ tpl \"{{ date \\\"2006\\\" now }}\" . }}{{ now }}" . }}`,
			`{{ tpl "{{ tpl \"{{ date \\\"2006\\\" (dateModify \\\"+9685h7m3s\\\" now) }}\" . }}{{ (dateModify \"+9685h7m3s\" now) }}" . }}`, "tpl tpl date now now"},
		{"a text that isn't a string", `{{ tpl "{{ \q now }}" . }}`, `{{ tpl "{{ \q now }}" . }}`, "tpl"},
		{"order", `{{ keys .a }}`, `{{ keys .a|sortAlpha }}`, "keys"},
		{"order in a pipeline", `{{- .a | keys | join "," -}}`, `{{- .a | keys|sortAlpha | join "," -}}`, "keys join"},
		{"order in parentheses", `{{ if eq (len (keys (dict "a" 1) .b)) 1 }}`, `{{ if eq (len (keys (dict "a" 1) .b|sortAlpha)) 1 }}`, "if eq len keys dict 1 1"},
		{"order at the end of a line", "{{ range keys .a\n}}", "{{ range keys .a|sortAlpha\n}}", "range keys"},
		{"order twice", `{{ concat (keys .a) (keys now) }}`, `{{ concat (keys .a|sortAlpha) (keys ` + shifted + `|sortAlpha) }}`, "concat keys keys now"},
		{"order in a text", `{{ tpl "{{ keys .a }}" . }}`, `{{ tpl "{{ keys .a|sortAlpha }}" . }}`, "tpl keys"},
		{"not order", `{{ .keys }}{{ $keys }}{{ "keys" }}`, `{{ .keys }}{{ $keys }}{{ "keys" }}`, ""},
		{"too many parentheses", `{{ keys .a)) }}`, `{{ keys .a|sortAlpha)) }}`, "keys"},
		{"not ended", "{{ now", "{{ " + shifted, "now"},
		{"string not ended", `{{ "now`, `{{ "now`, ""},
	} {
		var calls []string
		instead := maps.Clone(substitutes)
		instead["keys"] = substitution{suffix: "|sortAlpha"}
		got := replaceCalls(test.text, true, instead, func(name string) { calls = append(calls, name) })
		if all := strings.Join(calls, " "); got != test.want || all != test.calls {
			t.Errorf("%s: replaceCalls(%q) = %q calling %q, want %q calling %q", test.name, test.text, got, all, test.want, test.calls)
		}
	}
}

// chartWith is a chart of one template, t.yaml, and values.
func chartWith(template string, values map[string]any) *Chart {
	return &Chart{Helm: &helmchart.Chart{
		Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "c", Version: "1.0.0"},
		Templates: []*helmchart.File{{Name: "templates/t.yaml", Data: []byte("a: " + template + "\n")}},
		Values:    values,
	}}
}

func TestVariants(t *testing.T) {
	for _, test := range []struct {
		name, template string
		values, user   map[string]any
		same           bool // no need to render again
	}{
		{name: "nothing random", template: `{{ .Values.now | default "randAlpha" }}`, same: true},
		{name: "derived", template: `{{ derivePassword 1 "long" "a" "b" "c" }}`, same: true},
		{name: "characters", template: `{{ randAlphaNum 9 }}`},
		{name: "a key", template: `{{ genPrivateKey "ecdsa" | b64enc }}`},
		{name: "a certificate's digest", template: `{{ (genCA "a" 9).Cert | sha256sum }}`},
		{name: "the second", template: `{{ now | unixEpoch }}`},
		{name: "the year", template: `{{ now.Year }}`},
		{name: "the day", template: `{{ now | date "2" }}`},
		{name: "the weekday", template: `{{ date "Mon" now }}`},
		{name: "a duration", template: `{{ ago (toDate "2006" "2006") | quote }}`},
		{name: "in a value", template: `{{ tpl .Values.a . }}`, values: map[string]any{"a": "{{ uuidv4 }}"}},
		{name: "in a value of the user", template: `{{ tpl (index .Values.a 0).b . }}`, user: map[string]any{"a": []any{map[string]any{"b": "{{ now.Year }}"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, in := chartWith(test.template, test.values), Input{Release: "r", Namespace: "n", Values: test.user}
			first, err := c.Render(context.Background(), in)
			if err != nil {
				t.Fatal(err)
			}
			variants, err := c.NewRerenderer(in).RenderRepeatedly(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if (len(variants) == 0) != test.same {
				t.Fatalf("%d variants of %s", len(variants), test.template)
			}
			for _, v := range variants {
				if v.Manifest == first.Manifest {
					t.Errorf("rendered again the same: %s", v.Manifest)
				}
			}
			if again, err := c.Render(context.Background(), in); err != nil || test.same && again.Manifest != first.Manifest {
				t.Errorf("the chart was changed: %v", err)
			}
		})
	}
}

// TestVariantsOfFewChoices: where only few values are to choose from, one of
// several renderings shows that it is a choice.
func TestVariantsOfFewChoices(t *testing.T) {
	for _, template := range []string{`{{ randInt 0 99 }}`, `{{ shuffle "abcdefgh" }}`, `{{ dict "a" 1 "b" 2 "c" 3 | values | join "" }}`,
		`{{ randAlpha 2 }}`, `{{ 1 | randAlphaNum }}`, `{{ uuidv4 | trunc 1 }}`} {
		variants, err := chartWith(template, nil).NewRerenderer(Input{Release: "r", Namespace: "n"}).RenderRepeatedly(context.Background())
		if err != nil || len(variants) < 3 {
			t.Errorf("%s: %d variants, %v", template, len(variants), err)
		}
	}
}

// TestOrderNeedsNoChance: two renderings show each place where the random order of keys matters, and
// none where it doesn't. Of two keys, chance would show the same order in most renderings.
func TestOrderNeedsNoChance(t *testing.T) {
	for _, test := range []struct {
		template string
		orders   int // of the two
		want     string
	}{
		{`{{ dict "a" 1 "b" 2 | keys | join "" }}`, 2, "a: ba"},
		{`{{ range keys (dict "a" 1 "b" 2) }}{{ . }}{{ end }}`, 2, "a: ba"},
		{`{{ first (keys .Values) }}`, 2, "a: y"},
		{`{{ (dict "a" 1 "b" 2 | keys) | len }}`, 1, "a: 2"},
		{`{{ keys (dict "a" 1) (dict "a" 1) | join "" }}`, 1, "a: aa"},
		{`{{ keys .Values | sortAlpha | join "" }}`, 1, "a: xy"},
		{"'{{ `{{ keys .x -}}` }}'", 1, "a: '{{ keys .x -}}'"},
	} {
		variants, err := chartWith(test.template, map[string]any{"x": 1, "y": 2}).NewRerenderer(Input{Release: "r", Namespace: "n"}).RenderRepeatedly(context.Background())
		if err != nil || len(variants) != 2 {
			t.Fatalf("%s: %d variants, %v", test.template, len(variants), err)
		}
		if differ := variants[0].Manifest != variants[1].Manifest; differ != (test.orders == 2) || !strings.Contains(variants[1].Manifest, test.want) {
			t.Errorf("%s: want %d orders, the last %s:\n%s%s", test.template, test.orders, test.want, variants[0].Manifest, variants[1].Manifest)
		}
	}
}

// TestInputsOfHashesNeedNoRealKeys: rendering with the inputs of hashes searches for no prime numbers,
// which takes most of the time of a chart with certificates, however their functions are called.
func TestInputsOfHashesNeedNoRealKeys(t *testing.T) {
	const ca = `{{ $ca := genCA "ca" 9 }}`
	const key = `{{ $key := genPrivateKey "rsa" }}`
	for _, template := range []string{
		`{{ (genCA "ca" 9).Cert | sha256sum }}`,
		`{{ (9 | genCA "ca").Cert | sha256sum }}`,
		ca + `{{ (genSignedCert "a" nil (list "a.b") 9 $ca).Cert | sha256sum }}`,
		ca + `{{ ($ca | genSignedCert "a" (list "10.0.0.1") nil 9).Cert | sha256sum }}`,
		`{{ with genSelfSignedCert "a" nil nil 9 }}{{ printf "%s%s" .Cert .Key | sha256sum }}{{ end }}`,
		ca + `{{ (buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key)).Cert | sha256sum }}`,
		key + `{{ (genCAWithKey "ca" 9 $key).Cert | sha256sum }}`,
		key + `{{ ($key | genSelfSignedCertWithKey "a" nil nil 9).Cert | sha256sum }}`,
		key + ca + `{{ (genSignedCertWithKey "a" nil nil 9 $ca $key).Cert | sha256sum }}`,
		`{{ "rsa" | genPrivateKey | sha256sum }}`,
		"{{ tpl `{{ genPrivateKey \"rsa\" | sha256sum }}` . }}",
	} {
		rendered, err := chartWith(template, nil).NewRerenderer(Input{Release: "r", Namespace: "n"}).RenderWithHashInputs(context.Background())
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		_, text, _ := strings.Cut(rendered.Manifest, "a: ")
		input, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			t.Errorf("%s: the input is %q: %v", template, text, err)
		}
		blocks := 0
		for block, rest := pem.Decode(input); block != nil; block, rest = pem.Decode(rest) {
			blocks++
			certificate, err := x509.ParseCertificate(block.Bytes)
			if block.Type == "CERTIFICATE" && (err != nil || certificate.PublicKeyAlgorithm != x509.ECDSA) || strings.Contains(block.Type, "RSA") {
				t.Errorf("%s: a real %s: %v", template, block.Type, err)
			}
		}
		if blocks == 0 {
			t.Errorf("%s: no key and no certificate in %q", template, input)
		}
	}
}

// TestInputsOfHashesOfChartsThatNeedRealKeys: a chart that isn't content with just any key is rendered
// with those that it asks for.
func TestInputsOfHashesOfChartsThatNeedRealKeys(t *testing.T) {
	const template = `{{ $key := genPrivateKey "rsa" }}{{ if not (contains "RSA" $key) }}{{ fail "not RSA" }}{{ end }}{{ sha256sum $key }}`
	rendered, err := chartWith(template, nil).NewRerenderer(Input{Release: "r", Namespace: "n"}).RenderWithHashInputs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rendered.Manifest, base64.StdEncoding.EncodeToString([]byte("-----BEGIN RSA PRIVATE K"))) {
		t.Errorf("not the input of the hash: %s", rendered.Manifest)
	}
}

// TestCertificatesShareOneKeyWhenRenderedAgain: rendering again searches for the prime numbers of one key,
// however many certificates there are, and however their functions are called. All else that
// certificates say is as the chart asks for.
func TestCertificatesShareOneKeyWhenRenderedAgain(t *testing.T) {
	const ca = `{{ $ca := genCA "ca" 9 }}{{ $ca.Cert | b64enc }}.{{ $ca.Key | b64enc }}`
	const signed = ca + `.{{ with genSignedCert "a" nil (list "a.b" "c") 7 $ca }}{{ .Cert | b64enc }}.{{ b64enc .Key }}{{ end }}`
	const self = `.{{ $c := genSelfSignedCert "b" (list "10.0.0.1") nil 5 -}} {{ printf "%s.%s" (b64enc $c.Cert) (b64enc $c.Key) }}`
	for _, test := range []struct {
		template string
		keys     int // in the second rendering
	}{
		{ca, 1},
		{signed, 1},
		{signed + self, 1},
		{"{{ tpl `" + signed + "` . }}", 1},
		{`{{ tpl "{{ (genCA \"ca\" 9).Key | b64enc }}" . }}`, 1},
		{`{{ define "x" }}{{ (genCA "x" 3).Key | b64enc }}{{ end }}{{ include "x" . }}.{{ include "x" . }}`, 1},
		{signed + `{{ with 9 | genCA "other" }}.{{ .Cert | b64enc }}.{{ .Key | b64enc }}{{ end }}`, 3}, // the key would be in the wrong place
		{signed + `{{ if eq $ca.Key (genCA "other" 9).Key }}{{ fail "equal keys" }}{{ end }}`, 2},
	} {
		r := chartWith(test.template, nil).NewRerenderer(Input{Release: "r", Namespace: "n"})
		first, err := r.RenderTwice(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.RenderAgain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want, _ := certified(t, first.Manifest)
		got, keys := certified(t, again.Manifest)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", test.template, got, want)
		}
		if len(keys) != test.keys {
			t.Errorf("%s: %d keys, want %d", test.template, len(keys), test.keys)
		}
		if _, all := certified(t, first.Manifest+"."+strings.TrimPrefix(again.Manifest, "---")); len(all) <= len(keys) {
			t.Errorf("%s: rendered again with the same keys", test.template)
		}
	}
}

// certified lists what certificates and keys in base64 say but for what is generated, and the distinct
// keys.
func certified(t *testing.T, manifest string) (facts []string, keys map[string]bool) {
	t.Helper()
	keys = map[string]bool{}
	for _, word := range strings.FieldsFunc(manifest, func(r rune) bool { return r == '.' || r == ' ' || r == '\n' }) {
		text, _ := base64.StdEncoding.DecodeString(word)
		block, _ := pem.Decode(text)
		if block == nil {
			continue
		}
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			keys[string(block.Bytes)] = true
			facts = append(facts, fmt.Sprint(block.Type, key.N.BitLen()))
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		life := c.NotAfter.Sub(c.NotBefore).Round(time.Hour)
		facts = append(facts, fmt.Sprint(c.Subject, c.Issuer, c.DNSNames, c.IPAddresses, c.KeyUsage, c.ExtKeyUsage, c.IsCA, c.PublicKeyAlgorithm, c.SignatureAlgorithm, life))
	}
	return facts, keys
}

// TestTextThatOnlyLooksLikeACertificateComesOutUnchanged: what isn't evaluated is the chart's text.
func TestTextThatOnlyLooksLikeACertificateComesOutUnchanged(t *testing.T) {
	const text = "{{ genCA \"a\" 1 }}{{- (genSignedCert $a \"b\" 1 $ca).Cert | quote }}"
	r := chartWith("{{ randAlpha 9 }}{{ `"+text+"` }}", nil).NewRerenderer(Input{Release: "r", Namespace: "n"})
	again, err := r.RenderAgain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(again.Manifest, text+"\n") {
		t.Errorf("%s", again.Manifest)
	}
}

// TestChanceThatIsNeverTakenCostsNothing: a call in a branch that isn't taken doesn't make the chart be
// rendered more often.
func TestChanceThatIsNeverTakenCostsNothing(t *testing.T) {
	const template = `{{ randAlphaNum 9 }}{{ if .Values.a }}{{ .Values.a | values | first }}{{ randInt 1 9 }}{{ end }}`
	for name, test := range map[string]struct {
		template string
		values   map[string]any
		renders  int
		chance   bool
	}{
		"never":            {template, nil, 1, false},
		"taken":            {template, map[string]any{"a": map[string]any{"x": 1}}, fewResults, true},
		"never, with keys": {template + `{{ keys .Values | join "" }}`, nil, 2, false},
		"in a text":        {`{{ tpl "{{ randAlpha 9 }}{{ if .Values.a }}{{ shuffle \"ab\" }}{{ end }}" . }}`, nil, 1, false},
		"text":             {"{{ randAlpha 9 }}{{ `{{ shuffle .x }}` }}", nil, 1, false},
	} {
		for _, twice := range []bool{false, true} {
			r := chartWith(test.template, test.values).NewRerenderer(Input{Release: "r", Namespace: "n"})
			if twice {
				if _, err := r.RenderTwice(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			variants, err := r.RenderRepeatedly(t.Context())
			if err != nil || len(variants) != test.renders {
				t.Errorf("%s: %d variants, %v; want %d", name, len(variants), err, test.renders)
			}
			if renders, chance := r.RendersNeeded(); renders != test.renders || chance != test.chance {
				t.Errorf("%s: %d renderings, by chance %t; want %d, %t", name, renders, chance, test.renders, test.chance)
			}
			if name == "text" && !strings.HasSuffix(variants[0].Manifest, "{{ shuffle .x }}\n") {
				t.Errorf("%s: %s", name, variants[0].Manifest)
			}
		}
	}
}

// BenchmarkRepeat is what an upgrade pays for asking whether a chart generates
// anything: of a thousand objects, in templates of fifty.
func BenchmarkRepeat(b *testing.B) {
	c := chartWith("", nil)
	text := strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: o\ndata:\n  value: {{ if lt 1 (int .Values.changed) }}new-{{ .Values.generation }}{{ else }}old{{ end }}\n", 50)
	for range 20 {
		c.Helm.Templates = append(c.Helm.Templates, &helmchart.File{Name: "templates/t.yaml", Data: []byte(text)})
	}
	for b.Loop() {
		if c.NewRerenderer(Input{}).Nondeterministic() {
			b.Fatal("nothing is generated")
		}
	}
}
