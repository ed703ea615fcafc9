package hide

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// addParts adds the parts of a confidential text: each line of several, because they may be
// shown indented, and the values of JSON by their keys.
func (t *Texts) addParts(text string) {
	if strings.HasPrefix(text, "{") {
		var content map[string]any
		if json.Unmarshal([]byte(text), &content) == nil {
			t.addJSON(content, unknown)
			return
		}
	}
	if !strings.Contains(text, "\n") {
		return
	}
	for _, line := range strings.Split(text, "\n") {
		t.addLine(strings.TrimSpace(line))
	}
}

// assignment is a line of a configuration: key=value, key: value, export KEY="value".
var assignment = regexp.MustCompile(`^(?:export\s+|-\s+)?["']?([\w.\-/]+)["']?\s*[:=]\s*(.+?)[,;]?$`)

// armour matches the first or last line of a PEM block.
var armour = regexp.MustCompile(`^-----(BEGIN|END)[ \w]*-----$`)

func (t *Texts) addLine(line string) {
	if armour.MatchString(line) {
		return
	}
	if m := assignment.FindStringSubmatch(line); m != nil {
		value := strings.Trim(m[2], `"'`)
		key := classifyKey(m[1])
		if !strings.Contains(value, "\n") {
			t.addItem(value, key)
		}
		if key == confidentialKey || len(line) >= leastWithKey {
			t.searchFor(line, part{})
		}
		return
	}
	switch {
	case len(line) >= leastLine && hasLetter(line):
		t.searchFor(line, part{})
	case !isOrdinary(line):
		t.addItem(line, unknown)
	}
}

// leastWithKey is the shortest line with a key and a value that is looked for as
// a whole.
const leastWithKey = 20

// addItem adds a value inside a confidential text. If its key isn't confidential, it is hidden
// only as a whole word, because it may be ordinary configuration.
func (t *Texts) addItem(value string, key keyClass) {
	value = strings.TrimSpace(value)
	switch {
	case key == confidentialKey:
		t.add(value, key)
	case len(value) >= leastInside && hasLetter(value) && !isOrdinary(value) && !meaningless[strings.ToLower(value)] && !quantity.MatchString(value):
		if key == identifierKey {
			t.add(value, key)
			return
		}
		t.searchFor(value, part{wholeWord: true})
	case !hasLetter(value) && len(value) >= leastNumber:
		t.searchFor(value, part{wholeWord: true})
	}
}

func (t *Texts) addJSON(v any, s keyClass) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if key == "auth" { // of a registry: https://github.com/moby/moby, cli/config/types
				t.addJSON(item, confidentialKey)
				t.addBasicAuth(item)
				continue
			}
			t.addJSON(item, classifyNestedKey(s, key))
		}
	case []any:
		for _, item := range v {
			t.addJSON(item, s)
		}
	case string:
		t.addItem(v, s)
	}
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
