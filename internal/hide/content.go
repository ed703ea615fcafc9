package hide

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
)

// addParts adds what a confidential text consists of, because it may be shown without the rest: the
// values of JSON and YAML, passwords at known places, and single lines.
func (t *Texts) addParts(text string, key keyClass) {
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		var content any
		if json.Unmarshal([]byte(text), &content) == nil {
			t.addJSON(content, unknown)
			t.addEmbedded(text)
			return
		}
	}
	t.addYAML(text)
	t.addEmbedded(text)
	if !strings.Contains(text, "\n") {
		if key != identifierKey {
			t.addFields(text)
		}
		return
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		t.addLine(line)
		t.addFields(line)
	}
}

// addYAML adds the values of a text that is YAML.
func (t *Texts) addYAML(text string) {
	if len(text) > maxEncoded || !strings.Contains(text, ": ") && !strings.Contains(text, "- ") {
		return
	}
	var content any
	if yaml.Unmarshal([]byte(text), &content) != nil {
		return
	}
	if _, isText := content.(string); !isText {
		t.addJSON(content, unknown)
	}
}

// addFields adds the fields of a line such as user:password or host:port:user:password, except
// hosts and paths.
func (t *Texts) addFields(line string) {
	if strings.ContainsAny(line, " \t=") || strings.Contains(line, "://") {
		return
	}
	fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(":,;|", r) })
	if len(fields) < 2 {
		return
	}
	for _, field := range fields {
		if !address().MatchString(field) {
			t.addItem(field, unknown)
		}
	}
}

// address matches a host with a domain, and a path.
var address = lazyregexp.New(`/|^[\w-]+(\.[\w-]+)+$`)

// assignment is a line of a configuration: key=value, key: value, export KEY="value".
var assignment = lazyregexp.New(`^(?:export\s+|-\s+)?["']?([\w.\-/]+)["']?\s*[:=]\s*(.+?)[,;]?$`)

// armour matches the first or last line of a PEM block.
var armour = lazyregexp.New(`^-----(BEGIN|END)[ \w]*-----$`)

// addLine adds a line of a confidential text, or the value in it if the line is an assignment.
func (t *Texts) addLine(line string) {
	if armour().MatchString(line) {
		return
	}
	if m := assignment().FindStringSubmatch(line); m != nil {
		value := strings.Trim(m[2], `"'`)
		key := classifyKey(m[1])
		if !strings.Contains(value, "\n") {
			t.addItem(value, key)
		}
		if key == confidentialKey || len(line) >= minLineWithKey {
			t.searchFor(line, term{})
		}
		return
	}
	switch {
	case len(line) >= minLine && hasLetter(line):
		t.searchFor(line, term{})
	case !isOrdinary(line):
		t.addItem(line, unknown)
	}
}

// minLineWithKey is the length, in bytes, from which a line with a key and a value is searched for as
// a whole, too.
const minLineWithKey = 20

// addItem adds a value inside a confidential text. If its key isn't confidential, it is hidden
// only as a whole word, because it may be ordinary configuration.
func (t *Texts) addItem(value string, key keyClass) {
	value = strings.TrimSpace(value)
	switch {
	case key == confidentialKey:
		t.add(value, key)
	case len(value) >= minInside && hasLetter(value) && !isOrdinary(value) && !quantity().MatchString(value):
		if key == identifierKey {
			t.add(value, key)
			return
		}
		t.searchFor(value, term{wholeWord: !looksRandom(value)})
	case !hasLetter(value) && len(value) >= minNumber:
		t.searchFor(value, term{wholeWord: true})
	}
}

// looksRandom reports whether a value looks like random text: it is long, has digits, and isn't a host
// or a path.
func looksRandom(value string) bool {
	return len(value) >= minRandom && strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, " ./:-")
}

// minRandom is the length, in bytes, from which random text hardly occurs in other texts by chance.
const minRandom = 8

// addJSON adds the values of JSON data. class is that of the key whose value the data is.
func (t *Texts) addJSON(v any, class keyClass) {
	switch v := v.(type) {
	case map[string]any:
		if name, value, ok := namedValue(v); ok {
			t.addItem(value, t.classOfNested(class, name))
			return
		}
		for key, item := range v {
			if key == "auth" { // of a registry: https://github.com/moby/moby, cli/config/types
				t.addJSON(item, confidentialKey)
				t.addBasicAuth(item)
				continue
			}
			t.addJSON(item, t.classOfNested(class, key))
		}
	case []any:
		for _, item := range v {
			t.addJSON(item, class)
		}
	case string:
		t.addItem(v, class)
	default:
		if text, ok := numberText(v); ok && class == confidentialKey {
			t.add(text, class)
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
	for _, key := range []string{"name", "key"} {
		if name, ok = v[key].(string); ok {
			break
		}
	}
	value, isText := v["value"].(string)
	return name, value, ok && isText
}

// addBasicAuth adds the password of user:password in base64.
func (t *Texts) addBasicAuth(v any) {
	text, _ := v.(string)
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(data) {
		if _, password, ok := strings.Cut(string(data), ":"); ok {
			t.add(password, confidentialKey)
		}
	}
}
