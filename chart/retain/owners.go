package retain

import (
	"maps"
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
)

// A generated value belongs to whatever the fixed things around it name. On the way to it, level by level, it is another's if
//
//   - something beside it has changed that says whose it is: a field or line with one of identityKeys. That may be of a third:
//     smtp-user says nothing of db-password. See namesOwnerOf. Hosts and keys say nothing: services move;
//   - or, if there is none, what says so in the only other field or section, or in any other block of lines;
//   - or its key has a position, and anything fixed has changed that has it too (positions.go).

// A level is a child of a branch on the way to a value.
type level struct {
	*branch
	outer    *level
	child    *node   // the rendered one
	column   []*node // its versions
	recorded *node   // nil if there is none
}

// haveRecordedOwner reports whether what says whose a value is, beside the levels of its way, is what is recorded.
func (l *level) haveRecordedOwner() bool {
	var words []string // of the keys of the fields below
	known := false
	for ; l != nil; l = l.outer {
		if l.isList() {
			if l.old != nil && !l.itemHasRecordedOwner() {
				return false
			}
			known = true // the item has been recognised
			continue
		}
		words = append(words, wordsOfKey(l.child.label)...)
		if l.old == nil {
			continue
		}
		same, found := l.ownersFit(words)
		if known = known || found; same && !known {
			same, known = l.otherBranchFits()
		}
		if !same {
			return false
		}
	}
	return true
}

// itemHasRecordedOwner is haveRecordedOwner of an item, a line or a block. A block that says itself whose it is needs nothing beside it.
func (l *level) itemHasRecordedOwner() bool {
	words := wordsOfKey(l.child.label)
	header := l.child.header()
	if header != nil {
		isStrict := openTag().MatchString(header.text) || machine().MatchString(header.text)
		if !isStrict && len(identities(l.child)) > 0 {
			return true
		}
		if l.child.label == labelOfHeader(header.text) {
			words = nil
		}
	}
	same, _ := l.ownersFit(words)
	if same && l.isSection() {
		same, _ = l.otherBranchFits()
		return same
	}
	return same && l.blocksFit()
}

// isSection reports whether the child is a section.
func (l *level) isSection() bool {
	h := l.child.header()
	return h != nil && section().MatchString(h.text)
}

func (b *branch) isList() bool { return b.versions[0].kind == items }

// An ownership is what the fields or lines with a key say of whose those beside them are.
type ownership struct {
	fixed       []*node
	generated   [][]*node
	old         []*node
	same, known bool // what is fixed is recorded, and there is any
}

// ownersFit reports whether all that says whose something with the given words in its keys is, is recorded, and whether there is any.
// Among lines, one that has most of its path says it too, as db.login does of db.auth.password, or one that has its position. Without words,
// and in a block, any line does.
func (l *level) ownersFit(words []string) (same, found bool) {
	position, nearest := positionIn(l.child.label), 1
	for key := range l.ownerships() {
		nearest = max(nearest, sharedPath(key, l.child.label))
	}
	isAny := len(words) == 0 || l.versions[0].header() != nil
	isNear := func(key string, isLine bool) bool {
		return isLine && l.isList() && (isAny || sharedPath(key, l.child.label) == nearest || position != "" && positionIn(key) == position)
	}
	for key, o := range l.ownerships() {
		switch {
		case !l.isList() && key == l.child.name:
		case isOwnerKey(key) && (namesOwnerOf(key, words) || isNear(key, o.isOfLines())), nameOwnersOf(key, words), key == wordOnly && !l.isSection():
			if !o.same {
				return false, true
			}
			found = found || o.known
		}
	}
	return true, found
}

func (o *ownership) isOfLines() bool {
	isBlock := func(n *node) bool { return n.kind != scalar }
	return !slices.ContainsFunc(o.fixed, isBlock) && !slices.ContainsFunc(o.old, isBlock)
}

// ownerships are what the children of a branch say, by the keys by which they say it.
func (b *branch) ownerships() map[string]*ownership {
	if b.owners != nil {
		return b.owners
	}
	b.owners = map[string]*ownership{}
	of := func(n *node) *ownership {
		if isDocument := strings.Contains(strings.TrimSpace(n.text), "\n"); n.kind == fields && !b.isList() || isDocument && !n.isLine() {
			return nil // name.yaml is a document, and login may be a script
		}
		key := n.owner
		isPlural := isOwnerKey(strings.TrimRight(key, "sS")) && !digits().MatchString(n.text)
		if !isOwnerKey(key) && !isPlural && key != wordOnly {
			return nil
		}
		if b.owners[key] == nil {
			b.owners[key] = &ownership{}
		}
		return b.owners[key]
	}
	for _, old := range b.old.children {
		if o := of(old); o != nil {
			o.old = append(o.old, old)
		}
	}
	for _, column := range b.columns {
		if column == nil {
			continue
		}
		switch o := of(column[0]); {
		case o == nil:
		case sameInAll(column):
			o.fixed = append(o.fixed, column[0])
		default:
			o.generated = append(o.generated, column)
		}
	}
	for _, o := range b.owners {
		o.compare(b.isList())
	}
	return b.owners
}

// compare finds out whether what is fixed is recorded. In a list nothing may be new, and where all lines with a key have something
// generated, they are entries, unless there is only one.
func (o *ownership) compare(isList bool) {
	isEntries := isList && len(o.fixed) == 0 && (len(o.generated) > 1 || len(o.old) > 1)
	fixed := slices.Clone(o.fixed)
	o.same, o.known = true, len(fixed) > 0
	for _, old := range o.old {
		at := slices.IndexFunc(fixed, func(n *node) bool { return sameText(n, old) })
		switch {
		case at >= 0:
			fixed = slices.Delete(fixed, at, at+1)
		case !isEntries && !slices.ContainsFunc(o.generated, func(column []*node) bool { return fits(column, old) }):
			o.same = false
		}
	}
	o.same = o.same && (len(fixed) == 0 || !isList)
	o.known = o.known && len(o.old) > 0
}

// sameText reports whether nodes are equal but for blank characters around their text.
func sameText(a, b *node) bool {
	return equal(a, b) || a.kind == scalar && b.kind == scalar && strings.TrimSpace(a.text) == strings.TrimSpace(b.text)
}

// otherBranchFits reports whether the only other field or section in which something says whose it is says it as recorded, and whether
// there is one. One with a position says it of what has the position.
func (l *level) otherBranchFits() (same, found bool) {
	isBranch := func(n *node) bool {
		return n.name != "" && n.name != l.child.name && positionIn(n.name) == "" && (l.inText || n.name != "metadata") && len(ownersIn(n)) > 0
	}
	only := ""
	for _, n := range slices.Concat(l.versions[0].children, l.old.children) {
		if n.name == only || !isBranch(n) {
			continue
		}
		if only != "" {
			return true, false
		}
		only = n.name
	}
	if old := l.old.child(only); old != nil {
		return ownersInFit(childrenAt(l.versions, only), old), true
	}
	return true, false
}

// ownersInFit reports whether all that says whose something is in a recorded branch is in all versions of it.
func ownersInFit(versions []*node, old *node) bool {
	if versions == nil {
		return false
	}
	for path, before := range ownersIn(old) {
		column := mapped(versions, func(v *node) *node { return identities(v)[path] })
		if slices.Contains(column, nil) || !fits(column, before) {
			return false
		}
	}
	return true
}

// blocksFit reports whether the blocks beside a line or block say as before whose it is. Sections don't say it, nor do several blocks of
// a kind in which something is generated, which are entries.
func (l *level) blocksFit() bool {
	of := l.blocks()
	for _, columns := range of.generated {
		old := l.old.child(fixedName(columns[0]))
		if len(columns) == 1 && columns[0][0] != l.child && old != nil && !section().MatchString(columns[0][0].header().text) && !ownersInFit(columns[0], old) {
			return false
		}
	}
	return of.fixedFit
}

// blocksOf are the blocks among the lines of a branch.
type blocksOf struct {
	generated map[string][][]*node // those in which something is generated, by their first word
	fixedFit  bool                 // the others say of whom something is as recorded
}

func (b *branch) blocks() *blocksOf {
	if b.ofBlocks != nil {
		return b.ofBlocks
	}
	b.ofBlocks = &blocksOf{generated: map[string][][]*node{}}
	kindOf := func(n *node) string { return firstWord().FindString(n.header().text) }
	for _, column := range b.columns {
		if n := column[0]; n.header() != nil && !sameInAll(column) {
			b.ofBlocks.generated[kindOf(n)] = append(b.ofBlocks.generated[kindOf(n)], column)
		}
	}
	saidIn := func(list []*node) (out []string) {
		for _, n := range list {
			if h := n.header(); h == nil || section().MatchString(h.text) || b.ofBlocks.generated[kindOf(n)] != nil {
				continue
			}
			for path, line := range ownersIn(n) {
				out = append(out, n.label+" "+path+" "+strings.TrimSpace(line.text))
			}
		}
		slices.Sort(out)
		return out
	}
	b.ofBlocks.fixedFit = slices.Equal(saidIn(b.versions[0].children), saidIn(b.old.children))
	return b.ofBlocks
}

// firstWord matches the first word of the line that begins a block, such as the name of an element.
var firstWord = lazyregexp.New(`\w[\w.-]*`)

// ownersIn are the identities in a branch that say whose what is beside it is.
func ownersIn(branch *node) map[string]*node {
	out := maps.Clone(identities(branch))
	maps.DeleteFunc(out, func(path string, _ *node) bool { return !isOwnerKey(path[strings.LastIndexByte(path, '/')+1:]) })
	return out
}

// identities are the scalars of an entry that say whose it is, by their paths: in its fields and those below, or in the lines of a
// block. Lists, and fields with another position, are entries themselves.
func identities(n *node) map[string]*node {
	if n == nil || n.kind == scalar {
		return nil
	}
	if n.identities != nil {
		return n.identities
	}
	n.identities = map[string]*node{}
	var collect func(of *node, path, position string)
	collect = func(of *node, path, position string) {
		if of.kind == items && of.header() == nil {
			return
		}
		for _, child := range of.children {
			own := positionIn(child.label)
			key := path + strings.ToLower(child.owner)
			switch {
			case own != "" && position != "" && own != position, child.name == "metadata":
			case child.kind != scalar:
				collect(child, path+strings.ToLower(child.label)+"/", position+own)
			case isIdentityKey(child.owner):
				for n.identities[key] != nil { // of several lines with a key, each counts
					key = "'" + key
				}
				n.identities[key] = child
			}
		}
	}
	collect(n, "", "")
	return n.identities
}
