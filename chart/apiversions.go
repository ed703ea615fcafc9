package chart

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart/internal/yamltext"
)

// ReplaceAPIVersions replaces API versions in a manifest and keeps all other bytes. newer
// returns an object's new API version; empty keeps the old one. changes has a line for each
// replaced version.
func ReplaceAPIVersions(manifest string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	out = yamltext.RewriteDocuments(manifest, func(text string) string {
		text, replaced := replaceAPIVersions(text, newer)
		changes = append(changes, replaced...)
		return text
	})
	return out, changes
}

func replaceAPIVersions(text string, newer func(*unstructured.Unstructured) string) (out string, changes []string) {
	var root yaml.Node
	objects, err := objectsOf(yamltext.Document{Text: text})
	if err != nil || yaml.Unmarshal([]byte(text), &root) != nil || len(root.Content) != 1 {
		return text, nil // planning says what is wrong with it
	}
	nodes := apiVersionNodes(root.Content[0], nil)
	if len(nodes) != len(objects) {
		return text, nil
	}
	for i := len(nodes) - 1; i >= 0; i-- { // from the end, so that earlier offsets stay valid
		obj := objects[i]
		next := newer(obj)
		at := scalarOffset(text, nodes[i])
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
	kind, items := yamltext.NodeAt(n, "kind"), yamltext.NodeAt(n, "items")
	if kind == nil || !strings.HasSuffix(kind.Value, "List") || items == nil || items.Kind != yaml.SequenceNode {
		return append(out, yamltext.NodeAt(n, "apiVersion"))
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
	at, ok := yamltext.NodeOffset(text, n)
	at += len(text[at:]) - len(strings.TrimLeft(text[at:], `"'`))
	if !ok || !strings.HasPrefix(text[at:], n.Value) {
		return -1
	}
	return at
}
