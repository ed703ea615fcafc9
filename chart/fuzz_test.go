package chart

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// FuzzIndex holds that an index never makes an archive pass that has another digest
// than all of its entries have for it, and that reading it ends.
func FuzzIndex(f *testing.F) {
	f.Add("apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, digest: \"00\", urls: [web.tgz]}\n", "https://example.com/charts/web.tgz")
	f.Add(`{"entries":{"web":[{"urls":["https://example.com/charts/web.tgz"]}]}}`, "https://example.com/charts/web.tgz")
	f.Add("entries:\n  a: [{urls: [../x/web.tgz, \"%zz\", \"\"]}]\n  b: &b [*b]\n", "https://example.com/x/web.tgz?a=b")
	f.Fuzz(func(t *testing.T, text, href string) {
		u, err := url.Parse(href)
		if err != nil {
			return
		}
		data := []byte("not a chart")
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		index := chartIndex{source: "a", base: "https://example.com/charts", text: []byte(text)}
		said := index.archivesAt(u)
		fits := len(said) == 0
		for _, what := range said {
			d := strings.ToLower(strings.TrimSpace(what.digest))
			fits = fits || d == "" || strings.TrimPrefix(d, "sha256:") == digest || d == "sha256:"
		}
		check := &fetcher{fetched: true, indexes: []chartIndex{index}, listed: map[string][]expectation{}}
		if err := check.checkDownloaded(u, data); (err == nil) != fits {
			t.Errorf("%s of an index that says %+v: %v", href, said, err)
		}
	})
}

// FuzzValues holds that flags with values end with values or an error, which has no
// piece of a value in it.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"a=b", "a.b[0].c=1,d={x,y}", "a[9999999999]=1", `a={"b":[1,2`, "a.b=hunter2hunter2,a.b.c=x", "a", "=", `{"a":null}`, "a\\.b=c\\,d", "a[-1]=b", "={}.", "=0{,\f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const canary = "Zq7xKpWvT3"
		for _, kind := range []ValuesSourceKind{Set, SetString, SetJSON, SetLiteral} {
			key, _, _ := strings.Cut(text, "=")
			if strings.Contains(key, canary) {
				return
			}
			for _, value := range []string{text, text + canary, key + "=" + canary + "," + text} {
				_, err := Values(context.Background(), []ValuesSource{{Kind: kind, Value: value}}, ValuesOptions{})
				if err != nil && strings.Contains(value, "=") && strings.Contains(err.Error(), canary) {
					t.Errorf("%s %q: the error has the value: %v", kind, value, err)
				}
			}
		}
	})
}
