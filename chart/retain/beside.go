package retain

import (
	"slices"
	"strings"
	"sync"

	"deployer/internal/lazyregexp"
)

// neighboursFit reports whether the lines or arguments that say whose the one with a key is haven't changed, such as --user=root.
func (e *entries) neighboursFit(of string) bool {
	return remember(&e.neighbours, of, func() bool {
		return e.asField(anyLine, of).haveRecordedPosition() && e.fixed().fit(e.ownersOf(of, e.fixed().lines), e.ownersOf(of, e.old))
	})
}

// remember returns what is known of a key, or finds it out.
func remember[K comparable, V any](known *map[K]V, key K, find func() V) V {
	if value, ok := (*known)[key]; ok {
		return value
	}
	if *known == nil {
		*known = map[K]V{}
	}
	value := find()
	(*known)[key] = value
	return value
}

// ownersOf are those of several lines that say whose the one with a key is.
func (e *entries) ownersOf(of string, lines []*node) (out []*node) {
	words := wordsOfKey(of)
	position := positionIn(of)
	nearest := 1
	for _, n := range lines {
		if key := identityLineKey(n); key != "" {
			nearest = max(nearest, sharedPath(key, of))
		}
	}
	for _, n := range lines {
		key := identityLineKey(n)
		if key == "" {
			if nameOwnersOf(lineKeyOf(n), words) {
				out = append(out, n)
			}
			continue
		}
		at := positionIn(key)
		namesOwner := namesOwnerOf(key, words) && (len(words) > 1 || !namesThing(key))
		isOwner := isOwnerKey(key) && (of == "" || sharedPath(key, of) == nearest || namesOwner)
		if key == "#" || position != "" && at == position || isOwner {
			out = append(out, n)
		}
	}
	return out
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
	oldKeyless      func() int     // how many recorded ones there are of the keyless
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
	f.oldKeyless = sync.OnceValue(func() int { return countWhere(f.old, f.isKeyless) })
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
	switch key := identityLineKey(n); {
	case f.generated[key]:
		hasKey := func(n *node) bool { return identityLineKey(n) == key }
		isOne := f.inBlock && !slices.ContainsFunc(f.old, func(other *node) bool { return other != n && hasKey(other) }) &&
			countWhere(f.others, func(column []*node) bool { return hasKey(column[0]) }) == 1
		is = !f.keys[key] && !isOne || fitsOne(f.others, n)
	case f.isKeyless(n):
		is = f.oldKeyless() <= len(f.keyless)
	}
	f.entries[n] = is
	return is
}

// isKeyless reports whether a recorded line may be one of those whose first word is generated.
func (f *fixedLines) isKeyless(n *node) bool {
	return !f.known[lineKeyOf(n)] && fitsOne(f.keyless, n)
}

func fitsOne(columns [][]*node, n *node) bool {
	return slices.ContainsFunc(columns, func(column []*node) bool { return fits(column, n) })
}

func countWhere[T any](list []T, is func(T) bool) (n int) {
	for _, item := range list {
		if is(item) {
			n++
		}
	}
	return n
}

// branchesFit reports whether the blocks beside entry i in which nothing is generated say as before whose it is. A section, and a block that
// isn't an element of XML and says it itself, are compared like fields.
func (e *entries) branchesFit(i int) bool {
	n := e.columns[i][0]
	isSection := n.header() != nil && section().MatchString(n.header().text)
	if flat := e.withoutElements(); flat != e && !isSection && (n.header() == nil || len(n.ownerLines()) == 0) && !flat.neighboursFit(fixedLineKey(e.columns[i])) {
		return false
	}
	return isSection || n.header() != nil && !n.isElement() && len(identities(n)) > 0 || e.ownersBesideFit()
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

// ownersBesideFit reports whether the blocks in which nothing is generated say as before whose what is beside them is.
func (e *entries) ownersBesideFit() bool {
	if e.besideFits == nil {
		fit := slices.Equal(e.ownersBeside())
		e.besideFits = &fit
	}
	return *e.besideFits
}

// ownersBeside are the lines in these blocks that say so: those of now, and the recorded ones.
func (e *entries) ownersBeside() (now, before []string) {
	lists := map[string]bool{} // shapes of blocks in which something is generated
	var fixed []*node
	var generated [][]*node
	for _, column := range e.columns {
		switch n := column[0]; {
		case n.header() == nil:
		case sameInAll(column):
			fixed = append(fixed, n)
		default:
			lists[n.shapeOfBlock()] = true
			generated = append(generated, column)
		}
	}
	isCounterpart := func(n *node) bool {
		has := func(other *node) bool { return labelOf(other, header) == labelOf(n, header) }
		return slices.ContainsFunc(generated, func(column []*node) bool {
			return fits(column, n) || has(column[0]) && len(e.labelled(header).now[labelOf(n, header)]) == 1 && countWhere(e.old, has) == 1
		})
	}
	owners := func(list []*node) (out []string) {
		for _, n := range list {
			if h := n.header(); h == nil || section().MatchString(h.text) || machine().MatchString(h.text) || lists[n.shapeOfBlock()] {
				continue
			}
			if lines := n.ownerLines(); len(lines) > 0 && !isCounterpart(n) {
				out = append(out, lines...)
			}
		}
		return out
	}
	return owners(fixed), owners(e.old)
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
