package chart

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"deployer/chart/internal/limits"
)

// Work while a chart is rendered gets the chart that is recorded, once however often the chart is rendered, and is over
// when the rendering is. When that fails, it is told to end, or isn't begun where memory is short.
func TestWorkWhileRendering(t *testing.T) {
	limit := limits.ProcessMemory
	defer func() { limits.ProcessMemory = limit }()
	for _, of := range []struct {
		template string
		memory   int64
		fails    bool
		calls    int
	}{
		{`{{ randAlphaNum 9 }}`, 1 << 32, false, 1},
		{`{{ randAlphaNum 9 }}`, 1 << 29, false, 1},
		{`{{ fail (randAlphaNum 9) }}`, 1 << 32, true, 1},
		{`{{ fail (randAlphaNum 9) }}`, 1 << 29, true, 0},
	} {
		limits.ProcessMemory = func() int64 { return of.memory }
		c := chartWith(of.template, nil)
		c.Helm.Metadata.Dependencies = []*helmchart.Dependency{{Name: "child", Version: "1.0.0", Condition: "child.enabled"}}
		c.Helm.AddDependency(&helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "child", Version: "1.0.0"}})
		var got []*helmchart.Chart
		in := Input{Release: "r", Namespace: "n", Values: map[string]any{"child": map[string]any{"enabled": false}}}
		in.WhileRendering = func(ctx context.Context, c *Chart) {
			if of.fails {
				<-ctx.Done()
			}
			got = append(got, c.Helm)
		}
		r := c.NewRerenderer(in)
		render := r.RenderTwice
		if of.fails { // the second rendering would be abandoned, and go on in the next case
			render = func(ctx context.Context) (*Rendered, error) { return c.Render(ctx, in) }
		}
		out, err := render(context.Background())
		if (err != nil) != of.fails {
			t.Fatalf("%v: error %v", of, err)
		}
		if _, err := r.RenderAgain(context.Background()); (err != nil) != of.fails {
			t.Fatalf("%v: again: error %v", of, err)
		}
		if len(got) != of.calls {
			t.Errorf("%v: called %d times", of, len(got))
		}
		for _, c := range got {
			if len(c.Dependencies()) != 0 {
				t.Errorf("%v: the chart has the disabled dependency", of)
			}
			if !of.fails && c != out.Chart {
				t.Errorf("%v: called with another chart than the one that is recorded", of)
			}
		}
	}
}

// What is rendered beside the first rendering has to be what is rendered after it: the same but for
// what is generated, and once only.
func TestRenderTwiceIsRenderAndRenderAgain(t *testing.T) {
	for _, template := range []string{
		`{{ randAlphaNum 9 }}`, `{{ tpl .Values.a . }}`, `{{ htpasswd "a" "b" | quote }}`, `{{ (genCA "a" 9).Cert | b64enc }}`, `{{ now.Year }}`,
	} {
		c := chartWith(template, map[string]any{"a": "{{ uuidv4 }}"})
		child := &helmchart.Chart{
			Metadata:  &helmchart.Metadata{APIVersion: "v2", Name: "child", Version: "1.0.0"},
			Templates: []*helmchart.File{{Name: "templates/c.yaml", Data: []byte("same: {{ .Values.x }}-{{ .Release.Name }}\n")}},
			Values:    map[string]any{"x": "y"},
		}
		c.Helm.AddDependency(child)
		in := Input{Release: "r", Namespace: "n", Values: map[string]any{"child": map[string]any{"x": "z"}}}
		r := c.NewRerenderer(in)
		first, err := r.RenderTwice(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		begun := r.begun
		if begun == nil {
			t.Fatalf("%s: nothing was begun", template)
		}
		second, err := r.RenderAgain(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if second != begun.out {
			t.Errorf("%s: what was begun wasn't used", template)
		}
		third, err := r.RenderAgain(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if third == second {
			t.Errorf("%s: what was begun was used twice", template)
		}
		alone, err := c.Render(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Documents) != 2 || first.Documents[0] != alone.Documents[0] && first.Documents[1] != alone.Documents[1] {
			t.Errorf("%s: rendered\n%s\nwant like\n%s", template, first.Manifest, alone.Manifest)
		}
		if second.Manifest == first.Manifest {
			t.Errorf("%s: rendered again the same: %s", template, first.Manifest)
		}
	}
}

// Certificates of one rendering whose keys share their primes are as valid as others and as different, and other
// renderings, also by the same Rerenderer, share nothing with them.
func TestRenderTwiceWithSharedPrimes(t *testing.T) {
	r := chartWith(`{{ $ca := genCA "ca" 9 }}{{ range until 4 }}{{ $c := genSignedCert "c" nil nil 9 $ca }}{{ $c.Cert | b64enc }}.{{ $c.Key | b64enc }}, {{ end }}{{ $ca.Cert | b64enc }}`, nil).
		NewRerenderer(Input{Release: "r", Namespace: "n"})
	first, err := r.RenderTwiceWithSharedPrimes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.RenderAgain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func(manifest string) (moduli, keys map[string]bool) {
		moduli, keys = map[string]bool{}, map[string]bool{}
		_, list, _ := strings.Cut(manifest, "a: ")
		certificates := strings.Split(strings.TrimSpace(list), ", ")
		block, _ := pem.Decode(decoded(t, certificates[4]))
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range certificates[:4] {
			cert, key, _ := strings.Cut(text, ".")
			pair, err := tls.X509KeyPair(decoded(t, cert), decoded(t, key))
			if err != nil {
				t.Fatal(err)
			}
			if err := pair.Leaf.CheckSignatureFrom(ca); err != nil {
				t.Error(err)
			}
			private := pair.PrivateKey.(*rsa.PrivateKey)
			moduli[private.N.String()], keys[private.D.String()] = true, true
		}
		return moduli, keys
	}
	moduli, keys := read(first.Manifest)
	if len(moduli) != 1 || len(keys) != 4 {
		t.Errorf("the first rendering has %d keys with %d pairs of primes, want 4 with one", len(keys), len(moduli))
	}
	others, _ := read(again.Manifest)
	for modulus := range others {
		if moduli[modulus] {
			t.Error("the other rendering has the same primes")
		}
	}
}

// A second rendering that failed only because the first one was under way must not decide anything.
func TestRenderTwiceTriesAgainWhatFailedAtOnce(t *testing.T) {
	r := chartWith(`{{ randAlphaNum 9 }}`, nil).NewRerenderer(Input{Release: "r", Namespace: "n"})
	failed := &rendering{done: make(chan struct{})}
	close(failed.done)
	r.begun = failed
	if out, err := r.RenderAgain(context.Background()); err != nil || out == nil {
		t.Errorf("rendered again: %v, %v", out, err)
	}
}

// The inputs of hashes are rendered ahead where the first rendering waits for keys, and used once.
func TestRenderTwiceRendersHashInputsOfKeys(t *testing.T) {
	for template, want := range map[string]string{
		`{{ (genCA "a" 9).Cert | sha256sum }}`: base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICAT")),
		`{{ (genCA "a" 9).Cert | b64enc }}`:    "",
		`{{ randAlphaNum 9 | sha256sum }}`:     "",
	} {
		r := chartWith(template, nil).NewRerenderer(Input{Release: "r", Namespace: "n"})
		if _, err := r.RenderTwice(context.Background()); err != nil {
			t.Fatal(err)
		}
		out := r.TakeHashInputs(context.Background())
		if (out != nil) != (want != "") || out != nil && !strings.Contains(out.Manifest, want) {
			t.Errorf("%s: with the inputs of hashes: %v, want one with %q", template, out, want)
		}
		if r.TakeHashInputs(context.Background()) != nil {
			t.Errorf("%s: taken twice", template)
		}
	}
}

// Two runs of a post-renderer at once may overwrite each other's files.
func TestRenderTwiceRunsOnePostRenderer(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "post.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho run >> "+dir+"/runs\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := chartWith(`{{ randAlphaNum 9 }}`, nil).NewRerenderer(Input{Release: "r", Namespace: "n", PostRenderer: []string{script}})
	if _, err := r.RenderTwice(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r.begun != nil {
		t.Error("another rendering was begun")
	}
	if runs, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(runs) != "run\n" {
		t.Errorf("the post-renderer ran %q, %v", runs, err)
	}
}
