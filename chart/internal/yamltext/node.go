// Package yamltext splits manifests into YAML documents, finds values in the text of one, and hides what errors of the
// YAML library quote of it.
package yamltext

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

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
