package chart

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"

	"deployer/internal/kube"
)

// Certificates whose keys were made ahead are as those of the functions in the chart: each with a key of its own, and
// signed by its CA.
func TestKeysMadeAhead(t *testing.T) {
	c := templates(map[string]string{
		"_ca.tpl": `{{ define "ca" }}{{ if not (hasKey .Values "ca") }}{{ $_ := set .Values "ca" (genCA "ca" 9) }}{{ end }}{{ end }}`,
		"a.yaml": `{{ include "ca" . }}{{ range $i := until 5 }}{{ $c := genSignedCert (printf "s%d" $i) nil (list "a.b") 9 $.Values.ca }}
{{ $c.Cert | b64enc }} {{ $c.Key | b64enc }}{{ end }}
{{ with genSelfSignedCert "own" nil nil 9 }}{{ .Cert | b64enc }} {{ .Key | b64enc }}{{ end }}
{{ .Values.ca.Cert | b64enc }} {{ .Values.ca.Key | b64enc }}`,
	})
	clients := &lookupProvider{ctx: t.Context()}
	files, err := executeWithKeySupply(t.Context(), c.Helm, valuesOf(t, c), Input{}, clients)
	if err != nil {
		t.Fatal(err)
	}
	if keys := clients.keys; keys.calls != 3 || keys.taken != 7 {
		t.Fatalf("%d keys for %d calls, want 7 for 3", keys.taken, keys.calls)
	}
	var certificates []*x509.Certificate
	public := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(files["c/templates/a.yaml"])) {
		cert, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		pair, err := tls.X509KeyPair(decoded(t, cert), decoded(t, key))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if block, _ := pem.Decode(decoded(t, key)); block.Type != "RSA PRIVATE KEY" {
			t.Errorf("key of type %s", block.Type)
		}
		certificates = append(certificates, pair.Leaf)
		public[string(pair.Leaf.RawSubjectPublicKeyInfo)] = true
	}
	if len(certificates) != 7 || len(public) != 7 {
		t.Fatalf("%d certificates with %d keys, want 7 with one each", len(certificates), len(public))
	}
	for _, signed := range certificates[:5] {
		if err := signed.CheckSignatureFrom(certificates[6]); err != nil {
			t.Error(err)
		}
	}
}

// What a template shows of its functions is as in Helm, in texts and in errors, and templates that are executed
// once more see their values as they were.
func TestKeysMadeAheadAreNotSeen(t *testing.T) {
	for name, of := range map[string]struct{ template, want string }{
		"a call as a text":     {`{{ $_ := genCA "a" 9 }}{{ "{{ genCA 1 2 }}" }}`, `{{ genCA 1 2 }}`},
		"a hash of a text":     {`{{ $_ := genCA "a" 9 }}{{ "{{ genCA 1 2 }}" | len }}`, "15"},
		"a text for tpl":       {`{{ $_ := genCA "a" 9 }}{{ tpl "{{ (genCA ` + "`b`" + ` 9).Cert | len | lt 9 }}" . }}`, "true"},
		"out of a pipe":        {`{{ $c := 9 | genCA "a" }}{{ len $c.Cert | lt 9 }}`, "true"},
		"changed values":       {`{{ $_ := genCA "a" 9 }}{{ $_ := set .Values "n" (add1 .Values.n) }}{{ .Values.n }} {{ "{{ genCA }}" }}`, "2 {{ genCA }}"},
		"too few arguments":    {`{{ genCA "a" }}`, `<genCA>: wrong number of args for genCA: want 2 got 1`},
		"an error of its own":  {`{{ $_ := genCA "a" 9 }}{{ fail "no" }}`, "a.yaml:1:26): no"},
		"lookup of a real one": {`{{ $_ := genCA "a" 9 }}{{ lookup "v1" "Secret" "n" "x" | len }}`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := templates(map[string]string{"a.yaml": of.template})
			c.Helm.Values = map[string]any{"n": 1}
			files, err := executeTemplates(t.Context(), c.Helm, valuesOf(t, c), Input{})
			got := files["c/templates/a.yaml"]
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, of.want) {
				t.Errorf("got %s\nwant %s", got, of.want)
			}
		})
	}
}

// valuesOf are what the templates of a chart see.
func valuesOf(t *testing.T, c *Chart) chartutil.Values {
	t.Helper()
	capabilities, err := capabilitiesOf(kube.ServerInfo{})
	if err != nil {
		t.Fatal(err)
	}
	values, err := renderValues(t.Context(), c.Helm, Input{Release: "r", Namespace: "n"}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
