package retain

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deployer/internal/lazyregexp"
)

// labelKeys are the keys by which entries of a list are told apart.
var labelKeys = append([]string{header}, append(slices.Clone(identityKeys), "mountPath", "containerPort", "port", "path")...)

// header stands for the line that begins a block, among labelKeys, and anyLine for the key of a line, whatever that says.
const (
	header  = ""
	anyLine = "line"
)

// entries are the items of a list, the lines of a text, or the blocks of one. Each is recognised by what is fixed in it, never by
// its position.
type entries struct {
	columns   [][]*node // the versions of each entry
	old       []*node   // the recorded entries
	unchanged bool      // nothing but generated values has changed in the release, so that also the positions are the same

	onlyUses bool // they are in a workload, whose values are also where they belong
	inText   bool

	labels     map[string]*labelling    // see labelled
	neighbours map[string]bool          // see neighboursFit
	fields     map[string]*surroundings // see asField
	lines      *fixedLines              // see fixed
	besideFits *bool                    // see ownersBesideFit
	flat       *entries                 // see withoutElements
}

// recorded returns the recorded entry that is certain to be the same one as entry i; otherwise nil, and why:
//   - the only one with its label on both sides, if nothing else that says whose it is has changed,
//   - the only generated one among others that are all the same,
//   - or the only one with everything that is fixed in it.
func (e *entries) recorded(i int) (found *node, missing string) {
	for _, key := range labelKeys {
		label := fixedLabel(e.columns[i], key)
		if label == "" || len(e.labelled(key).now[label]) != 1 || len(e.labelled(key).old[label]) != 1 {
			continue
		}
		matching := e.labelled(key).old[label]
		n, beside := e.columns[i][0], e
		if n.header() != nil && !n.isElement() {
			beside = e.withoutElements()
		}
		around := beside.asField(key, label)
		isNamed := len(identities(n)) > 0 && n.header() != nil && n.valueOfElement() == nil
		if isStrict := n.isStrictBlock(); (isStrict || !isNamed || positionIn(around.key) != "") && !e.lineAboveFits(i, matching[0]) || isStrict && !e.neighboursFit("") {
			return nil, missingOwner
		}
		if !e.onlyUses && e.labelled(key).isPosition(label, e.inText && key != header) && !fits(e.columns[i], matching[0]) {
			return nil, missingOwner
		}
		if e.branchesFit(i) && identitiesFit(e.columns[i], matching[0]) && headersFit(e.columns[i], matching[0]) && around.haveRecordedPosition() && (isNamed || around.haveRecordedOwner()) {
			return matching[0], ""
		}
		return nil, missingOwner
	}
	if e.unchanged && len(e.old) == len(e.columns) {
		return e.old[i], ""
	}
	if !hasFixedWords(e.columns[i]) {
		isWholeText := len(e.columns) == 1 && len(e.old) == 1 && e.columns[0][0].isLine() && e.old[0].isLine()
		if isWholeText || e.othersFit() { // its path says what it is
			return e.old[i], ""
		}
		return nil, missingEntry
	}
	key := fixedLineKey(e.columns[i])
	candidates, ofKey := e.withKey(key)
	fitting := func(list []*node) (out []*node) {
		for _, candidate := range list {
			if len(out) < 2 && fits(e.columns[i], candidate) {
				out = append(out, candidate)
			}
		}
		return out
	}
	if candidates = fitting(candidates); len(candidates) == 1 && len(fitting(ofKey)) == 1 {
		if !e.lineAboveFits(i, candidates[0]) || !e.neighboursFit(key) || !e.branchesFit(i) {
			return nil, missingOwner
		}
		return candidates[0], ""
	}
	return nil, missingEntry
}

// withKey returns the recorded lines with a key, and the rendered ones; all entries without a key.
func (e *entries) withKey(key string) (old, now []*node) {
	if key == "" {
		return e.old, mapped(e.columns, func(column []*node) *node { return column[0] })
	}
	return e.labelled(anyLine).old[key], e.labelled(anyLine).now[key]
}

// reworded returns the only recorded line with the key of entry i, if that is the only rendered one; otherwise nil.
func (e *entries) reworded(i int) *rewording {
	key := fixedLineKey(e.columns[i])
	before, now := e.withKey(key)
	if key == "" || len(now) != 1 || len(before) != 1 || !e.neighboursFit(key) {
		return nil
	}
	return &rewording{now[0].text, before[0].text}
}

// isLine reports whether a node is a line of a text.
func (n *node) isLine() bool { return n.kind == scalar && n.span != [2]int{} }

// A labelling finds entries by their labels.
type labelling struct {
	now, old map[string][]*node
	names    stems
}

// labelled finds entries by their labels with a key.
func (e *entries) labelled(key string) *labelling {
	return remember(&e.labels, key, func() *labelling {
		l := &labelling{map[string][]*node{}, map[string][]*node{}, stems{}}
		add := func(to map[string][]*node, n *node) {
			if label := labelOf(n, key); label != "" {
				to[label] = append(to[label], n)
				l.names.add(contentOfElement(label))
			}
		}
		for _, column := range e.columns {
			add(l.now, column[0])
		}
		for _, old := range e.old {
			add(l.old, old)
		}
		return l
	})
}

// isPosition reports whether a label is only a position.
func (l *labelling) isPosition(label string, inText bool) bool {
	position := positionIn(contentOfElement(label))
	return isFirst(position, inText) || l.names.isOneOfMany(contentOfElement(label))
}

// name names entry i in a path, as plans write it.
func (e *entries) name(i int) string {
	for _, key := range labelKeys[1:] {
		n := e.columns[i][0].child(key)
		if label := fixedLabel(e.columns[i], key); label != "" && len(e.labelled(key).now[label]) == 1 && n != nil {
			if n.tag == "!!str" {
				label = strconv.Quote(label)
			}
			return key + "=" + label
		}
	}
	return strconv.Itoa(i)
}

// othersFit reports whether all entries but one are the same in all renderings and recorded, and have words.
func (e *entries) othersFit() bool {
	generated, words := 0, false
	for i, column := range e.columns {
		if len(e.old) != len(e.columns) || !fits(column, e.old[i]) {
			return false
		}
		if !sameInAll(column) {
			generated++
		}
		words = words || hasFixedWords(column)
	}
	return generated == 1 && words
}

func mapped[T, U any](list []T, to func(T) U) []U {
	out := make([]U, len(list))
	for i, n := range list {
		out[i] = to(n)
	}
	return out
}

// lineKeys match the key that a line or argument begins with, each if those before don't: <a name="key" value="...", key=value,
// key: value, --key=value, f('key', value), also behind other words as in export key=value, and key value or ENV key value.
var lineKeys = []func() *regexp.Regexp{
	lazyregexp.New(`^\s*<\w+\s+(?:name|key)=["']([^"']+)["']\s*(?:value|>)`),
	lazyregexp.New(`^\s*<\w+>\s*<(?:name|key)>\s*([^<]+?)\s*</(?:name|key)>\s*<value>`),
	lazyregexp.New(`^\s*(?:(?i:environment=|--(?:set|set-string|env|build-arg|from-literal)=)["']?|-D)?(?:(?i:export|env|arg|set|setenv|putenv|declare(?:\s+-x)?|local|readonly|const|let|var|val|static|final|public|private|protected|string|define|--from-literal|--set-string|--set|--env|--build-arg|-e)[\s(]+)*["'<$]?(?:--?)?([^\s=:,"'<>()]+)["']?\s*[=:,>]`),
	lazyregexp.New(`^\s*(?i:(?:env|arg|set|setenv)\s+)?["'<]?(?:--?)?([^\s=:"'<>]+)["']?\s+\S`),
}

// userInSQL matches a line that says whose the rest of its statement is.
var userInSQL = lazyregexp.New(`(?i)^\s*(?:(?:create|alter)\s+(?:user|role|login)\s[^;]*|grant\s.*\sto\s.*)$`)

// lineKeyOf is the key that a line or argument begins with; empty if it has none.
func lineKeyOf(n *node) string {
	if n.key != nil {
		return *n.key
	}
	n.key = new(string)
	for _, pattern := range lineKeys {
		if m := pattern().FindStringSubmatch(n.text); n.kind == scalar && m != nil {
			*n.key = m[1]
			break
		}
	}
	return *n.key
}

// fixedLineKey is lineKeyOf of a line that has the same key in all renderings; otherwise it is empty.
func fixedLineKey(versions []*node) string {
	key := lineKeyOf(versions[0])
	if slices.ContainsFunc(versions, func(n *node) bool { return lineKeyOf(n) != key }) {
		return ""
	}
	return key
}

// identityLineKey is the key of a line that says whose the lines beside it are; empty for another one.
func identityLineKey(n *node) string {
	if n.ownerKey == nil {
		key := n.findOwnerKey()
		n.ownerKey = &key
	}
	return *n.ownerKey
}

func (n *node) findOwnerKey() string {
	key := lineKeyOf(n)
	switch {
	case isIdentityKey(key), key == "description" && whose().MatchString(n.text):
		return key
	case n.kind == scalar && wordComment().MatchString(n.text):
		return "#"
	case n.kind == scalar && userInSQL().MatchString(n.text):
		return "user"
	case n.kind == scalar && (key == "" || strings.Trim(key, "#/;") == ""): // a setting in the words of a program, or behind a comment
		for _, m := range settings().FindAllStringSubmatch(n.text, -1) {
			if isOwnerKey(m[1]) {
				return m[1]
			}
		}
	}
	return ""
}

// settings match what is set in a line: ['user'] = 'alice', set("user", "alice"), # user: alice.
var settings = lazyregexp.New(`([\w.-]+)["']?[\])]?\s*[=:,]`)

// labelOf is the value of a key of an entry: of its fields, or of the lines in it; empty if it has none.
func labelOf(n *node, key string) string {
	switch key {
	case anyLine:
		return lineKeyOf(n)
	case header:
		if h := n.header(); h != nil && !strings.HasPrefix(strings.TrimSpace(h.text), "[[") { // a table of TOML can be there several times
			return labelOfHeader(h.text)
		}
		return ""
	}
	if found := identities(n)[key]; found != nil {
		return found.text
	}
	if child := n.child(key); child != nil && child.kind == scalar {
		return child.text
	}
	return ""
}

// labelOfHeader is the line that begins a block; of an element of XML only its name and the attributes that say whose it is.
func labelOfHeader(line string) string {
	tag := openTag().FindStringSubmatch(line)
	if tag == nil {
		return line
	}
	label := tag[1]
	for _, m := range attributes().FindAllStringSubmatch(line, -1) {
		if isIdentityKey(m[1]) {
			label += m[0]
		}
	}
	return label
}

// attributes match those of an element of XML.
var attributes = lazyregexp.New(`\s([\w.:-]+)\s*=\s*(?:"[^"]*"|'[^']*')`)

// fixedLabel is labelOf of an entry that has the same label in all renderings; otherwise it is empty.
func fixedLabel(versions []*node, key string) string {
	label := labelOf(versions[0], key)
	for _, v := range versions[1:] {
		if labelOf(v, key) != label {
			return ""
		}
	}
	return label
}

// identitiesFit reports whether a recorded entry has the same identities. Those of a block aren't its lines that have something
// generated themselves: these are entries.
func identitiesFit(versions []*node, old *node) bool {
	if versions[0].header() != nil {
		if old.header() == nil {
			return false
		}
		columns, _ := aligned(versions)
		lines := (&entries{columns: columns, old: old.children}).fixed()
		lines.inBlock = true
		collect := func(list []*node) []*node {
			out := slices.DeleteFunc(slices.Clone(list), func(n *node) bool { return n.isHeader || identityLineKey(n) == "" })
			slices.SortFunc(out, func(a, b *node) int { return strings.Compare(strings.TrimSpace(a.text), strings.TrimSpace(b.text)) })
			return out
		}
		return lines.fit(collect(lines.lines), collect(old.children))
	}
	now, before := identities(versions[0]), identities(old)
	for key := range now {
		column := mapped(versions, func(v *node) *node { return identities(v)[key] })
		if slices.Contains(column, nil) || before[key] == nil || !fits(column, before[key]) {
			return false
		}
	}
	return len(now) == len(before)
}

// headersFit reports whether a recorded block begins with the same line, in which something may be generated.
func headersFit(versions []*node, old *node) bool {
	headers, recorded := mapped(versions, (*node).header), old.header()
	if recorded == nil || slices.Contains(headers, nil) {
		return recorded == nil && headers[0] == nil
	}
	if sameInAll(headers) {
		return labelOfHeader(headers[0].text) == labelOfHeader(recorded.text)
	}
	return fits(headers, recorded)
}

// fits reports whether a recorded node has everything that is the same in all versions of a rendered one.
func fits(versions []*node, old *node) bool {
	n := versions[0]
	if sameInAll(versions) {
		return equal(n, old)
	}
	if old == nil || old.kind != n.kind || slices.ContainsFunc(versions, func(v *node) bool { return v.kind != n.kind }) {
		return false
	}
	switch n.kind {
	case fields:
		if len(old.keys) != len(n.keys) {
			return false
		}
		for _, key := range n.keys {
			if column := childrenAt(versions, key); column == nil || old.child(key) == nil || !fits(column, old.child(key)) {
				return false
			}
		}
		return true
	case items:
		columns, _ := aligned(versions)
		if len(columns) != len(old.children) {
			return false
		}
		for i, column := range columns {
			if !fits(column, old.children[i]) {
				return false
			}
		}
		return true
	}
	if roots := openAll(versions); roots != nil {
		l := recordedIn(old, n.inner)
		return l != nil && fits(roots, l.root)
	}
	if n.isPEM() {
		return old.isPEM() && pemLabel(n.text) == pemLabel(old.text)
	}
	segments := segmentsOfLine(versions)
	return segments == nil || segments.match(old.text) != nil
}

// hasFixedWords reports whether a word is the same in all versions of a node, so that it can be recognised.
func hasFixedWords(versions []*node) bool {
	n := versions[0]
	switch {
	case sameInAll(versions):
		found := false
		n.each(func(s *node) { found = found || strings.ContainsFunc(s.text, isWord) })
		return found
	case n.kind == fields:
		return slices.ContainsFunc(n.keys, func(key string) bool {
			column := childrenAt(versions, key)
			return column != nil && hasFixedWords(column)
		})
	case n.kind == items:
		columns, _ := aligned(versions)
		return slices.ContainsFunc(columns, hasFixedWords)
	}
	if roots := openAll(versions); roots != nil {
		return hasFixedWords(roots)
	}
	if n.isPEM() {
		return true
	}
	return segmentsOfLine(versions).hasWords()
}
