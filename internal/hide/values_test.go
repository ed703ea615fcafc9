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
