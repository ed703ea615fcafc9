package hide

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
)

// AddVisibleName registers a name that is shown everywhere.
func (t *Texts) AddVisibleName(name string) { t.locked(func() { t.addName(name) }) }

func (t *Texts) addName(name string) { t.names[lowered(name)] = true }

// AddText learns a confidential text.
func (t *Texts) AddText(text string) { t.locked(func() { t.learn(text, true) }) }

// AddValues learns the values of a user or a chart whose keys are confidential, all values
// below such a key, and passwords at known places in other values, such as URLs.
func (t *Texts) AddValues(values map[string]any) {
	t.locked(func() { t.learnLeaves(values, true) })
}

// AddObject learns the confidential values of an object, and the names and values that it shows. generated are the paths,
// as plans write them, of the fields that the chart has generated: their texts can't be words.
func (t *Texts) AddObject(obj *unstructured.Unstructured, generated ...string) {
	if obj == nil {
		return
	}
	t.locked(func() {
		f := ConfidentialFields(obj)
		t.learnShown(f, nil, "", obj.Object)
		f.mask(nil, obj.Object, func(names []string, v any) {
			rewriteLeaves(v, false, false, func(leaf any, _ bool) any {
				t.learnField(obj, names, textOf(leaf), slices.Contains(generated, pathOf(names)))
				return leaf
			})
		})
	})
}

// pathOf writes names as a path, with quotes as plans have them.
func pathOf(names []string) string {
	out := slices.Clone(names)
	for i, name := range out {
		if strings.ContainsAny(name, ".[]") {
			out[i] = strconv.Quote(name)
		}
	}
	return strings.Join(out, ".")
}

func (t *Texts) learnField(obj *unstructured.Unstructured, names []string, text string, generated bool) {
	if IsSecret(obj) && names[0] == "data" {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(data)
		}
	}
	switch {
	case !utf8.ValidString(text): // a key, or a keystore
		if len(text) >= minSearched {
			t.search.add(text, true)
		}
		return
	case generated:
		t.search.add(strings.TrimSpace(text), true)
	}
	t.learn(text, !IsSecret(obj) || isConfidential(names[len(names)-1], text))
}

// nameKeys are keys whose values name objects, images and hosts, as do keys that end in Name.
var nameKeys = map[string]bool{
	"name": true, "generateName": true, "namespace": true, "kind": true, "apiVersion": true, "image": true, "host": true, "hosts": true,
	"hostname": true, "hostnames": true, "serviceAccount": true, "existingSecret": true,
}

// imageVersion matches the tag and the digest of an image.
var imageVersion = lazyregexp.New(`(:[^/@]*)?(@.*)?$`)

// learnShown learns the names in a value of an object, and the values in plain sight. names is its path, key its own key or that of its list.
func (t *Texts) learnShown(f Fields, names []string, key string, v any) {
	if f.IsHidden(names) || key == "openAPIV3Schema" { // of a CustomResourceDefinition
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for field, item := range v {
			t.addName(field)
			if text, isText := item.(string); isText && field == "key" && refers(v) {
				t.addName(text)
			}
			t.learnShown(f, append(names, field), keyOf(v, field), item)
		}
	case []any:
		for _, item := range v {
			t.learnShown(f, append(names, Item), key, item)
		}
	case string:
		switch {
		case key == "image":
			parts := strings.Split(imageVersion().ReplaceAllString(v, ""), "/")
			for i, part := range parts {
				t.addName(part)
				t.addName(strings.Join(parts[i:], "/"))
			}
		case nameKeys[key] || strings.HasSuffix(key, "Name"):
			t.addName(v)
		case !canBeWord(v) && !isConfidential(key, v):
			t.open[v] = true
		}
	}
}

// learnLeaves learns the confidential leaves of values or of a document, and passwords at known places in the others.
func (t *Texts) learnLeaves(v any, inherit bool) {
	rewriteLeaves(v, false, inherit, func(leaf any, confidential bool) any {
		if text := textOf(leaf); confidential {
			t.learn(text, true)
		} else {
			t.learnEmbedded(text)
		}
		return leaf
	})
}

// learn learns a confidential text and what a chart may take out of it: the leaves of JSON, YAML and lines whose own keys are confidential,
// passwords at known places, what is in base64, and lines and fields without keys. sure says that a key or the user has called
// it confidential; otherwise it is only part of a Secret.
func (t *Texts) learn(text string, sure bool) {
	if known, before := t.learned[text]; before && (known || !sure) {
		return // revisions have most in common
	}
	t.learned[text] = sure
	text = strings.TrimSpace(text)
	if !canBeWord(text) && (sure || !address().MatchString(text)) {
		t.search.add(text, sure)
	}
	if inner := decoded(text); inner != "" {
		t.learn(inner, sure)
	}
	t.learnEmbedded(text)
	switch content := contentOf(text).(type) {
	case map[string]any:
		t.learnLeaves(content, false)
		return
	case []any:
		t.learnLeaves(content, false)
		for _, item := range content {
			t.learn(textOf(item), sure) // it has no key of its own
		}
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.ContainsAny(strings.TrimRight(line, "="), " \t=") || strings.Contains(line, "://") {
			continue
		}
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(":,;|", r) }) { // user:password
			if field != text && !address().MatchString(field) {
				t.learn(field, sure)
			}
		}
	}
}

// address matches the name of a host, with or without a port.
var address = lazyregexp.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+(:[0-9]+)?$`)

// decoded is the content of base64 that has text in it: of user:password, the password.
func decoded(text string) string {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !utf8.Valid(data) || strings.ContainsFunc(string(data), func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	user, password, isLogin := strings.Cut(string(data), ":")
	if isLogin && !strings.ContainsFunc(user, unicode.IsSpace) {
		return password
	}
	return string(data)
}

// contentOf returns the content of a text that is JSON or YAML with keys or items; nil for other texts.
func contentOf(text string) (content any) {
	isDocument := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.Contains(text, ": ") || strings.Contains(text, ":\n") || strings.HasPrefix(text, "- ")
	if !isDocument || len(text) > maxEncoded || strings.Contains(text, "\n---") {
		return nil
	}
	if json.Unmarshal([]byte(text), &content) != nil && yaml.Unmarshal([]byte(text), &content) != nil {
		return nil
	}
	return content
}

// places match where a confidential value may stand inside of a text. Their groups are the key, which is empty where only a password
// stands, and the value.
var places = []lazyregexp.Regexp{
	lazyregexp.New(`://[^\s/"'@:<>]*():([^\s"'<>]+)@`),   // https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1
	lazyregexp.New(`(?i)\bbearer()\s+([\w\-.~+/=]+)`),    // https://www.rfc-editor.org/rfc/rfc6750#section-2.1
	lazyregexp.New(`\blogin\s+\S+\s+password()\s+(\S+)`), // https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html
	// A line of a configuration: key=value, key: value, export KEY="value".
	lazyregexp.New(`(?m)^\s*(?:export\s+|-\s+)?["']?([\w.\-/]+)["']?\s*[:=]\s*(.+?)[,;]?\s*$`),
	// The same inside of a line: queries of URLs, connection strings.
	lazyregexp.New(`([A-Za-z_][\w.\- ]*?)["']?[ \t]*[=:][ \t]*("[^"\n]+"|'[^'\n]+'|[^\s"'&;,<>{}\[\]]+)`),
	lazyregexp.New(`<([\w.:\-]+)[^<>]*>([^<>\n]+)</`), // an element of XML
}

// basicAuth matches user:password in base64: https://www.rfc-editor.org/rfc/rfc7617#section-2
var basicAuth = lazyregexp.New(`(?i)\bbasic\s+([\w+/]{4,}=*)`)

// learnEmbedded learns the confidential values inside of a text, which itself needn't be confidential.
func (t *Texts) learnEmbedded(text string) {
	if !strings.ContainsAny(text, ":=<") && !strings.Contains(text, "password ") {
		return
	}
	for _, place := range places {
		for _, m := range place().FindAllStringSubmatch(text, -1) {
			if m[1] != "" && !classOf(m[1]).confidential || m[2] == text {
				continue
			}
			value := strings.Trim(m[2], `"'`)
			t.learn(value, true)
			if plain, err := url.PathUnescape(value); err == nil {
				t.learn(plain, true)
			}
		}
	}
	for _, m := range basicAuth().FindAllStringSubmatch(text, -1) {
		if decoded(m[1]) != "" {
			t.learn(m[1], true)
		}
	}
}
