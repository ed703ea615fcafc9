package chart

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReplaceAPIVersions replaces API versions in a manifest and keeps all other bytes. newer
// returns an object's new API version; empty keeps the old one. changes has a line for each
// replaced version.
func ReplaceAPIVersions(manifest string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	out = RewriteDocuments(manifest, func(text string) string {
		text, replaced := replaceAPIVersions(text, newer)
		changes = append(changes, replaced...)
		return text
	})
	return out, changes
}

func replaceAPIVersions(text string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	var root yaml.Node
	objects, err := manifestDocument{text: text}.objects()
	if err != nil || yaml.Unmarshal([]byte(text), &root) != nil || len(root.Content) != 1 {
		return text, nil // planning says what is wrong with it
	}
	said := apiVersionNodes(root.Content[0], nil)
	if len(said) != len(objects) {
		return text, nil
	}
	for i := len(said) - 1; i >= 0; i-- { // from the end, so that earlier offsets stay valid
		obj := objects[i]
		next := newer(obj)
		at := scalarOffset(text, said[i])
		if next == "" || at < 0 {
			continue
		}
		old := obj.GetAPIVersion()
		text = text[:at] + next + text[at+len(old):]
		changes = append([]string{fmt.Sprintf("%s/%s: %s is not served any more, sent as %s", obj.GetKind(), obj.GetName(), old, next)}, changes...)
	}
	return text, changes
}

// apiVersionNodes appends the apiVersion nodes of the objects in n, in the order of decode;
// nil for an object that inherits it from its list.
func apiVersionNodes(n *yaml.Node, out []*yaml.Node) []*yaml.Node {
	kind, items := NodeAt(n, "kind"), NodeAt(n, "items")
	if kind == nil || !strings.HasSuffix(kind.Value, "List") || items == nil || items.Kind != yaml.SequenceNode {
		return append(out, NodeAt(n, "apiVersion"))
	}
	for _, item := range items.Content {
		out = apiVersionNodes(item, out)
	}
	return out
}

// scalarOffset returns the offset of a plain or quoted scalar, without the quote; -1 when
// the text there isn't the scalar's value.
func scalarOffset(text string, n *yaml.Node) int {
	if n == nil || n.Kind != yaml.ScalarNode {
		return -1
	}
	at, ok := NodeOffset(text, n)
	at += len(text[at:]) - len(strings.TrimLeft(text[at:], `"'`))
	if !ok || !strings.HasPrefix(text[at:], n.Value) {
		return -1
	}
	return at
}

// NodeAt is the node at a path of keys and indexes; nil when there is none, or an alias is in
// between. Of a repeated key the last value counts.
func NodeAt(n *yaml.Node, path ...any) *yaml.Node {
	for _, step := range path {
		var next *yaml.Node
		switch at := step.(type) {
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == at {
					next = n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && at < len(n.Content) {
				next = n.Content[at]
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

// NodeOffset is where a node begins in the text that it was read from; 0 and false when that isn't in it.
func NodeOffset(text string, n *yaml.Node) (int, bool) {
	at := 0
	for range n.Line - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		if size == 0 {
			return 0, false
		}
		at += size
	}
	return at, at < len(text)
}

// RewriteDocuments replaces the text of each document of a manifest, which includes its
// source comment, and leaves separators and blank documents as they are.
func RewriteDocuments(manifest string, change func(text string) string) string {
	var out strings.Builder
	for _, d := range splitManifest(manifest, "") {
		at := strings.Index(manifest, d.text)
		out.WriteString(manifest[:at])
		manifest = manifest[at+len(d.text):]
		out.WriteString(change(d.text))
	}
	return out.String() + manifest
}
