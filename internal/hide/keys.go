package hide

import (
	"encoding/json"
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
)

var (
	// confidentialWords are the words in a key that say that its value is confidential.
	confidentialWords = lazyregexp.New(`passw|passphrase|\b(pw|pwd|pass|creds?|dsn|salt)\b|secret|token|credential|` +
		`[a-z0-9] key\b|\b(api|access|private|auth|ssh|signing|encryption|master|license|account)key\b|webhook ?url|connection ?string`)
	// referenceWords matches keys whose value only refers to a confidential value: existingSecret,
	// secretName, tokenPath, passwordKey, topologyKey.
	referenceWords = lazyregexp.New(`\b(name|ref|refs|path|paths|file|files|dir|mount|mounts|type|kind|enabled|create|created|annotations|labels|` +
		`length|ttl|expiry|expiration|policy|namespace|version|store|class|provider|audience|interval|keys|items|rotation|required|optional|image)$|` +
		`^existing\b|^(image ?)?pull ?secrets?$|^(external|sealed) ?secrets?$|(password|token|user|username|topology|label|annotation|primary|foreign|public) ?key$`)
	// camel matches where one word of a name in camel case ends and the next one begins.
	camel      = lazyregexp.New(`([a-z0-9])([A-Z])`)
	separators = strings.NewReplacer("-", " ", ".", " ", "_", " ", "/", " ")
)

// wordsOf separates the words of a key.
func wordsOf(key string) string {
	return strings.ToLower(separators.Replace(camel().ReplaceAllString(key, "${1} ${2}")))
}

func isReference(key string) bool { return referenceWords().MatchString(wordsOf(key)) }

// isConfidential reports whether a key says that its value is confidential. Sections are called "auth", too, and settings and
// tolerations "key": there, the value decides.
func isConfidential(key string, v any) bool {
	switch words := wordsOf(key); words {
	case "auth":
		return textOf(v) != ""
	case "key":
		return strings.ContainsAny(textOf(v), "0123456789")
	default:
		return confidentialWords().MatchString(words) && !referenceWords().MatchString(words)
	}
}

// keyOf returns the key by which a field of a map is classified: that of an environment variable's value is the variable's
// name, as in {name: PASSWORD, value: …}.
func keyOf(v map[string]any, field string) string {
	for _, naming := range []string{"name", "key"} {
		name, isNamed := v[naming].(string)
		if _, isText := v["value"].(string); isNamed && isText && field == "value" {
			return name
		}
	}
	return field
}

// textOf is a text, or a number as JSON writes it; empty for other values.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int, int32, int64, float64, json.Number:
		data, _ := json.Marshal(v) // infinity has no text
		return string(data)
	}
	return ""
}

// A place is where a value stands, in an object, in values or in a document.
type place struct {
	names   []string // its path, with Item for items of lists
	key     string   // by which it is classified: its own, or that of its list
	inherit bool     // everything below a confidential key is confidential, except references
	below   bool     // it stands below one
}

func (p place) isConfidential(v any) bool {
	return isConfidential(p.key, v) || p.below && !isReference(p.key)
}

// walk returns a copy of a value with what visit makes of it and of everything in it. Where visit returns false, the value stays, and
// what is in it is visited.
func walk(v any, at place, visit func(v any, at place) (any, bool)) any {
	if out, replaced := visit(v, at); replaced {
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		isBelow := at.inherit && at.isConfidential(v)
		for field, item := range v {
			out[field] = walk(item, place{below(at.names, field), keyOf(v, field), at.inherit, isBelow}, visit)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = walk(item, place{below(at.names, Item), at.key, at.inherit, at.below}, visit)
		}
		return out
	}
	return v
}

func below(names []string, name string) []string { return append(slices.Clip(names), name) }

// Values returns a copy of values without those of confidential keys, however short they are.
func Values(values map[string]any) map[string]any {
	out, _ := walk(values, place{inherit: true}, func(v any, at place) (any, bool) {
		return Placeholder, textOf(v) != "" && at.isConfidential(v)
	}).(map[string]any)
	return out
}

// MayBeConfidential reports whether values may have something confidential in them: by a key, or because a text is long
// enough, or of a form, that may hold a password. It is for those who would store values where others read them, so it
// says yes where nobody can tell.
func MayBeConfidential(values map[string]any) bool {
	found := false
	walk(values, place{inherit: true}, func(v any, at place) (any, bool) {
		text, _ := v.(string)
		found = found || at.isConfidential(v) || wordsOf(at.key) == "auth" || len(text) > 64 || strings.ContainsAny(text, "\n@=")
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ./:-_,", r) }) {
			found = found || len(part) >= 16 && strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != ""
		}
		return nil, false
	})
	return found
}
