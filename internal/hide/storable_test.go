package hide

import "testing"

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
