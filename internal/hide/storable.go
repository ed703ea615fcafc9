package hide

import "strings"

// MayBeConfidential reports whether values may have something confidential in them: by a key, or because a text is long
// enough, or of a form, that may hold a password. It is for those who would store values where others read them, so it
// says yes where nobody can tell.
func MayBeConfidential(values any) bool {
	switch v := values.(type) {
	case map[string]any:
		name, _, _ := namedValue(v)
		for key, item := range v {
			if class := classifyKey(key); class == confidentialKey || class == ambiguousKey && key != "key" {
				return true
			}
			if key == "value" && classifyKey(name) == confidentialKey || MayBeConfidential(item) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if MayBeConfidential(item) {
				return true
			}
		}
	case string:
		return len(v) > 64 || strings.ContainsAny(v, "\n@=") || isMixed(v)
	}
	return false
}

// isMixed reports whether a part of a text between punctuation is of letters and digits, and long: a token, mostly.
func isMixed(text string) bool {
	const long = 16
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ./:-_,", r) }) {
		if len(part) >= long && strings.ContainsAny(part, "0123456789") && strings.ContainsFunc(part, func(r rune) bool { return r < '0' || r > '9' }) {
			return true
		}
	}
	return false
}
