package retain

import (
	"strings"

	"deployer/internal/lazyregexp"
)

// A number or a single letter in a key, label or name is a position, which says nothing of whose an entry is, if there are others that
// differ in it only, or if it is the first one. Then the entry is another's in doubt: if anything fixed has changed that has the position.

// positionIn returns the position in a key, and the key without it; both are empty if it has none.
func positionIn(key string) (position, stem string) {
	pattern := numbersIn()
	if !strings.ContainsAny(key, "0123456789") {
		pattern, key = lettersIn(), strings.ReplaceAll(key, "_", "-")
	}
	found := pattern.FindAllString(key, -1)
	if found == nil {
		return "", ""
	}
	return strings.ToLower(strings.Join(found, "-")), pattern.ReplaceAllString(key, "\x00")
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

// Positions are what the keys of a map have at each position.
type positions struct {
	at    map[string]*node  // the fields
	stems map[string]string // the key of each stem; empty if there are several
}

func newPositions() *positions {
	return &positions{map[string]*node{}, map[string]string{}}
}

func (n *node) positions() *positions {
	if n.byPosition == nil {
		n.byPosition = newPositions()
		for i, key := range n.keys {
			position, _ := positionIn(key)
			if n.byPosition.add(key); position == "" {
				continue
			}
			at := n.byPosition.at[position]
			if at == nil {
				at = &node{kind: fields}
				n.byPosition.at[position] = at
			}
			at.keys, at.children = append(at.keys, key), append(at.children, n.children[i])
		}
	}
	return n.byPosition
}

func (p *positions) add(key string) {
	if _, stem := positionIn(key); stem != "" {
		if other, known := p.stems[stem]; known && other != key {
			key = ""
		}
		p.stems[stem] = key
	}
}

// isOneOfMany reports whether there are keys that differ from a key in their position only.
func (p *positions) isOneOfMany(key string) bool {
	_, stem := positionIn(key)
	other, known := p.stems[stem]
	return known && other != key
}

func hasPosition(key string) bool {
	position, _ := positionIn(key)
	return position != ""
}
