package hide

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
)

// nameKeys are keys whose values name objects, images and hosts; see isNameKey.
var nameKeys = map[string]bool{
	"name": true, "generateName": true, "namespace": true, "kind": true, "apiVersion": true, "image": true, "host": true, "hosts": true,
	"hostname": true, "hostnames": true, "serviceAccount": true, "existingSecret": true,
}

func isNameKey(key string) bool { return nameKeys[key] || strings.HasSuffix(key, "Name") }

// addOpen takes in the names in a value of an object, and the values in plain sight. names is its path, key its own key or that of its list.
func (t *Texts) addOpen(f Fields, names []string, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if key == "openAPIV3Schema" {
			return // of a CustomResourceDefinition
		}
		name, _, named := namedValue(v)
		for k, item := range v {
			text, _ := item.(string)
			refers := k == "key" && (v["name"] != nil || v["path"] != nil || v["operator"] != nil) // to the key of a Secret, or a label
			if refers {
				t.addName(text)
			}
			if key == "data" || key == "stringData" || key == "binaryData" {
				t.addName(k)
			}
			of := k
			if named && k == "value" {
				of = name
			}
			t.addOpen(f, append(names, k), of, item)
		}
	case []any:
		for _, item := range v {
			t.addOpen(f, append(names, Item), key, item)
		}
	case string:
		switch {
		case f.IsHidden(names):
		case isNameKey(key):
			t.addName(v)
			if key == "image" {
				repository := imageVersion().ReplaceAllString(v, "")
				for rest, more := repository, true; more; {
					t.addName(rest)
					var part string
					part, rest, more = strings.Cut(rest, "/")
					t.addName(part)
				}
			}
		case !canBeWord(v) && len(v) <= maxOpen && !strings.Contains(v, " ") && t.classOf(key) == ordinaryKey:
			t.open[v] = true
		}
	}
}

// imageVersion matches the tag and the digest of an image.
var imageVersion = lazyregexp.New(`(:[^/@]*)?(@.*)?$`)

// maxOpen is the length, in bytes, up to which a value counts as standing in plain sight.
const maxOpen = 256

// eachHidden calls do for every confidential text in a value.
func (f Fields) eachHidden(names []string, v any, do func(names []string, text string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			f.eachHidden(append(names[:len(names):len(names)], key), item, do)
		}
	case []any:
		for _, item := range v {
			f.eachHidden(append(names[:len(names):len(names)], Item), item, do)
		}
	default:
		text, isNumber := numberText(v)
		if s, ok := v.(string); ok {
			text = s
		}
		whole := !isNumber && len(names) == 1 && names[0] != "metadata" && f.IsHidden([]string{names[0], Item}) // data that isn't a map
		if text != "" && (whole || f.IsHidden(names)) {
			do(names, text)
		}
	}
}

// learnField learns a confidential field of an object.
func (t *Texts) learnField(obj *unstructured.Unstructured, names []string, text string, generated bool) {
	if IsSecret(obj) && names[0] == "data" {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(data)
		}
		if !utf8.ValidString(text) { // a key, or a keystore
			if len(text) >= minSearched {
				t.search.add(text, true)
			}
			return
		}
	}
	if generated {
		t.search.add(strings.TrimSpace(text), true)
	}
	t.learn(text, !IsSecret(obj) || t.classOf(names[len(names)-1]) == confidentialKey)
}

// learn learns a confidential text and what a chart may take out of it: the values of JSON, YAML and lines whose own keys are confidential,
// passwords at known places, and opaque lines. sure says that a key or the user has called it confidential; otherwise it is only part of a Secret.
func (t *Texts) learn(text string, sure bool) {
	if known, before := t.learned[text]; before && (known || !sure) {
		return // revisions have most in common
	}
	t.learned[text] = sure
	text = strings.TrimSpace(text)
	if !canBeWord(text) && (sure || !address().MatchString(text)) {
		t.search.add(text, sure)
	}
	t.learnEmbedded(text)
	if content := contentOf(text); content != nil {
		if list, ok := content.([]any); ok {
			for _, item := range list {
				if s, ok := item.(string); ok {
					t.learn(s, sure) // it has no key of its own
				}
			}
		}
		t.learnByKey(content, ordinaryKey, false)
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if m := assignment().FindStringSubmatch(line); m != nil && classifyKey(m[1]) == confidentialKey && m[2] != text {
			t.learn(strings.Trim(m[2], `"'`), true)
		} else if opaque().MatchString(line) && line != text {
			t.learn(line, sure)
		}
		if strings.ContainsAny(line, " \t=") || strings.Contains(line, "://") {
			continue
		}
		if fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(":,;|", r) }); len(fields) > 1 { // user:password
			for _, field := range fields {
				if !address().MatchString(field) {
					t.learn(field, sure)
				}
			}
		}
	}
}

var (
	// address matches the name of a host, with or without a port.
	address = lazyregexp.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+(:[0-9]+)?$`)
	// assignment is a line of a configuration: key=value, key: value, export KEY="value".
	assignment = lazyregexp.New(`^(?:export\s+|-\s+)?["']?([\w.\-/]+)["']?\s*[:=]\s*(.+?)[,;]?$`)
	// opaque matches a line of a PEM block, or of a list of tokens.
	opaque = lazyregexp.New(`^[\w+/=.~-]{8,}$`)
)

// maxDocument is the length, in bytes, up to which a text is read as JSON or YAML.
const maxDocument = 64 << 10

// contentOf returns the content of a text that is JSON or YAML with keys or items; nil for other texts.
func contentOf(text string) any {
	if len(text) > maxDocument || strings.Contains(text, "\n---") || !strings.ContainsAny(text, "[{:-") {
		return nil
	}
	var content any
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.Contains(text, ": ") || strings.Contains(text, ":\n") || strings.HasPrefix(text, "- ") {
		if json.Unmarshal([]byte(text), &content) != nil && yaml.Unmarshal([]byte(text), &content) != nil {
			return nil
		}
	}
	switch content.(type) {
	case map[string]any, []any:
		return content
	}
	return nil
}

// learnByKey learns the confidential ones of values. class is that of the key whose value v is. Where keys inherit, everything below a
// confidential key is confidential.
func (t *Texts) learnByKey(v any, class keyClass, inherits bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			key = keyOf(v, key)
			of := t.classOf(key)
			if inherits && class == confidentialKey && !referenceWords().MatchString(wordsOf(key)) {
				of = confidentialKey
			}
			if text, ok := item.(string); ok && key == "auth" { // of a registry: https://github.com/moby/moby, cli/config/types
				t.learnBasicAuth(text)
			}
			t.learnByKey(item, of, inherits)
		}
	case []any:
		for _, item := range v {
			t.learnByKey(item, class, inherits)
		}
	case string:
		if class == confidentialKey || class == ambiguousKey && strings.ContainsAny(v, "0123456789") {
			t.learn(v, true)
			return
		}
		t.learnEmbedded(v)
	default:
		if text, ok := numberText(v); ok && class == confidentialKey {
			t.learn(text, true)
		}
	}
}

// numberText is a number as JSON writes it; false for a value that isn't a number.
func numberText(v any) (string, bool) {
	switch v.(type) {
	case int, int32, int64, float64, json.Number:
		data, err := json.Marshal(v)
		return string(data), err == nil
	}
	return "", false
}

// namedValue returns the name and the value of a map that has both as fields, such as an environment
// variable: {name: PASSWORD, value: …}.
func namedValue(v map[string]any) (name, value string, ok bool) {
	if name, ok = v["name"].(string); !ok {
		name, ok = v["key"].(string)
	}
	value, isText := v["value"].(string)
	return name, value, ok && isText
}

// keyOf returns the key by which a field of a map is classified: that of an environment variable's value is the variable's name.
func keyOf(v map[string]any, field string) string {
	if name, _, named := namedValue(v); named && field == "value" {
		return name
	}
	return field
}

// learnEmbedded learns the passwords in a text that stand where only a password does: in a URL, in a header,
// or after a key such as password=. The text itself needn't be confidential.
func (t *Texts) learnEmbedded(text string) {
	if !strings.ContainsAny(text, ":=<") && !strings.Contains(text, "password ") {
		return
	}
	for _, place := range passwordPlaces {
		for _, m := range place().FindAllStringSubmatch(text, -1) {
			t.learn(m[1], true)
			if plain, err := url.PathUnescape(m[1]); err == nil {
				t.learn(plain, true)
			}
		}
	}
	for _, m := range basicAuth().FindAllStringSubmatch(text, -1) {
		t.learnBasicAuth(m[1])
	}
	for _, pairs := range []lazyregexp.Regexp{pair, element} {
		for _, m := range pairs().FindAllStringSubmatch(text, -1) {
			if classifyKey(m[1]) == confidentialKey {
				t.learn(strings.Trim(m[2], `"'`), true)
			}
		}
	}
}

// learnBasicAuth learns the password of user:password in base64.
func (t *Texts) learnBasicAuth(text string) {
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(data) {
		if _, password, ok := strings.Cut(string(data), ":"); ok {
			t.learn(password, true)
			t.learn(text, true)
		}
	}
}

var (
	// passwordPlaces match a place where only a password stands, with the password as their group.
	passwordPlaces = []lazyregexp.Regexp{
		lazyregexp.New(`://[^\s/"'@:<>]*:([^\s"'<>]+)@`),   // https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1
		lazyregexp.New(`(?i)\bbearer\s+([\w\-.~+/=]+)`),    // https://www.rfc-editor.org/rfc/rfc6750#section-2.1
		lazyregexp.New(`\blogin\s+\S+\s+password\s+(\S+)`), // https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html
	}
	// basicAuth matches user:password in base64: https://www.rfc-editor.org/rfc/rfc7617#section-2
	basicAuth = lazyregexp.New(`(?i)\bbasic\s+([\w+/]{4,}=*)`)
	// pair matches key=value or key: value inside a line: queries of URLs, connection strings.
	pair = lazyregexp.New(`([A-Za-z_][\w.\- ]*?)["']?[ \t]*[=:][ \t]*("[^"\n]+"|'[^'\n]+'|[^\s"'&;,<>{}\[\]]+)`)
	// element matches an element of XML.
	element = lazyregexp.New(`<([\w.:\-]+)[^<>]*>([^<>\n]+)</`)
)
