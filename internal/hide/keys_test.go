package hide

import (
	"reflect"
	"testing"
)

// TestValuesOfConfidentialKeysAreHidden, also those that are too short to be searched for in texts.
func TestValuesOfConfidentialKeysAreHidden(t *testing.T) {
	values := map[string]any{
		"password": "x7q", "image": "web:1", "replicas": int64(3), "pin": map[string]any{"secret": int64(7)},
		"auth": map[string]any{"passwords": []any{"a", "b"}, "existingSecret": "db"}, "empty": map[string]any{"token": ""},
		"env": []any{map[string]any{"name": "DB_PASSWORD", "value": "s"}, map[string]any{"name": "MODE", "value": "fast"}},
	}
	want := map[string]any{
		"password": Placeholder, "image": "web:1", "replicas": int64(3), "pin": map[string]any{"secret": Placeholder},
		"auth": map[string]any{"passwords": []any{Placeholder, Placeholder}, "existingSecret": "db"}, "empty": map[string]any{"token": ""},
		"env": []any{map[string]any{"name": "DB_PASSWORD", "value": Placeholder}, map[string]any{"name": "MODE", "value": "fast"}},
	}
	if got := Values(values); !reflect.DeepEqual(got, want) {
		t.Errorf("Values() = %v\nwant %v", got, want)
	}
	if values["password"] != "x7q" {
		t.Error("Values has changed what it was given")
	}
}

// What is stored in a plan that anybody may read has no password in it, even if nothing says that it is one.
func TestMayBeConfidential(t *testing.T) {
	for _, c := range []struct {
		values map[string]any
		want   bool
	}{
		{nil, false},
		{map[string]any{"replicas": int64(3), "image": map[string]any{"tag": "1.27.4-alpine", "repository": "registry.example.com/team/web"}, "debug": true}, false},
		{map[string]any{"greeting": "Hello, world", "hosts": []any{"a.example.com"}}, false},
		{map[string]any{"tolerations": []any{map[string]any{"key": "dedicated", "value": "web"}}}, false},
		{map[string]any{"db": map[string]any{"password": "postgres"}}, true},
		{map[string]any{"env": []any{map[string]any{"name": "DB_PASSWORD", "value": "abc"}}}, true},
		{map[string]any{"url": "postgres://me:secret@db"}, true},
		{map[string]any{"options": "user=me password=x"}, true},
		{map[string]any{"extra": "9f86d081884c7d659a2feaa0c55ad015"}, true},
		{map[string]any{"file": "-----BEGIN\nabc"}, true},
	} {
		if got := MayBeConfidential(c.values); got != c.want {
			t.Errorf("MayBeConfidential(%v) = %t", c.values, got)
		}
	}
}

func TestKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"password": true, "dbPassword": true, "DB_PASSWORD": true, "postgres-password": true, "token": true,
		"apiKey": true, "API_KEY": true, "secretKey": true, "encryptionKey": true, "licenseKey": true,
		"credentials": true, "clientSecret": true, "slackWebhookUrl": true, "pwd": true, "tls.key": true,
		"auth": true, "key": false,
		"existingSecret": false, "secretName": false, "tokenPath": false, "passwordFile": false,
		"existingSecretPasswordKey": false, "passwordKey": false, "topologyKey": false, "imagePullSecrets": false,
		"secretKeyRef": false, "secretKeys": false, "externalSecrets": false, "tokenTTL": false,
		"image": false, "host": false, "username": false, "DB_NAME": false, "keyboard": false, "monkey": false, "passthrough": false, "author": false,
	} {
		if got := isConfidential(key, "text"); got != want {
			t.Errorf("isConfidential(%s) = %t, want %t", key, got, want)
		}
	}
}
