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

	fields   map[string]*surroundings // see asField
	lines    *fixedLines              // see fixed
	branches *branches                // see besides
	flat     *entries                 // see withoutElements
}

// recorded returns the recorded entry that is certain to be the same one as entry i; otherwise nil, and why:
//   - the only one with its label on both sides, if nothing else that says whose it is has changed,
//   - the only generated one among others that are all the same,
//   - or the only one with everything that is fixed in it.
func (e *entries) recorded(i int) (found *node, missing string) {
	for _, key := range labelKeys {
		label := fixedLabel(e.columns[i], key)
		if label == "" || len(e.labelled(key, label)) != 1 {
			continue
		}
		matching := slices.DeleteFunc(slices.Clone(e.old), func(old *node) bool { return labelOf(old, key) != label })
		if len(matching) != 1 {
			continue
		}
		n, beside := e.columns[i][0], e
		if n.header() != nil && !n.isElement() {
			beside = e.withoutElements()
		}
		around := beside.asField(key, label)
		isNamed := len(identities(n)) > 0 && n.header() != nil && n.valueOfElement() == nil
		if isStrict := n.isStrictBlock(); (isStrict || !isNamed || numberOf(around.key) != "") && !e.lineAboveFits(i, matching[0]) || isStrict && !e.neighboursFit("") {
			return nil, missingOwner
		}
		if e.branchesFit(i) && identitiesFit(e.columns[i], matching[0]) && headersFit(e.columns[i], matching[0]) && around.haveRecordedNumber() && (isNamed || around.haveRecordedOwner()) {
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
	fitting := func(list []*node) (out []*node) {
		for _, candidate := range list {
			if (key == "" || lineKeyOf(candidate) == key) && fits(e.columns[i], candidate) {
				out = append(out, candidate)
			}
		}
		return out
	}
	first := func(column []*node) *node { return column[0] }
	if candidates := fitting(e.old); len(candidates) == 1 && len(fitting(mapped(e.columns, first))) == 1 {
		if !e.lineAboveFits(i, candidates[0]) || !e.neighboursFit(key) || !e.branchesFit(i) {
			return nil, missingOwner
		}
		return candidates[0], ""
	}
	return nil, missingEntry
}

// reworded returns the only recorded line with the key of entry i, if that is the only rendered one; otherwise nil.
func (e *entries) reworded(i int) *rewording {
	key := fixedLineKey(e.columns[i])
	var now, before []*node
	for _, column := range e.columns {
		if lineKeyOf(column[0]) == key {
			now = append(now, column[0])
		}
	}
	for _, old := range e.old {
		if lineKeyOf(old) == key {
			before = append(before, old)
		}
	}
	if key == "" || len(now) != 1 || len(before) != 1 || !e.neighboursFit(key) {
		return nil
	}
	return &rewording{now[0].text, before[0].text}
}

// isLine reports whether a node is a line of a text.
func (n *node) isLine() bool { return n.kind == scalar && n.span != [2]int{} }

// labelled returns the rendered entries with a label.
func (e *entries) labelled(key, label string) (out []*node) {
	for _, column := range e.columns {
		if labelOf(column[0], key) == label {
			out = append(out, column[0])
		}
	}
	return out
}

// name names entry i in a path, as plans write it.
func (e *entries) name(i int) string {
	for _, key := range labelKeys[1:] {
		n := e.columns[i][0].child(key)
		if label := fixedLabel(e.columns[i], key); label != "" && len(e.labelled(key, label)) == 1 && n != nil {
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

// neighboursFit reports whether the lines or arguments that say whose the one with a key is haven't changed, such as --user=root.
func (e *entries) neighboursFit(of string) bool {
	if !e.asField(anyLine, of).haveRecordedNumber() {
		return false
	}
	words := wordsOfKey(of)
	collect := func(list []*node) (out []*node) {
		nearest := 1
		for _, n := range list {
			nearest = max(nearest, sharedPath(identityLineKey(n), of))
		}
		for _, n := range list {
			key := identityLineKey(n)
			isNumber := numberOf(of) != "" && numberOf(key) == numberOf(of)
			namesOwner := namesOwnerOf(key, words) && (len(words) > 1 || !namesThing(key))
			isOwner := isOwnerKey(key) && (of == "" || sharedPath(key, of) == nearest || namesOwner)
			if key == "" && nameOwnersOf(lineKeyOf(n), words) || key != "" && (key == "#" || isNumber || isOwner) {
				out = append(out, n)
			}
		}
		return out
	}
	return e.fixed().fit(collect(e.fixed().lines), collect(e.old))
}

// FixedLines are the lines among entries in which nothing is generated.
type fixedLines struct {
	lines           []*node
	keys, generated map[string]bool // of identities, in these lines and in the others
	others          [][]*node
	keyless         [][]*node // of the others, those whose first word is generated
	known           map[string]bool
	old             []*node
	entries         map[*node]bool // see isEntry
	inBlock         bool           // the only line with its key is no list, and says whose the block is
}

func (e *entries) fixed() *fixedLines {
	if e.lines != nil {
		return e.lines
	}
	f := &fixedLines{keys: map[string]bool{}, generated: map[string]bool{}, known: map[string]bool{}, old: e.old, entries: map[*node]bool{}}
	for _, column := range e.columns {
		key := fixedLineKey(column)
		f.known[key] = true
		switch {
		case sameInAll(column):
			f.lines = append(f.lines, column[0])
			f.keys[identityLineKey(column[0])] = true
		case key != lineKeyOf(column[0]):
			f.keyless = append(f.keyless, column)
		default:
			f.generated[identityLineKey(column[0])] = true
			f.others = append(f.others, column)
		}
	}
	e.lines = f
	return f
}

// fit reports whether recorded lines are fixed ones and otherwise entries themselves, which have something generated.
func (f *fixedLines) fit(fixed, old []*node) bool {
	for _, n := range old {
		switch {
		case len(fixed) > 0 && strings.TrimSpace(n.text) == strings.TrimSpace(fixed[0].text):
			fixed = fixed[1:]
		case !f.isEntry(n):
			return false
		}
	}
	return len(fixed) == 0
}

// isEntry reports whether a recorded line was one with something generated: it has the key of such lines only, or looks like one. Of
// those that have no key, there were no more than there are.
func (f *fixedLines) isEntry(n *node) bool {
	is, known := f.entries[n]
	if known {
		return is
	}
	fitsOne := func(columns [][]*node, n *node) bool {
		return slices.ContainsFunc(columns, func(column []*node) bool { return fits(column, n) })
	}
	isKeyless := func(n *node) bool { return !f.known[lineKeyOf(n)] && fitsOne(f.keyless, n) }
	switch key := identityLineKey(n); {
	case f.generated[key]:
		hasKey := func(n *node) bool { return identityLineKey(n) == key }
		isOne := f.inBlock && !slices.ContainsFunc(f.old, func(other *node) bool { return other != n && hasKey(other) }) &&
			len(slices.DeleteFunc(slices.Clone(f.others), func(column []*node) bool { return !hasKey(column[0]) })) == 1
		is = !f.keys[key] && !isOne || fitsOne(f.others, n)
	case isKeyless(n):
		count := 0
		for _, old := range f.old {
			if isKeyless(old) {
				count++
			}
		}
		is = count <= len(f.keyless)
	}
	f.entries[n] = is
	return is
}

// Branches are the blocks among entries that say whose those beside them are.
type branches struct {
	elements, others       []string // what they say: elements of XML, and other blocks
	oldElements, oldOthers []string
	headers                map[string]bool // of the others
	isNamed                bool            // a line says it, too
}

// branchesFit reports whether the blocks beside entry i in which nothing is generated say as before whose it is: all elements of XML,
// and as in a map, the only other block if nothing else does. Sections are compared like fields.
func (e *entries) branchesFit(i int) bool {
	b := e.besides()
	if !slices.Equal(b.elements, b.oldElements) {
		return false
	}
	n := e.columns[i][0]
	isNameless := n.header() == nil || !section().MatchString(n.header().text) && len(n.ownerLines()) == 0
	if flat := e.withoutElements(); isNameless && flat != e && !flat.neighboursFit(fixedLineKey(e.columns[i])) {
		return false
	}
	if b.isNamed || len(b.headers) != 1 || n.header() != nil && (section().MatchString(n.header().text) || len(identities(n)) > 0) {
		return true
	}
	return slices.Equal(b.others, b.oldOthers)
}

// withoutElements are entries with the lines that are in elements of XML, and machines of netrc, in place of these, which may say whose what is beside them is.
func (e *entries) withoutElements() *entries {
	var columnsIn func(column []*node) [][]*node
	columnsIn = func(column []*node) (out [][]*node) {
		columns, _ := aligned(column)
		if !column[0].isStrictBlock() || columns == nil {
			return [][]*node{column}
		}
		for _, c := range columns {
			out = append(out, columnsIn(c)...)
		}
		return out
	}
	switch {
	case e.flat != nil:
	case !slices.ContainsFunc(e.columns, func(column []*node) bool { return column[0].isStrictBlock() }) && !slices.ContainsFunc(e.old, (*node).isStrictBlock):
		e.flat = e
	default:
		e.flat = &entries{}
		for _, column := range e.columns {
			e.flat.columns = append(e.flat.columns, columnsIn(column)...)
		}
		for _, old := range e.old {
			for _, column := range columnsIn([]*node{old}) {
				e.flat.old = append(e.flat.old, column[0])
			}
		}
	}
	return e.flat
}

func (e *entries) besides() *branches {
	if e.branches != nil {
		return e.branches
	}
	b := &branches{headers: map[string]bool{}, isNamed: slices.ContainsFunc(e.fixed().lines, func(n *node) bool { return isOwnerKey(identityLineKey(n)) })}
	entries := map[string]bool{}
	var fixed []*node
	var generated [][]*node
	for _, column := range e.columns {
		switch n := column[0]; {
		case n.header() == nil:
		case sameInAll(column):
			fixed = append(fixed, n)
		default:
			entries[n.shapeOfBlock()] = true
			generated = append(generated, column)
		}
	}
	isCounterpart := func(n *node) bool {
		has := func(other *node) bool { return labelOf(other, header) == labelOf(n, header) }
		return slices.ContainsFunc(generated, func(column []*node) bool {
			return fits(column, n) || has(column[0]) && len(e.labelled(header, labelOf(n, header))) == 1 && len(slices.DeleteFunc(slices.Clone(e.old), func(old *node) bool { return !has(old) })) == 1
		})
	}
	collect := func(list []*node) (elements, others []string) {
		for _, n := range list {
			header := n.header()
			if header == nil || section().MatchString(header.text) || machine().MatchString(header.text) || entries[n.shapeOfBlock()] {
				continue
			}
			owners := n.ownerLines()
			if len(owners) == 0 || isCounterpart(n) {
				continue
			}
			if openTag().MatchString(header.text) {
				elements = append(elements, owners...)
			} else {
				others = append(others, owners...)
				b.headers[header.text] = true
			}
		}
		return elements, others
	}
	b.elements, b.others = collect(fixed)
	b.oldElements, b.oldOthers = collect(e.old)
	e.branches = b
	return b
}

// firstName matches the first name in the line that begins a block, such as that of an element.
var firstName = lazyregexp.New(`\w[\w.-]*`)

// shapeOfBlock is what blocks have in common that are entries of the same kind: their first name, and the keys in them.
func (n *node) shapeOfBlock() string {
	var keys []string
	for _, line := range n.children[1:] {
		key := lineKeyOf(line)
		if line.header() != nil {
			key = "{" + line.shapeOfBlock() + "}"
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return firstName().FindString(n.header().text) + " " + strings.Join(slices.Compact(keys), " ")
}

// ownerLines are the lines of a block that say whose something is, and what is in an element that is called so.
func (n *node) ownerLines() (out []string) {
	header := n.header()
	isOwner := isOwnerKey(firstName().FindString(header.text))
	if isOwner || slices.ContainsFunc(settings().FindAllStringSubmatch(header.text, -1), func(m []string) bool { return isOwnerKey(m[1]) }) {
		out = append(out, strings.TrimSpace(header.text))
	}
	isText := isOwner && openTag().MatchString(header.text)
	for _, line := range n.children[1:] {
		if line.header() != nil {
			out = append(out, line.ownerLines()...)
			continue
		}
		key := identityLineKey(line)
		if isOwnerKey(key) || key == "#" || isText && !strings.HasPrefix(strings.TrimSpace(line.text), "<") {
			out = append(out, strings.TrimSpace(line.text))
		}
	}
	return out
}

// isStrictBlock reports whether a node is a block of a text that would be lines without it: an element of XML, or a machine of netrc.
func (n *node) isStrictBlock() bool {
	return n.isElement() || n.header() != nil && machine().MatchString(n.header().text)
}

// isElement reports whether a node is an element of XML in several lines.
func (n *node) isElement() bool { return n.header() != nil && openTag().MatchString(n.header().text) }

// lineAboveFits reports whether what stands directly above entry i may say whose it is, and isn't what stands above a recorded one.
func (e *entries) lineAboveFits(i int, old *node) bool {
	var words [][]string
	for k := range e.columns[i] {
		words = append(words, wordsAbove(len(e.columns), i, func(j int) *node { return e.columns[j][k] }))
	}
	return wordsFit(words, wordsAbove(len(e.old), slices.Index(e.old, old), func(j int) *node { return e.old[j] }))
}

// wordsFit reports whether recorded words of comments are those that are the same in all versions.
func wordsFit(versions [][]string, old []string) bool {
	isOther := func(v []string) bool { return !slices.Equal(v, versions[0]) }
	if !slices.ContainsFunc(versions[1:], isOther) {
		return slices.Equal(versions[0], old)
	}
	for i, word := range versions[0] {
		isFixed := !slices.ContainsFunc(versions, func(v []string) bool { return i >= len(v) || v[i] != word })
		if isFixed && (i >= len(old) || old[i] != word) {
			return false
		}
	}
	return true
}

// wordsAbove are the words of the comments directly above an entry of a list.
func wordsAbove(n, at int, entry func(int) *node) (out []string) {
	for ; at > 0 && at < n; at-- {
		above, first := entry(at-1), entry(at)
		for first.kind == items && len(first.children) > 0 {
			first = first.children[0]
		}
		isAbove := above.isLine() && first.span[0]-above.span[1] <= len("\r\n")
		if !isAbove || !lineComment().MatchString(above.text) {
			return out
		}
		out = append(out, wordsOfComment(above.text)...)
	}
	return out
}

var (
	// lineComment matches a line that is a comment.
	lineComment = lazyregexp.New(`^\s*(?:#(?:[^!]|$)|//|;|--(?:\s|$)|<!--|/\*)`)
	// versionWord matches a word of a version, a date or a time.
	versionWord = lazyregexp.New(`^(?:v?\d+|\d+T\d+|\d+Z)$`)
	// whose matches a word of a comment that says whose something is.
	whose = lazyregexp.New(`(?i)\b(?:of|for|belongs?|password|credentials?|(?:user|account|owner|login|member|customer|tenant|client|admin|e?mail|role|name)(?:name)?s?)\b|['’]s\b`)
	// datesInText matches dates and times, also as date prints them.
	datesInText = lazyregexp.New(timePattern + `|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:` + month + ` {1,2}\d{1,2}|\d{1,2} ` + month + `)\b(?: \d\d:\d\d:\d\d(?: [A-Z]{3,4})?)?`)
)

const month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`

// wordsOfComment are the words of a comment that may say whose the line below is, without versions and dates: of one that has one
// word, or says of whom it is.
func wordsOfComment(text string) []string {
	words := strings.FieldsFunc(datesInText().ReplaceAllString(text, ""), isNotWord)
	if len(words) > 1 && !whose().MatchString(text) {
		return nil
	}
	return slices.DeleteFunc(words, versionWord().MatchString)
}

// sameComments reports whether versions of a field of a text have the words that were recorded in the comments on it. An entry, which
// may be another one, must also have those of what is below it, and none that are new.
func sameComments(versions []*node, old *node, isEntry bool) bool {
	words := func(n *node) []string { return n.wordsOfComments(isEntry) }
	return old == nil || slices.Contains(versions, nil) || !isEntry && len(words(old)) == 0 || wordsFit(mapped(versions, words), words(old))
}

// wordsOfComments are those of the comments on a field; deep says, also on what is below it.
func (n *node) wordsOfComments(deep bool) (out []string) {
	for line := range strings.Lines(n.comment) {
		out = append(out, wordsOfComment(line)...)
	}
	for i := 0; deep && i < len(n.children); i++ {
		out = append(out, n.children[i].wordsOfComments(deep)...)
	}
	return out
}

// namesThing reports whether a key names a host or a cluster, as cluster-id does, and not somebody in it.
func namesThing(key string) bool {
	words := wordsOfKey(key)
	return (slices.Contains(words, "host") || slices.Contains(words, "cluster")) && !isIdentityKey(key, "host", "key", "name", "id", "uid")
}

// sharedPath counts the names, separated by dots, that two keys have in common at their beginning.
func sharedPath(a, b string) int {
	names, others := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < len(names)-1 && n < len(others)-1 && names[n] == others[n] {
		n++
	}
	return n
}

// lineKeys match the key that a line or argument begins with, each if those before don't: <a name="key" value="...", key=value,
// key: value, --key=value, f('key', value), also behind other words as in export key=value, and key value or ENV key value.
var lineKeys = []func() *regexp.Regexp{
	lazyregexp.New(`^\s*<\w+\s+(?:name|key)=["']([^"']+)["']\s*(?:value|>)`),
	lazyregexp.New(`^\s*<\w+>\s*<(?:name|key)>\s*([^<]+?)\s*</(?:name|key)>\s*<value>`),
	lazyregexp.New(`^\s*(?:(?i:environment=|--(?:set|set-string|env|build-arg|from-literal)=)["']?|-D)?(?:(?i:export|env|arg|set|setenv|putenv|declare(?:\s+-x)?|local|readonly|const|let|var|val|static|final|public|private|protected|string|define|--from-literal|--set-string|--set|--env|--build-arg|-e)[\s(]+)*["'<$]?(?:--?)?([^\s=:,"'<>()]+)["']?\s*[=:,>]`),
	lazyregexp.New(`^\s*(?i:(?:env|arg|set|setenv)\s+)?["'<]?(?:--?)?([^\s=:"'<>]+)["']?\s+\S`),
}

// wordComment matches a comment of one word, which may say whose the lines below are.
var wordComment = lazyregexp.New(`^\s*(?:#|//|;)\s*[\pL\pN]\S*\s*$`)

// userInSQL matches a line that says whose the rest of its statement is.
var userInSQL = lazyregexp.New(`(?i)^\s*(?:create|alter)\s+(?:user|role|login)\s[^;]*$`)

// digitsIn matches the numbers in a key.
var digitsIn = lazyregexp.New(`\d+`)

// numberOf is the number in a key, label or name, which is a position: other entries with it say whose it is.
func numberOf(key string) string {
	return strings.Join(strings.FieldsFunc(key, func(r rune) bool { return r < '0' || r > '9' }), "-")
}

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
	key := lineKeyOf(n)
	switch {
	case isIdentityKey(key):
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
	if key == header {
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

// aligned returns the versions of each item of lists, in the order of the first one. reordered says that they come in another order
// each time. It returns nil if the lists have different lengths.
func aligned(versions []*node) (columns [][]*node, reordered bool) {
	list := versions[0].children
	columns = make([][]*node, len(list))
	for i, item := range list {
		columns[i] = append(columns[i], item)
	}
	for _, v := range versions[1:] {
		if len(v.children) != len(list) {
			return nil, false
		}
		order := orderOf(list, v.children)
		reordered = reordered || !slices.IsSorted(order)
		for i := range list {
			columns[i] = append(columns[i], v.children[order[i]])
		}
	}
	return columns, reordered
}

// orderOf returns for each item the position of its counterpart in another rendering: of the one with its label, if all
// have different ones, or of the equal one; otherwise its own position.
func orderOf(list, other []*node) []int {
	for _, key := range append(slices.Clone(labelKeys), anyLine, "text") {
		labels, ok := distinctLabels(list, key)
		if !ok {
			continue
		}
		first := map[string]int{}
		for i, item := range slices.Backward(other) {
			first[alignmentLabel(item, key)] = i
		}
		var out []int
		for _, label := range labels {
			if at, found := first[label]; found {
				out = append(out, at)
			}
		}
		if len(out) == len(list) {
			return out
		}
	}
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// distinctLabels are the labels of items; false unless each has another one.
func distinctLabels(list []*node, key string) (labels []string, ok bool) {
	seen := map[string]bool{"": true}
	for _, item := range list {
		label := alignmentLabel(item, key)
		if seen[label] {
			return nil, false
		}
		seen[label] = true
		labels = append(labels, label)
	}
	return labels, true
}

func alignmentLabel(n *node, key string) string {
	switch key {
	case anyLine:
		return lineKeyOf(n)
	case "text":
		return n.text
	}
	return labelOf(n, key)
}

// sameUpToOrder reports whether a recorded node has the final values of a rendered one, in any order where the order is generated.
func sameUpToOrder(n, old *node) bool {
	if old == nil || n.kind != old.kind || len(n.children) != len(old.children) {
		return false
	}
	switch n.kind {
	case fields:
		for i, key := range n.keys {
			if !sameUpToOrder(n.children[i], old.child(key)) {
				return false
			}
		}
		return true
	case items:
		left := slices.Clone(old.children)
		for i, child := range n.children {
			at := 0
			if n.reorderable {
				at = slices.IndexFunc(left, func(o *node) bool { return sameUpToOrder(child, o) })
			}
			if at < 0 || !sameUpToOrder(n.children[i], left[at]) {
				return false
			}
			left = slices.Delete(left, at, at+1)
		}
		return true
	}
	return n.final() == old.text || n.place == nil && n.segments == nil && n.inner != nil && n.inner.keepsOrder(old.text)
}

// keepsOrder reports whether the recorded text of a layer differs from the final one only in an order that is generated.
func (l *layer) keepsOrder(recorded string) bool {
	old := recordedIn(&node{text: recorded, isData: true}, l)
	if l.format != inBase64 {
		old = recordedIn(&node{text: recorded}, l)
	}
	return old != nil && sameUpToOrder(l.root, old.root) && (l.format == inBase64 || slices.Equal(sortedPieces(l.plainFinal()), sortedPieces(recorded)))
}

func sortedPieces(text string) []string {
	out := pieces().FindAllString(text, -1)
	slices.Sort(out)
	return out
}
