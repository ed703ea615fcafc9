package retain

import (
	"crypto/aes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"deployer/internal/lazyregexp"
)

// derivations are what templates make of a value. Text that contains it is another one.
var derivations = []func(string) string{
	func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) },
	func(s string) string { h := sha1.Sum([]byte(s)); return hex.EncodeToString(h[:]) },
	func(s string) string { h := sha512.Sum512([]byte(s)); return hex.EncodeToString(h[:]) },
	func(s string) string { h := sha256.Sum256([]byte(s + "\n")); return hex.EncodeToString(h[:]) },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
	strings.ToUpper,
	strings.ToLower,
	url.QueryEscape,
	func(s string) string { return s }, // cut off
}

// saltedHash is the pattern of what bcrypt and htpasswd make.
const saltedHash = `\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}`

var (
	hexadecimal  = lazyregexp.New(`^[0-9a-f]{8,128}$`)
	saltedHashes = lazyregexp.New(saltedHash)
	bcrypted     = lazyregexp.New(`^` + saltedHash + `$`)
)

// isHash reports whether a text could be a hash, maybe a shortened one.
func isHash(s string) bool { return hexadecimal().MatchString(s) }

// minSourceLength is how many characters of a value must agree for another one to count as computed from it.
const minSourceLength = 6

// findSources finds the values that are computed from others: as a text of several others, by a function, of whose result they are
// the beginning, or as a longer text that contains them.
func findSources(values []*value) {
	findParts(values, false) // first, for what a text of others begins with isn't cut off from it
	findFunctions(values)
	findParts(values, true) // and last, for what is cut off is no source of the whole
}

// findFunctions finds the values that are the beginning of what a function makes of another one.
func findFunctions(values []*value) {
	type computed struct {
		from   *value
		derive func(string) string
	}
	byPrefix := map[string][]computed{}
	for _, v := range values {
		if text := v.core(); len(text) >= minSourceLength {
			for _, derive := range derivations {
				if whole := derive(text); len(whole) >= minSourceLength { // another case may be shorter
					byPrefix[whole[:minSourceLength]] = append(byPrefix[whole[:minSourceLength]], computed{v, derive})
				}
			}
		}
	}
	for _, v := range values {
		text := v.core()
		if len(text) < minSourceLength {
			continue
		}
		for _, inAll := range []bool{true, false} { // in one rendering a text may be in capitals by chance
			for _, c := range byPrefix[text[:minSourceLength]] {
				whole := c.derive(c.from.core())
				length := len(text)
				if length == len(whole) {
					length = 1 << 20
				}
				derive := func(from []string) string { s := c.derive(from[0]); return s[:min(len(s), length)] }
				if strings.HasPrefix(whole, text) && c.from.core() != text && (!inAll || v.isAlways([]*value{c.from}, derive)) {
					v.setSources([]*value{c.from}, derive)
				}
			}
		}
	}
}

// findParts finds the values that contain others. rough says whether something around these may be generated too.
func findParts(values []*value, rough bool) {
	for _, v := range values {
		text := v.core()
		var parts []*value
		for _, part := range values {
			core := part.core()
			if len(core) >= minCopyLength && len(core) < len(text) && strings.ContainsFunc(core, isLetter) && strings.Contains(text, core) && !part.isMadeOf(v) {
				parts = append(parts, part)
			}
		}
		slices.SortStableFunc(parts, func(a, b *value) int { return len(b.core()) - len(a.core()) }) // the first that fits is replaced
		derive := func(finals []string) string {
			var pairs []string
			for i, part := range parts {
				pairs = append(pairs, part.core(), finals[i])
			}
			return strings.NewReplacer(pairs...).Replace(text)
		}
		if isRough := !v.isAlways(parts, derive); len(parts) > 0 && isRough == rough && v.setSources(parts, derive) {
			v.isRough = isRough
		}
	}
}

// isMadeOf reports whether a value is another one or computed from it.
func (v *value) isMadeOf(other *value) bool { return v.leadsTo(other, map[*value]bool{}) }

func (v *value) leadsTo(other *value, seen map[*value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	return v == other || slices.ContainsFunc(v.sources, func(source *value) bool { return source.leadsTo(other, seen) })
}

// isAlways reports whether a value is computed from others in all renderings.
func (v *value) isAlways(sources []*value, derive func([]string) string) bool {
	for i, text := range v.places[0].versions {
		var texts []string
		for _, source := range sources {
			if i < len(source.places[0].versions) {
				texts = append(texts, strings.TrimSpace(source.places[0].versions[i]))
			}
		}
		if len(texts) == len(sources) && strings.TrimSpace(text) != derive(texts) {
			return false
		}
	}
	return true
}

// setSources sets what a value is computed from, unless that is known, or is computed from the value itself.
func (v *value) setSources(sources []*value, derive func([]string) string) bool {
	isOfItself := func(source *value) bool { return source.isMadeOf(v) }
	if len(v.sources) > 0 || slices.ContainsFunc(sources, isOfItself) {
		return false
	}
	v.sources, v.derive = sources, derive
	return true
}

// maxComparisonsOfHash is how many values are tried as the input of a salted hash. Each takes about 50 ms.
const maxComparisonsOfHash = 6

// findSaltedSources finds the values that salted hashes were made of, in the same object first.
func (d *decider) findSaltedSources(values []*value) {
	for _, v := range values {
		if !bcrypted().MatchString(v.text()) || len(v.sources) > 0 {
			continue
		}
		candidates := slices.DeleteFunc(slices.Clone(values), func(c *value) bool {
			return c == v || len(c.text()) < 4 || len(c.text()) > 72 || bcrypted().MatchString(c.text())
		})
		slices.SortStableFunc(candidates, func(a, b *value) int { return b.isIn(v) - a.isIn(v) })
		for _, c := range candidates[:min(len(candidates), maxComparisonsOfHash)] {
			if d.bcryptMatches(v.text(), c.text()) {
				v.setSources([]*value{c}, nil)
				break
			}
		}
	}
}

// isIn is 1 if a place of the value is in the object of another value; otherwise it is 0.
func (v *value) isIn(other *value) int {
	if slices.ContainsFunc(v.places, func(p *place) bool { return p.owner == other.places[0].owner }) {
		return 1
	}
	return 0
}

// inputChanged reports whether a recorded hash or cipher was made of another value of the user than the rendered one.
func (d *decider) inputChanged(v *value) bool {
	if v.recorded == nil || len(d.in.ChangedValues) == 0 {
		return false
	}
	if d.in.Encrypts && isCipher(v.text()) {
		return true // nothing tells what it was made of
	}
	if !bcrypted().MatchString(v.text()) {
		return false
	}
	for _, text := range d.in.ChangedValues[:min(len(d.in.ChangedValues), maxComparisonsOfHash)] {
		if d.bcryptMatches(v.text(), text) {
			return !d.bcryptMatches(*v.recorded, text)
		}
	}
	return len(d.in.ChangedValues) > maxComparisonsOfHash // it may be of one that wasn't tried
}

// bcryptMatches reports whether a salted hash was made of a text. It compares them once: that is slow by design.
func (d *decider) bcryptMatches(hash, plain string) bool {
	pair := [2]string{hash, plain}
	matches, known := d.comparisons[pair]
	if !known {
		if d.comparisons == nil {
			d.comparisons = map[[2]string]bool{}
		}
		matches = bcrypt.CompareHashAndPassword([]byte(hash), []byte(plain)) == nil
		d.comparisons[pair] = matches
	}
	return matches
}

// bcryptHash is a new hash of a text; empty if there can be none.
func bcryptHash(plain string) string {
	out, err := bcrypt.GenerateFromPassword([]byte(plain), bcrypt.DefaultCost)
	if err != nil {
		return ""
	}
	return string(out)
}

// isCipher reports whether a text may be the result of encryptAES.
func isCipher(text string) bool {
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(data) > aes.BlockSize && len(data)%aes.BlockSize == 0
}
