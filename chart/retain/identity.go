package retain

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"deployer/internal/lazyregexp"
)

// identityKeys are the keys that say whose an entry is. If the value of one of them changes, it is another entry.
var identityKeys = []string{"name", "key", "id", "user", "username", "login", "email", "host", "account", "owner"}

// labelKeys are the keys by which entries of a list are told apart.
var labelKeys = append([]string{header}, append(slices.Clone(identityKeys), "mountPath", "containerPort", "port", "path")...)

// header stands for the line that begins a block, among labelKeys.
const header = ""

// entries are the items of a list, the lines of a text, or the blocks of one. Each is recognised by what is fixed in it, never by
// its position.
type entries struct {
	columns   [][]*node // the versions of each entry
	old       []*node   // the recorded entries
	unchanged bool      // nothing but generated values has changed in the release, so that also the positions are the same
}

// recorded returns the recorded entry that is certain to be the same one as entry i; nil if there is none:
//   - the only one with its label on both sides, if nothing else that says whose it is has changed,
//   - the only generated one among others that are all the same,
//   - or the only one with everything that is fixed in it.
func (e *entries) recorded(i int) *node {
	for _, key := range labelKeys {
		label := fixedLabel(e.columns[i], key)
		if label == "" || len(e.labelled(key, label)) != 1 {
			continue
		}
		matching := slices.DeleteFunc(slices.Clone(e.old), func(old *node) bool { return labelOf(old, key) != label })
		switch {
		case len(matching) != 1:
		case identitiesFit(e.columns[i], matching[0]) && e.numberFits(key, label):
			return matching[0]
		default:
			return nil
		}
	}
	if e.unchanged && len(e.old) == len(e.columns) {
		return e.old[i]
	}
	if !hasFixedWords(e.columns[i]) {
		isWholeText := len(e.columns) == 1 && len(e.old) == 1 && e.columns[0][0].isLine() && e.old[0].isLine()
		if isWholeText || e.othersFit() { // its path says what it is
			return e.old[i]
		}
		return nil
	}
	number := numberOf(lineKeyOf(e.columns[i][0]))
	if !neighboursFit(e.columns, e.old, true, func(n string) bool { return number == "" || n == "" || n == number }) {
		return nil
	}
	fitting := func(list []*node) (out []*node) {
		for _, candidate := range list {
			if fits(e.columns[i], candidate) {
				out = append(out, candidate)
			}
		}
		return out
	}
	rendered := make([]*node, len(e.columns))
	for k, column := range e.columns {
		rendered[k] = column[0]
	}
	if found := fitting(e.old); len(found) == 1 && len(fitting(rendered)) == 1 {
		return found[0]
	}
	return nil
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

// numberFits reports whether the other entries with the number of a label are whose they were, such as USER_0 for PASSWORD_0.
func (e *entries) numberFits(key, label string) bool {
	line := func(n *node) *node { return lineOf(labelOf(n, key), n.child("value")) }
	columns := slices.Clone(e.columns)
	for i, column := range columns {
		columns[i] = mapped(column, line)
	}
	number := numberOf(label)
	return number == "" || neighboursFit(columns, mapped(e.old, line), false, func(n string) bool { return n == number })
}

// fieldFits reports whether the other fields with the number of a key are whose they were, such as user-0 for password-0. In a
// map that is below a number, these are also those without one.
func fieldFits(versions []*node, old *node, key string, belowNumber bool) bool {
	number := numberOf(key)
	if number == "" && !belowNumber || old == nil {
		return true
	}
	var columns [][]*node
	for _, k := range versions[0].keys {
		columns = append(columns, mapped(versions, func(n *node) *node { return lineOf(k, n.child(k)) }))
	}
	var lines []*node
	for i, k := range old.keys {
		lines = append(lines, lineOf(k, old.children[i]))
	}
	return neighboursFit(columns, lines, false, func(n string) bool { return belowNumber && n == "" || number != "" && n == number })
}

// lineOf is a field as a line.
func lineOf(key string, value *node) *node {
	if value == nil || value.kind != scalar {
		return &node{}
	}
	return &node{text: key + "=" + value.text}
}

func mapped(list []*node, to func(*node) *node) []*node {
	out := make([]*node, len(list))
	for i, n := range list {
		out[i] = to(n)
	}
	return out
}

// neighboursFit reports whether the lines, arguments or fields that say whose the others are haven't changed, such as --user=root.
// isBeside tells by their numbers which belong together. Fields have no order.
func neighboursFit(columns [][]*node, old []*node, inOrder bool, isBeside func(number string) bool) bool {
	generated := map[string]bool{}
	var rendered []*node
	for _, column := range columns {
		rendered = append(rendered, column[0])
		if !sameInAll(column) {
			generated[identityLineKey(column[0])] = true
		}
	}
	collect := func(list []*node) (out []string) {
		for _, n := range list {
			if key := identityLineKey(n); key != "" && !generated[key] && isBeside(numberOf(key)) {
				out = append(out, strings.TrimSpace(n.text))
			}
		}
		if !inOrder {
			slices.Sort(out)
		}
		return out
	}
	return slices.Equal(collect(rendered), collect(old))
}

// lineKey matches the key that a line or argument begins with, as in key=value, key: value, --key=value, key value and
// <key>value.
var lineKey = lazyregexp.New(`^\s*["'<]?(?:--?)?([^\s=:"'<>]+)["']?(?:\s*[=:>]|\s+\S)`)

// wordComment matches a comment of one word, which may say whose the lines below are.
var wordComment = lazyregexp.New(`^\s*(?:#|//|;)\s*[\pL\pN]\S*\s*$`)

// digitsIn matches the numbers in a key.
var digitsIn = lazyregexp.New(`\d+`)

// numberOf is the number in a key, label or name, which is a position: other entries with it say whose it is.
func numberOf(key string) string { return strings.Join(digitsIn().FindAllString(key, -1), "-") }

func lineKeyOf(n *node) string {
	if m := lineKey().FindStringSubmatch(n.text); n.kind == scalar && m != nil {
		return m[1]
	}
	return ""
}

// identityLineKey is the key of a line that says whose the lines beside it are; empty for another one.
func identityLineKey(n *node) string {
	key := lineKeyOf(n)
	switch {
	case isIdentityKey(key):
		return key
	case n.kind == scalar && wordComment().MatchString(n.text):
		return "#"
	}
	return ""
}

// isIdentityKey reports whether a key without its number, or its last word, is one of identityKeys.
func isIdentityKey(key string) bool {
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return !unicode.IsLetter(r) })
	return len(words) > 0 && slices.Contains(identityKeys, words[len(words)-1])
}

// labelOf is the value of a key of an entry: of its fields, or of the lines in it; empty if it has none.
func labelOf(n *node, key string) string {
	if key == header {
		if h := n.header(); h != nil && !strings.HasPrefix(strings.TrimSpace(h.text), "[[") { // a table of TOML can be there several times
			return h.text
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

// identities are the parts of an entry that say whose it is, by their keys.
func identities(n *node) map[string]*node {
	out := map[string]*node{}
	if n.kind == fields {
		for i, key := range n.keys {
			if isIdentityKey(key) && n.children[i].kind == scalar {
				out[strings.ToLower(key)] = n.children[i]
			}
		}
	}
	if n.header() != nil {
		for _, line := range n.children[1:] {
			if key := identityLineKey(line); key != "" {
				out[strings.ToLower(key)] = line
			}
		}
	}
	return out
}

// identitiesFit reports whether a recorded entry has the same identities.
func identitiesFit(versions []*node, old *node) bool {
	now, before := identities(versions[0]), identities(old)
	if len(now) != len(before) {
		return false
	}
	for key := range now {
		column := []*node{}
		for _, v := range versions {
			column = append(column, identities(v)[key])
		}
		if slices.Contains(column, nil) || before[key] == nil || !fits(column, before[key]) {
			return false
		}
	}
	return true
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
	for _, key := range append(slices.Clone(labelKeys), "line", "text") {
		out, seen := []int{}, map[string]bool{}
		for _, item := range list {
			label := alignmentLabel(item, key)
			at := slices.IndexFunc(other, func(o *node) bool { return alignmentLabel(o, key) == label })
			if label == "" || at < 0 || seen[label] {
				break
			}
			seen[label] = true
			out = append(out, at)
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

func alignmentLabel(n *node, key string) string {
	switch key {
	case "line":
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
