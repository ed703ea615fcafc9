package hide

import (
	"strings"

	"deployer/internal/lazyregexp"
)

// A keyClass says how confidential a value is, by its key.
type keyClass int

const (
	ordinaryKey     keyClass = iota
	ambiguousKey             // "key" names tolerations as well as private keys: the value decides
	confidentialKey          // it says that its value is confidential
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

// wordsOf separates the words of a key.
func wordsOf(key string) string {
	return strings.ToLower(separators.Replace(camel().ReplaceAllString(key, "${1} ${2}")))
}

// classifyKey returns the class of a key.
func classifyKey(key string) keyClass {
	switch words := wordsOf(key); {
	case referenceWords().MatchString(words):
		return ordinaryKey
	case confidentialWords().MatchString(words):
		return confidentialKey
	case words == "key" || words == "auth":
		return ambiguousKey
	}
	return ordinaryKey
}

// classOf is classifyKey with a memory, because classifying is slow and revisions have mostly the same keys. t must be locked.
func (t *Texts) classOf(key string) keyClass {
	class, ok := t.classes[key]
	if !ok {
		class = classifyKey(key)
		t.classes[key] = class
	}
	return class
}
