package retain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/internal/lazyregexp"
)

// A generated value belongs to whatever the fixed fields around it name. Who that is has changed, and the value is another's, if
//
//   - in a field with a number, which is only a position: an identity in the field, or in its siblings with the number, has
//     changed; without identities, anything fixed in them,
//   - otherwise: an identity beside the field, or beside one that it is below, has changed or is gone,
//   - or, if there is none and only one other branch has identities: one of these.
//
// A field beside another one may belong to a third: smtp-user says nothing of db-password. See namesOwnerOf. In a map, and
// among lines, hosts and keys are no identities: services move.

// identityKeys are the keys that say whose an entry is.
var identityKeys = []string{
	"name", "key", "id", "user", "username", "login", "email", "host", "account", "owner", "mail", "uid", "tenant", "customer", "member",
	"principal", "subject", "client", "cn", "dn", "binddn", "rootdn", "userid", "useradd", "adduser", "createuser",
	"who", "whom", "whose", "grantee", "holder", "recipient", "recipients", "dear",
}

// isIdentityWord reports whether a word of a key is one of identityKeys, or ends as one, as pguser does.
func isIdentityWord(word string) bool {
	return slices.Contains(identityKeys, word) || strings.HasSuffix(word, "user") || strings.HasSuffix(word, "username") || strings.HasSuffix(word, "login")
}

// wordsOfKey splits a key into its words and numbers, in lower case: userName0 and USER_NAME_0 are user, name and 0.
func wordsOfKey(key string) []string {
	var out []string
	var before rune
	for _, r := range key {
		isNew := unicode.IsDigit(r) != unicode.IsDigit(before) || unicode.IsUpper(r) && unicode.IsLower(before)
		switch {
		case isNotWord(r):
		case isNotWord(before) || isNew:
			out = append(out, string(unicode.ToLower(r)))
		default:
			out[len(out)-1] += string(unicode.ToLower(r))
		}
		before = r
	}
	return out
}

// credentialWords are words in the keys of what belongs to somebody.
var credentialWords = []string{"password", "passwd", "pass", "pwd", "secret", "token", "hash"}

// isIdentityKey reports whether a key has one of identityKeys among its words, but for some. The key of a credential is none, nor
// is the name of a label, such as app.kubernetes.io/name.
func isIdentityKey(key string, except ...string) bool {
	if strings.Contains(key, "/") {
		return false
	}
	found := false
	for _, word := range wordsOfKey(key) {
		if slices.Contains(credentialWords, word) {
			return false
		}
		found = found || isIdentityWord(word) && !slices.Contains(except, word)
	}
	return found
}

// endsAsIdentity reports whether the last word of a key, without its number, is one of identityKeys.
func endsAsIdentity(key string) bool {
	words := wordsOfKey(strings.TrimRight(key, "0123456789"))
	return len(words) > 0 && isIdentityWord(words[len(words)-1])
}

// namesOwnerOf reports whether a field that says whose others are says it of a field beside it: the words of its key that aren't
// identityKeys are among the words of the other one, as in user and password, db_user and db_password, or USER_0 and PASSWORD_0.
// Of a field with one word anything may say it.
func namesOwnerOf(identity string, words []string) bool {
	if len(words) < 2 && endsAsIdentity(identity) {
		return true
	}
	return !slices.ContainsFunc(wordsOfKey(identity), func(word string) bool {
		return !isIdentityWord(word) && word != "access" && word != "x" && !slices.Contains(words, word) // an access key is a user, and X-User a header
	})
}

// nameOwnersOf is namesOwnerOf for lists in two fields, such as users and passwords.
func nameOwnersOf(identities string, words []string) bool {
	singular := slices.Clone(words)
	for i, word := range words {
		if one := strings.TrimSuffix(word, "s"); one == "key" || slices.Contains(credentialWords, one) {
			singular[i] = one
		}
	}
	identity := strings.TrimRight(identities, "sS")
	return identity != identities && !slices.Equal(singular, words) && isOwnerKey(identity) && namesOwnerOf(identity, singular)
}

// Surroundings are a map on the way to a value, or the list that an item of the way is in.
type surroundings struct {
	outer    *surroundings
	versions []*node // of the map; nil for a list
	old      *node   // recorded
	key      string  // that the way goes on with
	inText   bool
}

// haveRecordedOwner reports whether the identities around a value are those that are recorded.
func (f *surroundings) haveRecordedOwner() bool {
	var words []string
	known := false
	for ; f != nil; f = f.outer {
		if f.versions == nil {
			known = true // the item has been recognised
			continue
		}
		words = append(words, wordsOfKey(f.key)...)
		if f.old == nil {
			continue
		}
		isBeside := func(key string) bool { return isOwnerKey(key) && namesOwnerOf(key, words) }
		areBeside := func(key string) bool { return nameOwnersOf(key, words) }
		named, branches := f.old.ownerFields()
		same, found := f.haveRecorded(named, isBeside, itself)
		if others, _ := f.haveRecorded(named, areBeside, unlessNumber); !same || !others {
			return false
		}
		known = known || found
		if known {
			continue
		}
		if f.branchesWithIdentities() != 1 {
			continue
		}
		if same, known = f.haveRecorded(branches, f.isBranch, ownersIn); !same {
			return false
		}
	}
	return true
}

// isBranch reports whether another field may say whose the value is. One with a number says it of what has the number.
func (f *surroundings) isBranch(key string) bool {
	return key != f.key && positionIn(key) == "" && (f.inText || key != "metadata")
}

func (f *surroundings) branchesWithIdentities() int {
	found := sets.Set[string]{}
	for _, n := range []*node{f.versions[0], f.old} {
		_, branches := n.ownerFields()
		for _, i := range branches {
			if len(found) < 2 && f.isBranch(n.keys[i]) {
				found.Insert(n.keys[i])
			}
		}
	}
	return len(found)
}

// ownerFields returns the places of the fields of a map that may say whose those beside them are, and of those in which something does.
func (n *node) ownerFields() (named, branches []int) {
	if n.ownersAt == nil {
		n.ownersAt = &[2][]int{}
		for i, key := range n.keys {
			if isOwnerKey(key) || isOwnerKey(strings.TrimRight(key, "sS")) {
				n.ownersAt[0] = append(n.ownersAt[0], i)
			}
			if len(ownersIn(n.children[i])) > 0 {
				n.ownersAt[1] = append(n.ownersAt[1], i)
			}
		}
	}
	return n.ownersAt[0], n.ownersAt[1]
}

// haveRecorded reports whether what is found in other fields, of which the places are given, is as recorded, if it is fixed, and whether
// there is any.
func (f *surroundings) haveRecorded(among []int, counts func(key string) bool, find func(*node) map[string]*node) (same, found bool) {
	for _, i := range among {
		key := f.old.keys[i]
		if key == f.key || !counts(key) {
			continue
		}
		var now []map[string]*node
		for _, v := range f.versions {
			if child := v.child(key); child != nil {
				now = append(now, find(child))
			}
		}
		for path, before := range find(f.old.children[i]) {
			if before.kind == fields || strings.Contains(strings.TrimSpace(before.text), "\n") {
				continue // name.yaml is a document, and login may be a script
			}
			column := []*node{}
			for _, v := range now {
				if v[path] != nil {
					column = append(column, v[path])
				}
			}
			if len(column) < len(f.versions) || !fits(column, before) {
				return false, true
			}
			found = found || sameInAll(column)
		}
	}
	return true, found
}

// haveRecordedPosition reports whether all that is fixed in the fields of a map that have the position of a key is as recorded. Of a line,
// that is compared where it is itself.
func (f *surroundings) haveRecordedPosition() bool {
	position := positionIn(f.key)
	if position == "" || f.old == nil {
		return true
	}
	now, before := f.versions[0].positions(), f.old.positions()
	isAlone := func(p *positions) bool { return p.at[position] == nil || len(p.at[position].keys) < 2 }
	own := func(m *node) *node { return m.child(f.key) }
	isOnlyPosition := own(f.versions[0]) != nil && own(f.versions[0]).kind == scalar && len(f.key) == len(position)
	mayBeLetter := f.inText && !isOnlyPosition || !isAlone(now) || !isAlone(before)
	if !isFirst(position, mayBeLetter) && !now.stems.isOneOfMany(f.key) && !before.stems.isOneOfMany(f.key) {
		return true
	}
	if f.inText && !ofPosition.sameComments(mapped(f.versions, own), own(f.old)) {
		return false
	}
	at := func(m *node) *node {
		there := cmp.Or(m.positions().at[position], &node{kind: fields})
		if isOnlyPosition { // it is compared itself
			return withoutField(there, f.key)
		}
		return there
	}
	return fits(mapped(f.versions, at), at(f.old))
}

// isOwnerKey reports whether a field of a map, or a line, says whose another one is. An access key is a user.
func isOwnerKey(key string) bool {
	return isIdentityKey(key, "host", "key") || isIdentityKey(key) && slices.Contains(wordsOfKey(key), "access")
}

// itself is what a field says, in haveRecorded.
func itself(n *node) map[string]*node { return map[string]*node{"": n} }

// unlessNumber is itself, but for a number, which is how many there are.
func unlessNumber(n *node) map[string]*node {
	if digits().MatchString(n.text) {
		return nil
	}
	return itself(n)
}

// ownersIn are the identities in a branch of a map.
func ownersIn(branch *node) map[string]*node {
	out := maps.Clone(identities(branch))
	maps.DeleteFunc(out, func(path string, _ *node) bool { return !isOwnerKey(path[strings.LastIndexByte(path, '.')+1:]) })
	return out
}

// identities are the scalars of an entry that say whose it is, by their paths: in its fields and those below, or in the lines of a
// block. Lists, and fields with another number, are entries themselves.
func identities(n *node) map[string]*node {
	out := map[string]*node{}
	var collect func(n *node, path, number string)
	collect = func(n *node, path, number string) {
		for i, key := range n.keys {
			child := n.children[i]
			own := positionIn(key)
			switch {
			case own != "" && number != "" && own != number:
			case child.kind == scalar && isIdentityKey(key):
				out[path+strings.ToLower(key)] = child
			case child.kind == fields && key != "metadata" || child.header() != nil:
				collect(child, path+strings.ToLower(key)+".", number+own)
			}
		}
		if n.header() != nil {
			var add func(lines []*node)
			add = func(lines []*node) {
				for _, line := range lines {
					if key := identityLineKey(line); key != "" {
						out[path+strings.ToLower(key)] = line
					} else if line.isElement() && !n.isElement() {
						add(line.children)
					}
				}
			}
			add(n.children[1:])
		}
	}
	if n == nil {
		return nil
	}
	if n.owners == nil {
		collect(n, "", "")
		n.owners = out
	}
	return n.owners
}

// asField are the surroundings of one of the items of a list that are recognised by a label, as if it were a field of a map: for items with a
// name and a value, such as variables, and for blocks of a text.
func (e *entries) asField(key, label string) *surroundings {
	toMap := func(list []*node) *node {
		out := &node{kind: fields}
		times := map[string]int{}
		for _, n := range list {
			name, value := labelOf(n, key), n.child("value")
			if v := n.valueOfElement(); v != nil {
				name, value = contentOfElement(name), v
			} else if n.header() != nil {
				name, value = cmp.Or(labelOf(n, header), n.header().text), n
			} else if n.kind == scalar && key == anyLine {
				name, value = lineKeyOf(n), n
			} else if n.kind == scalar {
				name, value = identityLineKey(n), n
			}
			if name != "" && value != nil {
				out.keys, out.children = append(out.keys, name+strings.Repeat("'", times[name])), append(out.children, value)
				times[name]++ // of several with a name, each is compared with its counterpart
			}
		}
		return out
	}
	f := *remember(&e.fields, key, func() *surroundings {
		of := &surroundings{old: toMap(e.old), inText: key != header} // the letter of an element is its name
		columns := e.columns
		if key == anyLine {
			columns = slices.DeleteFunc(slices.Clone(columns), func(column []*node) bool { return fixedLineKey(column) == "" })
		}
		for k := range e.columns[0] {
			of.versions = append(of.versions, toMap(mapped(columns, func(column []*node) *node { return column[k] })))
		}
		return of
	})
	f.key = contentOfElement(label)
	return &f
}

// element matches an element of XML in one line.
var element = lazyregexp.New(`^\s*<([\w.:-]+)(?:\s[^<>]*)?>\s*([^<]*?)\s*</[\w.:-]+>\s*$`)

// contentOfElement is what is in an element of XML in one line; another text is as it is.
func contentOfElement(text string) string {
	if m := element().FindStringSubmatch(text); m != nil {
		return m[2]
	}
	return text
}

// valueOfElement is the value in an element of XML in several lines that has a name and a value, such as a property of Hadoop; nil if
// the node is none.
func (n *node) valueOfElement() *node {
	if n.header() == nil {
		return nil
	}
	var value *node
	isNamed := false
	for _, line := range n.children[1:] {
		if m := element().FindStringSubmatch(line.text); m != nil && line.kind == scalar {
			switch m[1] {
			case "name", "key":
				isNamed = true
			case "value":
				value = line
			}
		}
	}
	if !isNamed {
		return nil
	}
	return value
}

// userInFront matches a user in front of a password, as in user:password and scheme://user:password@host, and what is fixed at the
// beginning of the password, maybe by chance.
var userInFront = lazyregexp.New(`(?:^|[/\s"'=,;])([\w.@+-]+):[^\s/@"'=,;:]*$`)

// userBefore returns the user whose password follows a text; empty if it names none.
func userBefore(text string) string {
	if m := userInFront().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// haveOtherUser reports whether a recorded line has another user in front of a password.
func (l segments) haveOtherUser(recorded string) bool {
	for i := 1; i < len(l); i++ {
		user := userBefore(l[i-1].node.text)
		if l[i].isGenerated && !l[i-1].isGenerated && user != "" && !strings.Contains(recorded, user+":") {
			return true
		}
	}
	return false
}
