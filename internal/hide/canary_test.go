package hide

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// canary is a text that nobody has seen before.
func canary(t testing.TB, length int) string {
	t.Helper()
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
	for {
		out := ""
		for range length {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
			if err != nil {
				t.Fatal(err)
			}
			out += string(letters[n.Int64()])
		}
		if !canBeWord(out) {
			return out
		}
	}
}

// spelled are the ways in which a text is written elsewhere, with something around it.
func spelled(s string) []string {
	quoted, _ := json.Marshal(s)
	out := []string{
		s, strings.ToUpper(s), strings.ToLower(s), "x=" + s + ";", "prefix" + s + "suffix", `{"a":` + string(quoted) + `}`,
		hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))), url.QueryEscape(s), url.PathEscape("a/" + s),
		percent(s), strings.ToLower(percent(s)), "'" + strings.ReplaceAll(s, "'", "''") + "'", strings.ReplaceAll(s, "'", `'\''`), inASCII(s), html.EscapeString(s), fmt.Sprintf("%q", s), base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s)))),
	}
	for _, before := range []string{"", "a", "ab", "abc", "user:pass"} {
		for _, after := range []string{"", "z", "zz", "\n"} {
			out = append(out, base64.StdEncoding.EncodeToString([]byte(before+s+after)), base64.RawURLEncoding.EncodeToString([]byte(before+s+after)))
		}
	}
	return out
}

// inASCII is a text in JSON, with all characters beyond ASCII escaped.
func inASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case r > 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			quoted, _ := json.Marshal(string(r))
			b.Write(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// percent is a text with every byte escaped as in URLs.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// shows reports whether a text shows another: as it is, in any case, in hexadecimal,
// or in base64 that somebody decodes.
func shows(text, s string) bool {
	lower, s := strings.ToLower(text), strings.ToLower(s)
	if strings.Contains(lower, s) || strings.Contains(lower, hex.EncodeToString([]byte(s))) {
		return true
	}
	if plain, err := url.QueryUnescape(text); err == nil && strings.Contains(strings.ToLower(plain), s) {
		return true
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r > 0x7f || !inName(byte(r)) && r != '+' && r != '/' || r == '.' }) {
		for cut := range min(4, len(word)) {
			tail := strings.NewReplacer("-", "+", "_", "/").Replace(word[cut:])
			data, _ := base64.RawStdEncoding.DecodeString(tail[:len(tail)/4*4])
			rest, _ := base64.RawStdEncoding.DecodeString(tail)
			for _, d := range []string{string(data), string(rest)} {
				if strings.Contains(strings.ToLower(d), s) {
					return true
				}
			}
		}
	}
	return false
}

// TestNoCanaryComesOut: what is confidential is hidden in every spelling, wherever
// it was learned.
func TestNoCanaryComesOut(t *testing.T) {
	for _, length := range []int{8, 9, 10, 11, 16, 40} {
		for source, learn := range map[string]func(*Texts, string){
			"a Secret's password": func(x *Texts, s string) { x.AddObject(secretOf(map[string]any{"password": s})) },
			"a Secret's value":    func(x *Texts, s string) { x.AddObject(secretOf(map[string]any{"k0": s})) },
			"stringData": func(x *Texts, s string) {
				x.AddObject(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": s}}})
			},
			"values": func(x *Texts, s string) { x.AddValues(map[string]any{"db": map[string]any{"password": s}}) },
			"a line of a Secret": func(x *Texts, s string) {
				x.AddObject(secretOf(map[string]any{"env": "# settings\nHOST=db\nAPI_KEY=" + s + "\nLEVEL=debug\n"}))
			},
			"a SealedSecret": func(x *Texts, s string) {
				x.AddObject(custom("bitnami.com/v1alpha1", "SealedSecret", `{"spec":{"template":{"data":{"a":"`+s+`"}}}}`))
			},
			"an ExternalSecret": func(x *Texts, s string) {
				x.AddObject(custom("external-secrets.io/v1", "ExternalSecret", `{"spec":{"target":{"template":{"data":{"a":"`+s+`"}}}}}`))
			},
			"a nested Secret": func(x *Texts, s string) {
				x.AddObject(custom("work.example.io/v1", "Work", `{"spec":{"manifests":[{"apiVersion":"v1","kind":"Secret","data":{"a":"`+s+`"}}]}}`))
			},
			"a registry's login": func(x *Texts, s string) {
				auth := base64.StdEncoding.EncodeToString([]byte("me:" + s))
				x.AddObject(secretOf(map[string]any{".dockerconfigjson": `{"auths":{"r.io":{"auth":"` + auth + `"}}}`}))
			},
		} {
			s := canary(t, length)
			var texts Texts
			texts.AddVisibleName("web")
			learn(&texts, s)
			for _, form := range spelled(s) {
				got := texts.Hide("it says: " + form + " and more")
				if shows(got, s) {
					t.Errorf("%s of %d letters: %q of %s shows it", source, length, got, s)
				}
				if !strings.HasPrefix(got, "it says: ") || !strings.HasSuffix(got, " and more") {
					t.Errorf("%s: %q: what is around it is gone", source, got)
				}
			}
		}
	}
}

// TestNotHidden: what may be a word, what names something, and what no key calls confidential.
func TestNotHidden(t *testing.T) {
	var texts Texts
	texts.AddObject(secretOf(map[string]any{
		"a": "true", "b": "1", "c": "abc", "d": "8080", "e": "30s", "f": "512Mi", "g": "1.2.3", "h": "postgres", "i": "debug", "kind": "Deployment", "j": "prod-db-1",
		"app.conf": "flavour=vanilla-1\nport=8080\nmode: cluster\n",
	}))
	texts.AddValues(map[string]any{"password": "releases", "token": "failed", "secret": "HELM"})
	texts.AddVisibleName("prod-db-1")
	texts.AddVisibleName("Deployment")
	for _, text := range []string{
		"true, 1, abc, 8080, 30s, 512Mi, 1.2.3, postgres:16, debugging", "Deployment/prod-db-1/web", "the releases are FAILED", "Happy Helming", "vanilla-1 on 8080 in cluster",
	} {
		if got := texts.Hide(text); got != text {
			t.Errorf("Hide(%q) = %q", text, got)
		}
	}
}

// TestPairs: what is hidden on one side is hidden on the other.
func TestPairs(t *testing.T) {
	known, other, old := canary(t, 12), canary(t, 12), canary(t, 12)
	var texts Texts
	texts.AddValues(map[string]any{"password": known, "token": other})
	list := func(items ...any) []any { return items }
	for name, c := range map[string]struct{ a, b, wantA, wantB any }{
		"a rotated value":      {old, known, Placeholder, Placeholder},
		"the other way":        {known, old, Placeholder, Placeholder},
		"inside of a text":     {"u:" + old + "@h", "u:" + known + "@h", Placeholder, Placeholder},
		"the same in both":     {"u:" + known + "@h1", "u:" + known + "@h2", "u:" + Placeholder + "@h1", "u:" + Placeholder + "@h2"},
		"nothing of it":        {"1", "2", "1", "2"},
		"absent":               {nil, known, nil, Placeholder},
		"a line of a file":     {"a\npw=" + old + "\nz", "a\npw=" + known + "\nz", "a\n" + Placeholder + "\nz", "a\n" + Placeholder + "\nz"},
		"another line":         {"q=" + known + "\npw=" + old, "q=" + known + "\npw=" + other, "q=" + Placeholder + "\n" + Placeholder, "q=" + Placeholder + "\n" + Placeholder},
		"another item":         {list(known, old), list(known, other), list(Placeholder, Placeholder), list(Placeholder, Placeholder)},
		"another type":         {12345, known, Placeholder, Placeholder},
		"an item":              {list("--v", "--pw="+old), list("--pw="+known, "--v"), list("--v", Placeholder), list(Placeholder, "--v")},
		"an item that is gone": {list("--v", "--pw="+old), list("--pw=" + known), list(Placeholder, Placeholder), list(Placeholder)},
		"a map":                {map[string]any{"a": old, "b": "x"}, map[string]any{"a": known, "b": "y"}, map[string]any{"a": Placeholder, "b": "x"}, map[string]any{"a": Placeholder, "b": "y"}},
	} {
		a, b := texts.HidePair(c.a, c.b)
		if written(a) != written(c.wantA) || written(b) != written(c.wantB) {
			t.Errorf("%s: got %v and %v, want %v and %v", name, a, b, c.wantA, c.wantB)
		}
	}
}

// TestManifestKeepsWhatIdentifiesIt: a password that is the same as a kind, a name
// or a key doesn't change what programs look for.
func TestManifestKeepsWhatIdentifiesIt(t *testing.T) {
	var texts Texts
	for _, password := range []string{"ConfigMap", "webapp-conf", "qwerty-ns", "settings-1", "password-1"} {
		texts.AddValues(map[string]any{"password": password})
	}
	obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "webapp-conf", "namespace": "qwerty-ns"}, "data": map[string]any{"settings-1": "password-1"}}
	texts.AddObject(&unstructured.Unstructured{Object: obj})
	if got := written(texts.HideValue(obj)); got != `{"apiVersion":"v1","data":{"settings-1":"(hidden)"},"kind":"ConfigMap","metadata":{"name":"webapp-conf","namespace":"qwerty-ns"}}` {
		t.Errorf("got %s", got)
	}
}

func custom(apiVersion, kind, content string) *unstructured.Unstructured {
	obj := map[string]any{}
	if err := json.Unmarshal([]byte(content), &obj); err != nil {
		panic(err)
	}
	obj["apiVersion"], obj["kind"] = apiVersion, kind
	return &unstructured.Unstructured{Object: obj}
}

// BenchmarkHide has as many texts to look for as a large release.
func BenchmarkHide(b *testing.B) {
	var texts Texts
	for range 2000 {
		texts.AddObject(secretOf(map[string]any{"password": canary(b, 24), "cert": strings.Repeat(canary(b, 64)+"\n", 20)}))
	}
	line := strings.Repeat("an ordinary line of a log with 12 words in it. ", 20)
	b.SetBytes(int64(len(line)))
	b.ResetTimer()
	for range b.N {
		texts.Hide(line)
	}
}

// FuzzHide holds that no canary comes out of any text around it.
func FuzzHide(f *testing.F) {
	f.Add("it says: ", " and more", "hunter2x")
	f.Add("aGVsbG8", "==", "pass")
	f.Add("%", "\x00", "a<b>&\"c'd9")
	f.Add("0", "0", "0A0\x91")
	f.Add("0", "0", strings.Repeat("0", 400)+"A")
	f.Add("0", "0", "\x01000000A") // in JSON it looks like one character of %q
	f.Fuzz(func(t *testing.T, before, after, s string) {
		if trimmed := strings.TrimSpace(s); trimmed != s || canBeWord(s) || !strings.ContainsFunc(s, unicode.IsLetter) || strings.ContainsAny(s, "\n\r") || strings.Contains(Placeholder, strings.ToLower(s)) {
			return
		}
		var texts Texts
		texts.AddValues(map[string]any{"password": s})
		for _, form := range spelled(s) {
			// What is around it may be or have the same text by itself.
			if shows(before, s) || shows(after, s) {
				return
			}
			if got := texts.Hide(before + " " + form + " " + after); strings.Contains(strings.ToLower(got), strings.ToLower(form)) && !strings.EqualFold(form, Placeholder) {
				t.Errorf("Hide shows %q of %q: %q", form, s, got)
			}
		}
	})
}
