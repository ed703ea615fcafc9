package generated

import (
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"deployer/chart/internal/yamltext"
)

// yamlScalar is a scalar of YAML that isn't text, as it is written.
type yamlScalar string

// decodeInner decodes a text that is one YAML document.
func decodeInner(text string) (any, error) {
	var root, more yaml.Node
	d := yaml.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return plainYAML(root.Content[0])
}

// plainYAML is the value of a node; an alias is an error.
func plainYAML(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := plainYAML(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[n.Content[i].Value] = v
		}
		return out, nil
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			v, err := plainYAML(item)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.ScalarNode:
		if n.ShortTag() == "!!str" {
			return n.Value, nil
		}
		return yamlScalar(n.Value), nil
	}
	return nil, errors.New("an alias")
}

// innerText decodes a text, makes edits that can't be made in the text itself, and encodes the result.
func innerText(text string, edits []edit) string {
	var root yaml.Node
	if yaml.Unmarshal([]byte(text), &root) != nil {
		return text
	}
	for _, e := range edits {
		if n := yamltext.NodeAt(root.Content[0], e.path...); n != nil {
			var next yaml.Node
			if next.Encode(yamlValue(e.part.value())) == nil {
				next.Style = next.Style | n.Style&(yaml.DoubleQuotedStyle|yaml.FlowStyle)
				*n = next
			}
		}
	}
	out, err := yaml.Marshal(&root)
	if err != nil {
		return text
	}
	return string(out)
}

// yamlValue is a value that is encoded with its scalars as they were written.
func yamlValue(v any) any {
	switch v := v.(type) {
	case yamlScalar:
		var n yaml.Node
		if yaml.Unmarshal([]byte(v), &n) == nil && len(n.Content) == 1 {
			return n.Content[0]
		}
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = yamlValue(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key := range v {
			out[key] = yamlValue(v[key])
		}
		return out
	}
	return v
}
