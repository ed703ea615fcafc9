package develop

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// duplicateKeys finds keys that a mapping of a YAML text has twice: the last one counts, and nobody is told.
func duplicateKeys(text []byte) []string {
	var out []string
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var document yaml.Node
		if d.Decode(&document) != nil {
			return out // the end, or what is no YAML, of which others tell
		}
		addDuplicateKeys(&document, nil, &out)
	}
}

func addDuplicateKeys(n *yaml.Node, names []string, out *[]string) {
	if n.Kind != yaml.MappingNode {
		for i, item := range n.Content {
			at := names
			if n.Kind == yaml.SequenceNode {
				at = append(slices.Clone(names), fmt.Sprint(i))
			}
			addDuplicateKeys(item, at, out)
		}
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := append(slices.Clone(names), key.Value)
		if line, twice := first[key.Value]; twice && key.Tag != "!!merge" {
			*out = append(*out, fmt.Sprintf("%s is set twice, in lines %d and %d: the last one counts", strings.Join(at, "."), line, key.Line))
		}
		first[key.Value] = key.Line
		addDuplicateKeys(n.Content[i+1], at, out)
	}
}
