package hide

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func secretOf(data map[string]any) *unstructured.Unstructured {
	encoded := map[string]any{}
	for key, v := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(v.(string)))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db"}, "data": encoded,
	}}
}

func TestHide(t *testing.T) {
	var texts Texts
	texts.AddObject(secretOf(map[string]any{
		"password": "hunter2-X", "username": "postgres", "host": "web-db.prod.svc", "url": "http://x:1/a?b=c&d",
		"pem":       "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0\nx\n",
		"auth.json": `{"auths":{"r.io":{"auth":"dXNlcjpwYXNzd29yZA==","username":"someone-1","password":"quay-pass"}}}`,
		"flag":      "true", "pin": "12", "odd": `a<b>&"c'd9`, "shared": "shared-with-1", "seen": "in-sight-1",
	}))
	texts.AddObject(&unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"user": "in-sight-1", "password": "hunter2-X"}}})
	texts.AddValues(map[string]any{
		"image": "nginx:1.25",
		"auth":  map[string]any{"password": "s3cret-ABC", "existingSecret": "web-credentials", "enabled": true},
		"smtp":  map[string]any{"apiKey": 1234567890, "token": "ab1"},
		"secrets": map[string]any{
			"values": []any{map[string]any{"DB": "value-of-db"}}, "name": "web-secrets", "flag": "production",
		},
		"tolerations": []any{map[string]any{"key": "dedicated-nodes", "value": "x"}},
		"tls":         map[string]any{"key": "PRIVATE 0123456789"},
	})
	for text, want := range map[string]string{
		"hunter2-X":                      "(hidden)",
		"got hunter2-X, want x":          "got (hidden), want x",
		"postgres://me:hunter2-X@h/db":   "postgres://me:(hidden)@h/db",
		"base64 aHVudGVyMi1Y of it":      "base64 (hidden) of it",
		"hunter2-X00 and HUNTER2-X":      "(hidden)00 and (hidden)",
		"s3cret-ABC":                     "(hidden)",
		`{"p":"s3cret-ABC"}`:             `{"p":"(hidden)"}`,
		"key 1234567890":                 "key (hidden)",
		"the ab1 of it":                  "the ab1 of it",
		"postgres:16":                    "postgres:16",
		"postgres":                       "postgres", // it may be a word
		"to web-db.prod.svc:5432":        "to web-db.prod.svc:5432",
		"web-credentials, web-secrets":   "web-credentials, web-secrets",
		"x value-of-db":                  "x (hidden)",
		"    MIIEvQIBADANBgkqhkiG9w0":    "    (hidden)",
		"http://x:1/a?b=c\\u0026d":       "(hidden)",
		"a&lt;b&gt;&amp;&#34;c&#39;d9":   "(hidden)",
		"quay-pass dXNlcjpwYXNzd29yZA==": "(hidden) (hidden)",
		"someone-1 else":                 "someone-1 else", // a leaf of a document whose own key says nothing
		"shared-with-1":                  "(hidden)",
		"in-sight-1":                     "in-sight-1",
		"dedicated-nodes":                "dedicated-nodes",
		"PRIVATE 0123456789":             "(hidden)",
		"true":                           "true",
		"production":                     "production",
		"":                               "",
	} {
		if got := texts.Hide(text); got != want {
			t.Errorf("Hide(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestNamesAreShown: a value names an object, an image, a key or a host, and the same text is confidential by its key.
func TestNamesAreShown(t *testing.T) {
	var texts Texts
	names := []string{"shop-db-1", "shop-tls-cert-2", "acme-images/web-3", "db_password_4", "shop-5.example", "registry-6", "pull-secret-7"}
	values := map[string]any{}
	for i, name := range names {
		values["secret"+string(rune('A'+i))] = name
	}
	texts.AddValues(map[string]any{"secrets": values, "password": "acme-images"})
	texts.AddObject(custom("apps/v1", "Deployment", `{"spec":{
		"containers":[{"name":"app","image":"registry-6/acme-images/web-3:15","env":[{"name":"P","valueFrom":{"secretKeyRef":{"name":"shop-db-1","key":"db_password_4"}}}]}],
		"volumes":[{"name":"t","secret":{"secretName":"shop-tls-cert-2"}}],"imagePullSecrets":[{"name":"pull-secret-7"}],"rules":[{"host":"shop-5.example"}]}}`))
	for _, text := range []string{
		`secret "shop-db-1" not found`, `secrets "shop-tls-cert-2" is forbidden`, `couldn't find key db_password_4 in Secret prod/shop-db-1`,
		`failed to pull and unpack image "registry-6/acme-images/web-3:15"`, `no such host: shop-5.example`, `imagePullSecrets: pull-secret-7`,
	} {
		if got := texts.Hide(text); got != text {
			t.Errorf("Hide(%q) = %q", text, got)
		}
	}
}

// TestGeneratedValuesAreHidden also if they might be words.
func TestGeneratedValuesAreHidden(t *testing.T) {
	var texts Texts
	texts.AddObject(secretOf(map[string]any{"password": "qwxzkvbn", "mode": "standalone", "db.pass": "lowercase"}), "data.password", `data."db.pass"`)
	if got := texts.Hide("qwxzkvbn and lowercase are standalone"); got != "(hidden) and (hidden) are standalone" {
		t.Errorf("got %q", got)
	}
}

// TestLeavesOfDocumentsCountByTheirOwnKey: a Secret with a whole values.yaml doesn't make its words confidential.
func TestLeavesOfDocumentsCountByTheirOwnKey(t *testing.T) {
	var texts Texts
	texts.AddObject(secretOf(map[string]any{"values.yaml": "Release: {Service: Helm-v3.x, Name: jhub-1}\nannouncement: https://discourse.jupyter.org/c/1\nproxy: {secretToken: 0123abcd4567}\ncustom: {a: [first-1-item]}\n"}))
	if got, want := texts.Hide("Helm-v3.x, jhub-1, https://discourse.jupyter.org/c/1, first-1-item, 0123abcd4567"), "Helm-v3.x, jhub-1, https://discourse.jupyter.org/c/1, first-1-item, (hidden)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHideOfAnnotatedFields(t *testing.T) {
	var texts Texts
	obj := annotated("ConfigMap", map[string]any{"deployer.io/sensitive-paths": "data.token,spec.list[*].value"})
	obj.Object["data"] = map[string]any{"token": "tok-123456", "other": "public-123456"}
	obj.Object["spec"] = map[string]any{"list": []any{map[string]any{"value": "item-98765432"}}}
	texts.AddObject(obj)
	if got, want := texts.Hide("tok-123456 public-123456 item-98765432"), "(hidden) public-123456 (hidden)"; got != want {
		t.Errorf("Hide = %q, want %q", got, want)
	}
}

func TestHideInJSON(t *testing.T) {
	var texts *Texts
	data := map[string]any{"a": []any{"hunter2-X", map[string]any{"b": "x hunter2-X"}}, "n": 1.0}
	if got := texts.HideValue(data); got.(map[string]any)["n"] != 1.0 || texts.Hide("hunter2-X") != "hunter2-X" {
		t.Errorf("no texts hide something: %v", got)
	}
	texts = &Texts{}
	texts.AddValues(map[string]any{"password": "hunter2-X"})
	out, err := json.Marshal(texts.HideValue(data))
	if err != nil || strings.Contains(string(out), "hunter2") {
		t.Errorf("Value = %s, %v", out, err)
	}
	if data["a"].([]any)[0] != "hunter2-X" {
		t.Errorf("the original was changed: %v", data)
	}
}

// What was learned once isn't looked at again, but the same text may be more confidential elsewhere.
func TestTextsOfSeveralKeys(t *testing.T) {
	var texts Texts
	const text = "seen-by-1"
	texts.AddObject(secretOf(map[string]any{"mode": text}))
	texts.AddObject(custom("v1", "ConfigMap", `{"data":{"mode":"`+text+`"}}`))
	if shown := texts.Hide("in " + text); !strings.Contains(shown, text) {
		t.Fatalf("what stands in plain sight is hidden: %s", shown)
	}
	texts.AddValues(map[string]any{"plain": text})
	texts.AddValues(map[string]any{"passwords": map[string]any{"plain": text}})
	if shown := texts.Hide("says " + text); strings.Contains(shown, text) {
		t.Errorf("the password is shown: %s", shown)
	}
}

// TestConfidentialNumbersAreHidden: a PIN or an account's number in a field that is declared confidential is
// hidden where the chart copies it to, too.
func TestConfidentialNumbersAreHidden(t *testing.T) {
	var texts Texts
	texts.AddObject(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Account",
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"deployer.io/sensitive-paths": "spec.number,spec.deep"}},
		"spec":     map[string]any{"number": int64(4815162342), "deep": []any{map[string]any{"n": float64(2718281828)}}, "port": int64(80808080)},
	}})
	if got := texts.Hide("4815162342, x2718281828, 2718281828, 80808080"); got != "(hidden), x2718281828, (hidden), 80808080" {
		t.Errorf("got %q", got)
	}
	if got := texts.HideValue(int64(4815162342)); got != Placeholder {
		t.Errorf("got %v", got)
	}
}
