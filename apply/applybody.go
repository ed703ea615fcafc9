package apply

import (
	"encoding/json"
	"fmt"
	"strings"
)

// applyBody encodes an object for server-side apply. The API server reads the body as YAML, which
// has fewer characters than JSON: others are escaped.
// https://yaml.org/spec/1.2.2/#51-character-set
func applyBody(object map[string]any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	text := string(data)
	if !strings.ContainsFunc(text, notInYAML) {
		return data, nil
	}
	var b strings.Builder
	for _, r := range text {
		if notInYAML(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return []byte(b.String()), nil
}

// notInYAML reports whether YAML doesn't allow a character unless it is escaped, or folds it as a
// line break. JSON has none below the blank.
func notInYAML(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
