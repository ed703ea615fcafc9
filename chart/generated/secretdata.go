package generated

import "encoding/base64"

// secretText returns a value of a Secret's data, decoded; false when there is none. stringData is another way to write
// data. https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data
func secretText(secret map[string]any, name string) (string, bool) {
	if text, ok := mapField(secret, "stringData")[name].(string); ok {
		return text, true
	}
	encoded, ok := mapField(secret, "data")[name].(string)
	plain, err := base64.StdEncoding.DecodeString(encoded)
	return string(plain), ok && err == nil
}

// recordedSecretData returns the data of a recorded Secret as the given field, data or stringData, would have it; nil
// when there is none.
func recordedSecretData(field string, recorded map[string]any) *any {
	out := map[string]any{}
	for _, from := range []string{"data", "stringData"} {
		for name := range mapField(recorded, from) {
			text, ok := secretText(recorded, name)
			switch {
			case !ok:
			case field == "data":
				out[name] = base64.StdEncoding.EncodeToString([]byte(text))
			default:
				out[name] = text
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return new(any(out))
}

// fieldOf is valueAt that finds a value of a Secret's data, decoded, in data and in stringData.
func fieldOf(content map[string]any, path []any) any {
	if content["kind"] == "Secret" && len(path) >= 2 && (path[0] == "stringData" || path[0] == "data") {
		name, _ := path[1].(string)
		if text, ok := secretText(content, name); ok {
			return text
		}
		return nil
	}
	return valueAt(content, path)
}

func mapField(m map[string]any, key string) map[string]any {
	out, _ := m[key].(map[string]any)
	return out
}
