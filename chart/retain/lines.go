package retain

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deployer/internal/lazyregexp"
)

var (
	pemBlock = lazyregexp.New(`-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END [A-Z0-9 ]+-----`)
	section  = lazyregexp.New(`^\s*\[+\s*(.*?)\s*\]+\s*$`)
	machine  = lazyregexp.New(`^\s*(?:machine\s+[^\s=:]+|default)(\s+(?:login|account|password)\s.*)?\s*$`)
	ofLogin  = lazyregexp.New(`^\s*(?:login|account|password)\s+[^\s=:]`)
	openTag  = lazyregexp.New(`^\s*<([\w.:-]+)(?:\s[^<>]*)?>\s*$`)
	// element matches an element of XML in one line.
	element = lazyregexp.New(`^\s*<([\w.:-]+)(?:\s[^<>]*)?>\s*([^<]*?)\s*</[\w.:-]+>\s*$`)
	// attributes match those of an element of XML.
	attributes = lazyregexp.New(`\s([\w.:-]+)\s*=\s*(?:"[^"]*"|'[^']*')`)
)

// parseLines reads a text as lines and PEM blocks. A line in square brackets, a machine of netrc, an element of XML, and a line that
// is followed by lines with a deeper indentation, begins a block.
func parseLines(text string) *layer {
	var lines []*node
	isOpen := false // a comment of several lines
	plain := func(from, to int) {
		for line := range strings.Lines(text[from:to]) {
			isOpen = isOpen || longComment().MatchString(line)
			if trimmed := strings.TrimRight(line, "\r\n"); strings.TrimSpace(trimmed) != "" {
				lines = append(lines, &node{text: trimmed, span: [2]int{from, from + len(trimmed)}, opened: true, isComment: isOpen || lineComment().MatchString(line)})
			}
			isOpen = isOpen && !longCommentEnds().MatchString(line)
			from += len(line)
		}
	}
	at := 0
	for _, m := range pemBlock().FindAllStringIndex(text, -1) {
		plain(at, m[0])
		lines = append(lines, &node{text: text[m[0]:m[1]], span: [2]int{m[0], m[1]}, opened: true})
		at = m[1]
	}
	plain(at, len(text))
	return &layer{format: inLines, text: text, root: blocks(lines)}
}

// blocks groups lines into blocks. A comment directly above one, or above a line, is a comment on it.
func blocks(lines []*node) *node {
	out := &node{kind: items}
	comment := ""
	for at := 0; at < len(lines); {
		first, n := lines[at], blockLength(lines[at:])
		entry := first
		if n > 1 || section().MatchString(first.text) {
			first.isHeader = true
			below := blocks(lines[at+1 : at+n])
			entry = &node{kind: items, children: append([]*node{first}, below.children...)}
			entry.nameItems()
		}
		if at > 0 && first.span[0]-lines[at-1].span[1] > len("\r\n") {
			comment = ""
		}
		if first.isComment {
			comment += first.text + "\n"
		} else {
			entry.comment, comment = comment, ""
		}
		out.children = append(out.children, entry)
		at += n
	}
	out.nameItems()
	return out
}

// blockLength is the number of lines of the block that begins with the first one; 1 if it begins none.
func blockLength(lines []*node) int {
	header := lines[0].text
	until := func(ends func(line string) bool) int {
		end := slices.IndexFunc(lines[1:], func(n *node) bool { return strings.HasPrefix(n.text, "-----") || ends(n.text) })
		if end < 0 {
			return len(lines)
		}
		return end + 1
	}
	switch tag := openTag().FindStringSubmatch(header); {
	case strings.HasPrefix(header, "-----"), lines[0].isComment:
		return 1
	case tag != nil:
		if n := elementLength(lines, tag[1]); n > 0 {
			return n
		}
	case section().MatchString(header):
		path := section().FindStringSubmatch(header)[1]
		n := until(func(line string) bool {
			m := section().FindStringSubmatch(line)
			return m != nil && !strings.HasPrefix(m[1], path+".")
		})
		for n > 1 && n < len(lines) && lines[n-1].isComment {
			n-- // it belongs to the next one
		}
		return n
	case beginsMachine(lines):
		return until(func(line string) bool { return !ofLogin().MatchString(line) })
	}
	return until(func(line string) bool { return indentation(line) <= indentation(header) })
}

// beginsMachine reports whether the first line is that of a machine of netrc: with a login, or followed by one.
func beginsMachine(lines []*node) bool {
	m := machine().FindStringSubmatch(lines[0].text)
	return m != nil && (m[1] != "" || len(lines) > 1 && ofLogin().MatchString(lines[1].text))
}

// elementLength is the number of lines of an element of XML, with the one that ends it; 0 if none does.
func elementLength(lines []*node, tag string) int {
	depth := 0
	for i, n := range lines {
		switch m := openTag().FindStringSubmatch(n.text); {
		case m != nil && m[1] == tag:
			depth++
		case strings.TrimSpace(n.text) == "</"+tag+">":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func indentation(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// header returns the line that begins a block; nil if the node is none.
func (n *node) header() *node {
	if n.kind == items && len(n.children) > 0 && n.children[0].isHeader {
		return n.children[0]
	}
	return nil
}

// labelOfHeader is the line that begins a block; of a section what is in its brackets, and of an element of XML only its name and the
// attributes that say whose it is.
func labelOfHeader(line string) string {
	if m := section().FindStringSubmatch(line); m != nil {
		return m[1]
	}
	tag := openTag().FindStringSubmatch(line)
	if tag == nil {
		return strings.TrimSpace(line)
	}
	label := tag[1]
	for _, m := range attributes().FindAllStringSubmatch(line, -1) {
		if isIdentityKey(m[1]) {
			label += m[0]
		}
	}
	return label
}

// lineKeys match the key that a line or argument begins with, each if those before don't: <a name="key" value="...", key=value,
// key: value, --key=value, f('key', value), also behind other words as in export key=value, and key value or ENV key value.
var lineKeys = []func() *regexp.Regexp{
	lazyregexp.New(`^\s*<\w+\s+(?:name|key)=["']([^"']+)["']\s*(?:value|>)`),
	lazyregexp.New(`^\s*<\w+>\s*<(?:name|key)>\s*([^<]+?)\s*</(?:name|key)>\s*<value>`),
	lazyregexp.New(`^\s*(?:(?i:environment=|--(?:set|set-string|env|build-arg|from-literal)=)["']?|-D)?(?:(?i:export|env|arg|set|setenv|putenv|declare(?:\s+-x)?|local|readonly|const|let|var|val|static|final|public|private|protected|string|define|--from-literal|--set-string|--set|--env|--build-arg|-e)[\s(]+)*["'<$]?(?:--?)?([^\s=:,"'<>()]+)["']?\s*[=:,>]`),
	lazyregexp.New(`^\s*(?i:(?:env|arg|set|setenv)\s+)?["'<]?(?:--?)?([^\s=:"'<>]+)["']?\s+\S`),
}

// lineKeyOf is the key that a line or argument begins with; empty if it has none.
func lineKeyOf(text string) string {
	for _, pattern := range lineKeys {
		if m := pattern().FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

// settings match what is set in a line: ['user'] = 'alice', set("user", "alice"), # user: alice.
var settings = lazyregexp.New(`([\w.-]+)["']?[\])]?\s*[=:,]`)

// userInSQL matches a line that says whose the rest of its statement is.
var userInSQL = lazyregexp.New(`(?i)^\s*(?:(?:create|alter)\s+(?:user|role|login)\s[^;]*|grant\s.*\sto\s.*)$`)

// wordComment matches a comment of one word, which may say whose all lines and elements beside it are. Its key is wordOnly.
var wordComment = lazyregexp.New(`^\s*(?:#|//|;)\s*[\pL\pN]\S*\s*$`)

const wordOnly = "a word"

// ownerKeyOf is the key by which a line with a key of its own says whose the lines beside it are; the key itself if it doesn't.
func ownerKeyOf(text, key string) string {
	switch {
	case isOwnerKey(key):
	case wordComment().MatchString(text):
		return wordOnly
	case key == "description" && whose().MatchString(text), userInSQL().MatchString(text):
		return "user"
	case strings.Trim(key, "#/;") == "": // a setting in the words of a program, or behind a comment
		for _, m := range settings().FindAllStringSubmatch(text, -1) {
			if isOwnerKey(m[1]) {
				return m[1]
			}
		}
	}
	return key
}

// nameKeys are the keys whose values name the items of a list.
var nameKeys = []string{"name", "key", "id", "user", "username", "login", "email", "host", "mountPath", "containerPort", "port", "path"}

// nameItems names the items of a list, and the lines and blocks of a text, each by what no other one of them has: the line that begins
// a block, the value of one of nameKeys, the key of a line, or its text. What has no name is recognised by everything that is fixed in it.
func (n *node) nameItems() {
	candidates := make([][]node, len(n.children))
	count := map[string]int{}
	for i, child := range n.children {
		switch header := child.header(); {
		case child.kind == scalar:
			child.label = lineKeyOf(child.text)
			child.owner = ownerKeyOf(child.text, child.label)
		case header != nil && !section().MatchString(header.text):
			child.owner = labelOfHeader(header.text)
		}
		candidates[i] = child.possibleNames()
		for _, c := range candidates[i] {
			count[c.name]++
		}
	}
	for i, child := range n.children {
		for _, c := range candidates[i] {
			if count[c.name] == 1 {
				child.name, child.label, child.owner = c.name, c.label, cmp.Or(c.owner, child.owner)
				break
			}
		}
	}
}

// possibleNames are the names that an item could have, each with its label, and if that may be the key of an owner, that.
func (n *node) possibleNames() (out []node) {
	if n.kind == scalar {
		if n.label != "" {
			out = append(out, node{name: n.label, label: n.label})
		}
		return append(out, node{name: n.text, label: n.label})
	}
	for _, key := range nameKeys {
		at := slices.IndexFunc(n.children, func(child *node) bool { return child.kind == scalar && child.label == key && child.text != "" })
		if at < 0 {
			continue
		}
		value := n.children[at]
		c := node{name: key + "=" + value.text, label: contentOfElement(value.text)}
		if value.tag == "!!str" {
			c.name = key + "=" + strconv.Quote(value.text)
		}
		if n.child("value") != nil {
			c.owner = c.label
		}
		out = append(out, c)
	}
	if h := n.header(); h != nil && !strings.HasPrefix(strings.TrimSpace(h.text), "[[") { // which can be there several times
		label := labelOfHeader(h.text)
		at := 0
		if n.child("value") != nil { // of a property, its name says more
			at = len(out)
		}
		out = slices.Insert(out, at, node{name: "[" + label + "]", label: label})
	}
	return out
}

// contentOfElement is what is in an element of XML in one line; another text is as it is.
func contentOfElement(text string) string {
	if m := element().FindStringSubmatch(text); m != nil {
		return m[2]
	}
	return text
}
