package hide

import (
	"encoding/json"
	"strings"
	"sync"

	"deployer/internal/lazyregexp"
)

// confidentialWords are the words in a key that say that its value is confidential.
var confidentialWords = lazyregexp.New(`passw|passphrase|\b(pw|pwd|pass|creds?|dsn|salt)\b|secret|token|credential|` +
	`[a-z0-9] key\b|\b(api|access|private|auth|ssh|signing|encryption|master|license|account)key\b|webhook ?url|connection ?string`)

// referenceWords matches keys whose value only refers to a confidential value: existingSecret,
// secretName, tokenPath, passwordKey, topologyKey.
var referenceWords = lazyregexp.New(`\b(name|ref|refs|path|paths|file|files|dir|mount|mounts|type|kind|enabled|create|created|annotations|labels|` +
	`length|ttl|expiry|expiration|policy|namespace|version|store|class|provider|audience|interval|keys|items|rotation|required|optional|image)$|` +
	`^existing\b|^(image ?)?pull ?secrets?$|^(external|sealed) ?secrets?$|(password|token|user|username|topology|label|annotation|primary|foreign|public) ?key$`)

// camel matches where one word of a name in camel case ends and the next one begins.
var camel = lazyregexp.New(`([a-z0-9])([A-Z])`)

var separators = strings.NewReplacer("-", " ", ".", " ", "_", " ", "/", " ")

type keyClass struct{ confidential, reference bool }

// classes remembers the classes of keys: classifying is slow, and revisions have mostly the same keys.
var classes sync.Map

func classOf(key string) keyClass {
	if class, ok := classes.Load(key); ok {
		return class.(keyClass)
	}
	words := strings.ToLower(separators.Replace(camel().ReplaceAllString(key, "${1} ${2}")))
	class := keyClass{reference: referenceWords().MatchString(words)}
	class.confidential = !class.reference && confidentialWords().MatchString(words)
	classes.Store(key, class)
	return class
}

// isConfidential reports whether a key says that its value is confidential. Settings and tolerations have "auth" and "key",
// too: there, the value decides.
func isConfidential(key string, v any) bool {
	text, _ := v.(string)
	return classOf(key).confidential || key == "auth" && !canBeWord(text) || key == "key" && strings.ContainsAny(text, "0123456789")
}

// namedValue returns the name of a map with a value: an environment variable, {name: PASSWORD, value: …}.
func namedValue(v map[string]any) (name string, ok bool) {
	if name, ok = v["name"].(string); !ok {
		name, ok = v["key"].(string)
	}
	_, isText := v["value"].(string)
	return name, ok && isText
}

// keyOf returns the key by which a field of a map is classified: that of an environment variable's value is the variable's name.
func keyOf(v map[string]any, field string) string {
	if name, named := namedValue(v); named && field == "value" {
		return name
	}
	return field
}

// refers reports whether the field "key" of a map names the key of a Secret or a label.
func refers(v map[string]any) bool {
	return v["name"] != nil || v["path"] != nil || v["operator"] != nil || v["effect"] != nil
}

// rewriteLeaves returns a copy of values with what rewrite makes of each value that is no map or list. Where keys
// inherit, everything below a confidential key is confidential.
func rewriteLeaves(v any, confidential, inherit bool, rewrite func(leaf any, confidential bool) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for field, item := range v {
			key := keyOf(v, field)
			of := isConfidential(key, item) && !(field == "key" && refers(v))
			out[field] = rewriteLeaves(item, of || inherit && confidential && !classOf(key).reference, inherit, rewrite)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = rewriteLeaves(item, confidential, inherit, rewrite)
		}
		return out
	}
	return rewrite(v, confidential)
}

// Values returns a copy of values without those of confidential keys, however short they are.
func Values(values map[string]any) map[string]any {
	out, _ := rewriteLeaves(values, false, true, func(leaf any, confidential bool) any {
		if confidential && textOf(leaf) != "" {
			return Placeholder
		}
		return leaf
	}).(map[string]any)
	return out
}

// MayBeConfidential reports whether values may have something confidential in them: by a key, or because a text is long
// enough, or of a form, that may hold a password. It is for those who would store values where others read them, so it
// says yes where nobody can tell.
func MayBeConfidential(values map[string]any) bool {
	found := false
	rewriteLeaves(values, false, true, func(leaf any, confidential bool) any {
		text, _ := leaf.(string)
		isToken := func(part string) bool {
			return len(part) >= 16 && strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != ""
		}
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ./:-_,", r) }) {
			found = found || isToken(part)
		}
		found = found || confidential && textOf(leaf) != "" || len(text) > 64 || strings.ContainsAny(text, "\n@=")
		return leaf
	})
	return found
}

// textOf is a text, or a number as JSON writes it; empty for everything else.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int, int32, int64, float64, json.Number:
		data, _ := json.Marshal(v)
		return string(data)
	}
	return ""
}
