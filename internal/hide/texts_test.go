package hide

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeys(t *testing.T) {
	for key, want := range map[string]keyClass{
		"password": confidentialKey, "dbPassword": confidentialKey, "DB_PASSWORD": confidentialKey, "postgres-password": confidentialKey, "token": confidentialKey,
		"apiKey": confidentialKey, "API_KEY": confidentialKey, "secretKey": confidentialKey, "encryptionKey": confidentialKey, "licenseKey": confidentialKey,
		"credentials": confidentialKey, "clientSecret": confidentialKey, "slackWebhookUrl": confidentialKey, "pwd": confidentialKey, "tls.key": confidentialKey,
		"key": ambiguousKey, "auth": ambiguousKey,
		"existingSecret": ordinaryKey, "secretName": ordinaryKey, "tokenPath": ordinaryKey, "passwordFile": ordinaryKey,
		"existingSecretPasswordKey": ordinaryKey, "passwordKey": ordinaryKey, "topologyKey": ordinaryKey, "imagePullSecrets": ordinaryKey,
		"secretKeyRef": ordinaryKey, "secretKeys": ordinaryKey, "externalSecrets": ordinaryKey, "tokenTTL": ordinaryKey,
		"image": ordinaryKey, "host": identifierKey, "username": identifierKey, "DB_NAME": ordinaryKey, "databaseHost": identifierKey, "keyboard": ordinaryKey, "monkey": ordinaryKey, "passthrough": ordinaryKey, "author": ordinaryKey,
	} {
		if got := classifyKey(key); got != want {
			t.Errorf("suspect(%s) = %d, want %d", key, got, want)
		}
	}
}

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
		"password": "hunter2", "username": "postgres", "host": "web-db.prod.svc", "url": "http://x:1/a?b=c&d",
		"pem":       "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0\nx\n",
		"auth.json": `{"auths":{"r.io":{"auth":"dXNlcjpwYXNzd29yZA==","username":"someone","password":"quay-pass"}}}`,
		"flag":      "true", "pin": "12", "odd": `a<b>&"c'd9`,
	}))
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
	texts.AddVisibleName("web-db")
	for text, want := range map[string]string{
		"hunter2":                        "(hidden)",
		"got hunter2, want x":            "got (hidden), want x",
		"postgres://me:hunter2@h/db":     "postgres://me:(hidden)@h/db",
		"base64 aHVudGVyMg== of it":      "base64 (hidden) of it",
		"hunter2000 and HUNTER2":         "(hidden)000 and (hidden)",
		"s3cret-ABC":                     "(hidden)",
		`{"p":"s3cret-ABC"}`:             `{"p":"(hidden)"}`,
		"key 1234567890":                 "key (hidden)",
		"ab1":                            "(hidden)",
		"the ab1 of it":                  "the ab1 of it",
		"postgres:16":                    "postgres:16",
		"postgres":                       "(hidden)", // the whole value of a field
		"web-db.prod.svc":                "web-db.prod.svc",
		"to web-db.prod.svc:5432":        "to web-db.prod.svc:5432",
		"web-credentials, web-secrets":   "web-credentials, web-secrets",
		"x value-of-db":                  "x (hidden)",
		"    MIIEvQIBADANBgkqhkiG9w0":    "    (hidden)",
		"http://x:1/a?b=c\\u0026d":       "(hidden)",
		"a&lt;b&gt;&amp;&#34;c&#39;d9":   "(hidden)",
		"quay-pass dXNlcjpwYXNzd29yZA==": "(hidden) (hidden)",
		"someone else, someones":         "(hidden) else, someones",
		"dedicated-nodes":                "dedicated-nodes",
		"PRIVATE 0123456789":             "(hidden)",
		"true":                           "true",
		"production":                     "production",
		"12":                             "12",
		"":                               "",
	} {
		if got := texts.Hide(text); got != want {
			t.Errorf("Hide(%q) = %q, want %q", text, got, want)
		}
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
	data := map[string]any{"a": []any{"hunter2", map[string]any{"b": "x hunter2"}}, "n": 1.0}
	if got := texts.HideValue(data); got.(map[string]any)["n"] != 1.0 || texts.Hide("hunter2") != "hunter2" {
		t.Errorf("no texts hide something: %v", got)
	}
	texts = &Texts{}
	texts.AddValues(map[string]any{"password": "hunter2"})
	out, err := json.Marshal(texts.HideValue(data))
	if err != nil || strings.Contains(string(out), "hunter2") {
		t.Errorf("Value = %s, %v", out, err)
	}
	if data["a"].([]any)[0] != "hunter2" {
		t.Errorf("the original was changed: %v", data)
	}
}

// What was added once isn't looked at again, but the same text may be more confidential elsewhere.
func TestTextsOfSeveralKeys(t *testing.T) {
	var texts Texts
	const word = "postgres"
	texts.AddObject(secretOf(map[string]any{"mode": word}))
	if shown := texts.Hide("in " + word + " it snows"); !strings.Contains(shown, word) {
		t.Fatalf("an ordinary word of an ordinary key is hidden: %s", shown)
	}
	texts.AddValues(map[string]any{"password": word})
	if shown := texts.Hide("in " + word + " it snows"); strings.Contains(shown, word) {
		t.Errorf("the password is shown: %s", shown)
	}
	// Below a confidential key an ordinary key is confidential, whatever it was elsewhere.
	texts.AddValues(map[string]any{"plain": "0ther-words"})
	texts.AddValues(map[string]any{"passwords": map[string]any{"plain": "0ther-words"}})
	if shown := texts.Hide("says 0ther-words"); strings.Contains(shown, "0ther-words") {
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
