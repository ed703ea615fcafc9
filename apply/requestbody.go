package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// applyBody encodes an object for server-side apply. The API server reads the body as YAML, which
// has fewer characters than JSON: others are escaped.
// https://yaml.org/spec/1.2.2/#51-character-set
func applyBody(object map[string]any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil || !bytes.ContainsFunc(data, notInYAML) {
		return data, err
	}
	var escaped []byte
	for _, r := range string(data) {
		if notInYAML(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped, nil
}

// notInYAML reports whether YAML doesn't allow a character unless it is escaped, or folds it as a
// line break. JSON has none below the blank.
func notInYAML(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// jsonPointerEscaper escapes the parts of a JSON pointer. https://www.rfc-editor.org/rfc/rfc6901
var jsonPointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// jsonPatchOf returns the JSON patch from one object to another. Unlike a merge patch it
// can write null.
func jsonPatchOf(path string, from, to map[string]any) []patchOperation {
	var ops []patchOperation
	for key, v := range to {
		at := path + "/" + jsonPointerEscaper.Replace(key)
		old, had := from[key]
		if had && reflect.DeepEqual(old, v) {
			continue
		}
		a, ok1 := old.(map[string]any)
		b, ok2 := v.(map[string]any)
		if at == "/metadata" && ok1 && ok2 {
			ops = append(ops, jsonPatchOf(at, a, b)...)
		} else {
			ops = append(ops, patchOperation{"add", at, v})
		}
	}
	for key := range from {
		if _, still := to[key]; !still {
			ops = append(ops, patchOperation{Op: "remove", Path: path + "/" + jsonPointerEscaper.Replace(key)})
		}
	}
	return ops
}

// patchOperation is one of a JSON patch. https://www.rfc-editor.org/rfc/rfc6902
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // which a removal doesn't read
}
