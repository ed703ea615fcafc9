package hide

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
)

// learn learns a confidential text and what a chart may take out of it: the leaves of JSON and YAML whose own keys are
// confidential, passwords at known places, and of other texts lines and fields without a key. sure says that a key or the user has called
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
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(data) { // of a header, or of a registry's login
		if _, password, isLogin := strings.Cut(string(data), ":"); isLogin {
			t.learn(password, sure)
		}
	}
	t.learnPlaces(text)
	switch content := contentOf(text).(type) {
	case map[string]any:
		t.learnLeaves(content, false)
	case []any:
		t.learnLeaves(content, false)
		for _, item := range content {
			t.learn(textOf(item), sure) // it has no key of its own
		}
	default:
		for line := range strings.Lines(text) {
			t.learnLine(strings.TrimSpace(line), text, sure)
		}
	}
}

// learnLine learns a line without keys, as PEM and lists of tokens have them, and its fields, as in user:password.
func (t *Texts) learnLine(line, text string, sure bool) {
	if opaque().MatchString(line) && line != text {
		t.learn(line, sure)
	}
	if strings.ContainsAny(line, " \t=") || strings.Contains(line, "://") {
		return
	}
	for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(":,;|", r) }) {
		if field != line && !address().MatchString(field) {
			t.learn(field, sure)
		}
	}
}

// opaque matches a line of a PEM block, or of a list of tokens.
var opaque = lazyregexp.New(`^[\w+/=.~-]{8,}$`)

// address matches the name of a host, with or without a port.
var address = lazyregexp.New(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+(:[0-9]+)?$`)

// learnLeaves learns the confidential leaves of values or of a document, and what stands at known places in the others.
func (t *Texts) learnLeaves(v any, inherit bool) {
	walk(v, place{inherit: inherit}, func(v any, at place) (any, bool) {
		if text := textOf(v); text != "" && at.isConfidential(v) {
			t.learn(text, true)
		} else {
			t.learnPlaces(text)
		}
		return nil, false
	})
}

// maxDocument is the length, in bytes, up to which a text is read as JSON or YAML.
const maxDocument = 64 << 10

// contentOf returns the content of a text that is JSON or YAML with keys or items; nil for other texts.
func contentOf(text string) (content any) {
	isDocument := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "- ") || strings.Contains(text, ": ") || strings.Contains(text, ":\n")
	if !isDocument || len(text) > maxDocument || strings.Contains(text, "\n---") {
		return nil
	}
	exact := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d } // long numbers
	if yaml.Unmarshal([]byte(text), &content, exact) != nil && json.Unmarshal([]byte(text), &content) != nil {
		return nil
	}
	return content
}

// knownPlaces match where a confidential value may stand in a text. Their groups are its key, which is empty where only a password
// stands, and the value.
var knownPlaces = []lazyregexp.Regexp{
	lazyregexp.New(`://[^\s/"'@:<>]*():([^\s"'<>]+)@`),                                           // https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1
	lazyregexp.New(`(?i)\bbearer()\s+([\w\-.~+/=]+)`),                                            // https://www.rfc-editor.org/rfc/rfc6750#section-2.1
	lazyregexp.New(`(?i)\bbasic()\s+([\w+/]{8,}=*)`),                                             // https://www.rfc-editor.org/rfc/rfc7617#section-2
	lazyregexp.New(`\blogin\s+\S+\s+password()\s+(\S+)`),                                         // netrc
	lazyregexp.New(`(?m)^\s*(?:export\s+|-\s+)?["']?([\w.\-/]+)["']?\s*[:=]\s*(\S.*?)[,;]?\s*$`), // a line of a configuration
	// Inside of a line: queries of URLs, connection strings.
	lazyregexp.New(`([A-Za-z_][\w.\- ]*?)["']?[ \t]*[=:][ \t]*("[^"\n]+"|'[^'\n]+'|[^\s"'&;,<>{}\[\]]+)`),
	lazyregexp.New(`<([\w.:\-]+)[^<>]*>([^<>\n]+)</`), // XML
}

// learnPlaces learns the confidential values at known places in a text, which itself needn't be confidential.
func (t *Texts) learnPlaces(text string) {
	if !strings.ContainsAny(text, ":=<") && !strings.Contains(text, "password ") {
		return
	}
	for _, pattern := range knownPlaces {
		for _, m := range pattern().FindAllStringSubmatch(text, -1) {
			value := m[2]
			if m[1] != "" {
				value = strings.Trim(value, `"'`)
			}
			if value == text || m[1] != "" && !isConfidential(m[1], value) {
				continue
			}
			t.learn(value, true)
			if plain, err := url.PathUnescape(value); err == nil {
				t.learn(plain, true)
			}
		}
	}
}
