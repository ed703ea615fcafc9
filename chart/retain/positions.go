package retain

import (
	"regexp"
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

// stemOf returns a key without the position in it; empty if it has none.
func stemOf(key string) string {
	pattern, key := positionPattern(key)
	if !pattern.MatchString(key) {
		return ""
	}
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

// Positions are what the keys of a map have at each position.
type positions struct {
	at    map[string]*node // the fields
	stems stems
}

func (n *node) positions() *positions {
	if n.byPosition == nil {
		n.byPosition = &positions{map[string]*node{}, stems{}}
		for i, key := range n.keys {
			n.byPosition.stems.add(key)
			position := positionIn(key)
			if position == "" {
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

// Stems have the key of each stem; empty if there are several.
type stems map[string]string

func (s stems) add(key string) {
	if stem := stemOf(key); stem != "" {
		if other, known := s[stem]; known && other != key {
			key = ""
		}
		s[stem] = key
	}
}

// isOneOfMany reports whether there are keys that differ from a key in their position only.
func (s stems) isOneOfMany(key string) bool {
	other, known := s[stemOf(key)]
	return known && other != key
}
