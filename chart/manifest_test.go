package chart

import (
	"reflect"
	"strconv"
	"testing"

	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

// Files are split where Helm splits them: all texts of up to six of these parts.
func TestSplitDocumentsAsHelm(t *testing.T) {
	parts := []string{"---", "\n", " ", "a", "\t", "-", "\v", "\u00a0"}
	var try func(text string, left int)
	try = func(text string, left int) {
		var want []string
		of := releaseutil.SplitManifests(text)
		for i := range len(of) {
			want = append(want, of["manifest-"+strconv.Itoa(i)])
		}
		if got := splitDocuments(text); !reflect.DeepEqual(got, want) {
			t.Errorf("splitDocuments(%q) = %q, want %q", text, got, want)
		}
		for _, part := range parts {
			if left > 0 && !t.Failed() {
				try(text+part, left-1)
			}
		}
	}
	try("", 5)
}

// The head of a document is as Helm reads it.
func TestReadHeadAsHelm(t *testing.T) {
	for _, text := range []string{
		"", "a", "- a", "{}", "kind: A", "apiVersion: v1\nkind: A\nmetadata:\n  name: x\n  annotations:\n    a: b\n    c: \"d\"\ndata:\n  e: |\n    f\n    g",
		"kind: 1", "kind: true", "kind: ~", "kind:", "Kind: A", "KIND: A\nkind: B", "kind: A\nmetadata:", "kind: A\nmetadata: {}", "metadata: a", "metadata: [a]", "metadata:\n  name: 5",
		"metadata:\n  Name: a", "metadata:\n  name: a\n  annotations:", "metadata:\n  annotations: {}", "metadata:\n  annotations:\n    a: 1\n    b: true", "metadata:\n  annotations:\n    a:",
		"metadata:\n  annotations:\n    a: {b: c}", "metadata:\n  annotations: [a]", "kind: A\nkind: B", "kind: A\nspec: &a {}\nother: *a", "kind: A # comment", "kind: \"A\\n\"", "kind: A\n bad", "apiVersion: 1.0\nkind: 2024-01-01",
	} {
		var want releaseutil.SimpleHead
		wantErr := yaml.Unmarshal([]byte(text), &want)
		got, err := readHead(text)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("readHead(%q) = %+v, %v, want %+v, %v", text, got, err, want, wantErr)
		}
	}
}
