package retain

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCertificatesEndInTime: a kept certificate of ninety days is renewed when it has used two thirds of its life, or would have
// ended before the next upgrade can be expected.
func TestCertificatesEndInTime(t *testing.T) {
	const day = 24 * time.Hour
	const template = secret + `{{ $ca := genCA "ca" 90 }}stringData: {crt: {{ $ca.Cert | quote }}, key: {{ $ca.Key | quote }}, p: {{ randAlphaNum 12 }}}`
	s := newStory(t)
	first := s.deploy(template, nil)
	made := s.now
	for name, c := range map[string]struct {
		age, next time.Duration
		unknown   bool // the server doesn't tell the time
		renewed   bool
	}{
		"new":                              {age: day},
		"just before two thirds":           {age: 60*day - time.Hour},
		"just after two thirds":            {age: 60*day + time.Hour, renewed: true},
		"ended":                            {age: 100 * day, renewed: true},
		"ends after the next upgrade":      {age: 30 * day, next: 59 * day},
		"ends before the next upgrade":     {age: 30 * day, next: 61 * day, renewed: true},
		"new, and upgrades are rare":       {age: day, next: 365 * day, renewed: true},
		"of a clock ahead of the server's": {age: -10 * day, next: 30 * day},
		"no time is known":                 {unknown: true, next: 365 * day},
	} {
		s.now, s.next = made.Add(c.age), c.next
		if c.unknown {
			s.now = time.Time{}
		}
		r := s.plan(template, nil)
		for _, key := range []string{"crt", "key"} {
			isKept := field(t, r.Manifest, "Secret/s", "stringData", key) == field(t, first.Manifest, "Secret/s", "stringData", key)
			if isKept == c.renewed {
				t.Errorf("%s: kept %v:\n%s", name, isKept, r.lines())
			}
		}
		if field(t, r.Manifest, "Secret/s", "stringData", "p") != field(t, first.Manifest, "Secret/s", "stringData", "p") {
			t.Errorf("%s: the password is renewed too", name)
		}
		want := "certificate of Secret/n/s expires on " + made.Add(90*day).UTC().Format(time.DateOnly) + ": renewed"
		said := slices.Contains(r.Warnings, want) && strings.Contains(r.lines(), want)
		if said != c.renewed || !c.renewed && len(r.Warnings) > 0 {
			t.Errorf("%s: warnings %q, want %q:\n%s", name, r.Warnings, want, r.lines())
		}
	}
}

// TestASetIsKeptOrRenewedWhole: whatever of a CA, its certificates, keys, bundles and checksums changes.
func TestASetIsKeptOrRenewedWhole(t *testing.T) {
	const ca = `{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" nil (list "a") 365 $ca }}`
	pair := ca + secret + "data: {ca.crt: {{ $ca.Cert | b64enc }}, tls.crt: {{ $c.Cert | b64enc }}, tls.key: {{ $c.Key | b64enc }}}\n---\n"
	webhook := func(name string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: " + name + "}\nwebhooks: [{name: a.b.c, clientConfig: {caBundle: {{ $ca.Cert | b64enc }}}}]\n---\n"
	}
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: d}\nspec: {conversion: {webhook: {clientConfig: {caBundle: {{ $ca.Cert | b64enc }}}}}}\n---\n"
	for name, c := range map[string]struct {
		first, second string
		kept          bool
	}{
		"nothing changes":               {pair + webhook("w"), pair + webhook("w"), true},
		"a new bundle":                  {pair, pair + webhook("w") + definition, true},
		"a bundle goes":                 {pair + webhook("w") + definition, pair, true},
		"another webhook":               {pair + webhook("w"), pair + webhook("x"), true},
		"another name":                  {pair + webhook("w"), strings.Replace(pair, `(list "a")`, `(list "b")`, 1) + webhook("w"), false},
		"another lifetime":              {pair + webhook("w"), strings.Replace(pair, `"ca" 365`, `"ca" 730`, 1) + webhook("w"), false},
		"another certificate of the CA": {pair + webhook("w"), pair + webhook("w") + config + `data: {c: {{ (genSignedCert "z" nil nil 365 $ca).Cert | quote }}}`, false},
		"another key for it":            {pair + webhook("w"), strings.Replace(pair, "tls.key:", "key:", 1) + webhook("w"), false},
		"data becomes stringData": {pair + webhook("w"), strings.NewReplacer("data: {", "stringData: {", "$ca.Cert | b64enc", "$ca.Cert | quote", "$c.Cert | b64enc", "$c.Cert | quote",
			"$c.Key | b64enc", "$c.Key | quote").Replace(pair) + webhook("w"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			keys := func(r *Result) (out []string) {
				for _, key := range []string{"ca.crt", "tls.crt"} {
					if v := field(t, r.Manifest, "Secret/s", "stringData", key); v != nil {
						out = append(out, v.(string))
						continue
					}
					out = append(out, decodeB64(t, field(t, r.Manifest, "Secret/s", "data", key)))
				}
				return out
			}
			before, result := keys(s.deploy(c.first, nil)), s.deploy(c.second, nil)
			for i, now := range keys(result) {
				if isKept := before[i] == now; isKept != c.kept {
					t.Errorf("part %d: kept %v, want %v:\n%s", i, isKept, c.kept, result.lines())
				}
			}
			if strings.Contains(c.second, "{name: w}") && decodeB64(t, field(t, result.Manifest, "ValidatingWebhookConfiguration/w", "webhooks", 0, "clientConfig", "caBundle")) != keys(result)[0] {
				t.Error("the webhook has another CA than the Secret")
			}
		})
	}
}
