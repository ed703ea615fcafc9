package retain

import (
	"slices"
	"strings"
	"unicode"

	"deployer/internal/lazyregexp"
)

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
		return !namesThing(identity)
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

// isOwnerKey reports whether a field of a map, or a line, says whose another one is. An access key is a user.
func isOwnerKey(key string) bool {
	return isIdentityKey(key, "host", "key") || isIdentityKey(key) && slices.Contains(wordsOfKey(key), "access")
}

// namesThing reports whether a key names a host or a cluster, as cluster-id does, and not somebody in it.
func namesThing(key string) bool {
	words := wordsOfKey(key)
	return (slices.Contains(words, "host") || slices.Contains(words, "cluster")) && !isIdentityKey(key, "host", "key", "name", "id", "uid")
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

// sharedPath counts the names, separated by dots, that two keys have in common at their beginning.
func sharedPath(a, b string) int {
	names, others := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < len(names)-1 && n < len(others)-1 && names[n] == others[n] {
		n++
	}
	return n
}
