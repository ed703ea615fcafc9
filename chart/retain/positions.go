package retain

import (
	"regexp"
	"slices"
	"strings"

	"deployer/internal/lazyregexp"
)

// A number or a single letter in a key, label or name is a position, which says nothing of whose an entry is, if there are others that
// differ in it only, or if it is the first one. Then the entry is another's in doubt: if anything fixed has changed that has the position.

// positionIn returns the position in a key; empty if it has none.
func positionIn(key string) string {
	pattern, key := positionPattern(key)
	return strings.ToLower(strings.Join(pattern.FindAllString(key, -1), "-"))
}

// stemOf returns a key with a mark in place of its position.
func stemOf(key string) string {
	pattern, key := positionPattern(key)
	return pattern.ReplaceAllString(key, "\x00")
}

// positionPattern returns what matches the position in a key, and the key as that takes it.
func positionPattern(key string) (*regexp.Regexp, string) {
	if strings.ContainsAny(key, "0123456789") {
		return numbersIn(), key
	}
	return lettersIn(), strings.ReplaceAll(key, "_", "-")
}

// isFirst reports whether a position is the first one, as which a letter may count or not.
func isFirst(position string, orLetter bool) bool {
	last := position[strings.LastIndexByte(position, '-')+1:]
	return last == "0" || last == "a" && orLetter
}

var (
	numbersIn = lazyregexp.New(`\d+`)
	lettersIn = lazyregexp.New(`\b[A-Za-z]\b`)
)

// Positions are the children of a node at each position.
type positions struct {
	at    map[string]*node
	stems stems
}

func (n *node) positions() *positions {
	if n.byPosition == nil {
		n.byPosition = &positions{map[string]*node{}, stems{}}
		for _, child := range n.children {
			n.byPosition.stems.add(child.label)
			position := positionIn(child.label)
			if position == "" {
				continue
			}
			at := n.byPosition.at[position]
			if at == nil {
				at = &node{kind: n.kind}
				n.byPosition.at[position] = at
			}
			at.children = append(at.children, child)
		}
	}
	return n.byPosition
}

// Stems have the key of each stem; empty if there are several.
type stems map[string]string

func (s stems) add(key string) {
	if positionIn(key) == "" {
		return
	}
	stem := stemOf(key)
	if other, known := s[stem]; known && other != key {
		key = ""
	}
	s[stem] = key
}

// isOneOfMany reports whether there are keys that differ from a key in their position only.
func (s stems) isOneOfMany(key string) bool {
	other, known := s[stemOf(key)]
	return known && other != key
}

// hasRecordedPosition reports whether all that is fixed in the children of a branch that have the position of this one is as recorded.
func (l *level) hasRecordedPosition() bool {
	position := positionIn(fixedLabel(l.column))
	if position == "" || l.old == nil || l.isList() && l.onlyUses && l.child.owner == "" {
		return true
	}
	now, before := l.versions[0].positions(), l.old.positions()
	isAlone := func(p *positions) bool { return p.at[position] == nil || len(p.at[position].children) < 2 }
	isOnlyPosition := l.child.kind == scalar && len(l.child.label) == len(position)
	mayBeLetter := l.inText && !isOnlyPosition && l.child.header() == nil || !isAlone(now) || !isAlone(before)
	if !isFirst(position, mayBeLetter) && !now.stems.isOneOfMany(l.child.label) && !before.stems.isOneOfMany(l.child.label) {
		return true
	}
	if l.inText && !ofPosition.sameComments(l.column, l.recorded) {
		return false
	}
	at := func(m *node) *node {
		out := &node{kind: m.kind}
		if there := m.positions().at[position]; there != nil {
			isItself := func(child *node) bool { return isOnlyPosition && child.name == l.child.name }
			out.children = slices.DeleteFunc(slices.Clone(there.children), isItself) // it is compared itself
		}
		return out
	}
	return fits(mapped(l.versions, at), at(l.old))
}
