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

// findSources finds the values that are computed from others: by a function, of whose result they are the beginning, or as a
// longer text that contains it.
func findSources(values []*value) {
	type computed struct {
		from   *value
		derive func(string) string
	}
	byPrefix := map[string][]computed{}
	for _, v := range values {
		if text := strings.TrimSpace(v.text()); len(text) >= minSourceLength {
			for _, derive := range derivations {
				prefix := derive(text)[:minSourceLength]
				byPrefix[prefix] = append(byPrefix[prefix], computed{v, derive})
			}
		}
	}
	for _, v := range values {
		text := strings.TrimSpace(v.text())
		if len(text) < minSourceLength {
			continue
		}
		for _, inAll := range []bool{true, false} { // in one rendering a text may be in capitals by chance
			for _, c := range byPrefix[text[:minSourceLength]] {
				whole := c.derive(strings.TrimSpace(c.from.text()))
				length := len(text)
				if length == len(whole) {
					length = 1 << 20
				}
				derive := func(s string) string { s = c.derive(s); return s[:min(len(s), length)] }
				if strings.HasPrefix(whole, text) && c.from != v && strings.TrimSpace(c.from.text()) != text && (!inAll || v.isAlways(c.from, derive)) {
					v.setSource(c.from, derive)
				}
			}
		}
	}
	for _, v := range values { // what is cut off is no source of the whole
		text := strings.TrimSpace(v.text())
		var parts []*value
		for _, part := range values {
			core := strings.TrimSpace(part.text())
			if len(core) >= minCopyLength && len(core) < len(text) && strings.ContainsFunc(core, isLetter) && strings.Contains(text, core) && !part.isMadeOf(v) {
				parts = append(parts, part)
			}
		}
		if v.source == nil && len(parts) > 0 {
			core := strings.TrimSpace(parts[0].text())
			derive := func(s string) string { return strings.ReplaceAll(text, core, s) }
			v.setSource(parts[0], derive)
			if !v.isAlways(parts[0], derive) {
				v.parts = parts
			}
		}
	}
}

// isMadeOf reports whether a value is another one or computed from it.
func (v *value) isMadeOf(other *value) bool {
	for ; v != nil; v = v.source {
		if v == other {
			return true
		}
	}
	return false
}

// isAlways reports whether a value is computed from another one in all renderings.
func (v *value) isAlways(source *value, derive func(string) string) bool {
	texts := v.places[0].versions
	for i, text := range source.places[0].versions {
		if i < len(texts) && strings.TrimSpace(texts[i]) != derive(strings.TrimSpace(text)) {
			return false
		}
	}
	return true
}

// setSource sets what a value is computed from, unless that is computed from the value itself.
func (v *value) setSource(source *value, derive func(string) string) {
	if v.source == nil && !source.isMadeOf(v) {
		v.source, v.derive = source, derive
	}
}

// maxComparisonsOfHash is how many values are tried as the input of a salted hash. Each takes about 50 ms.
const maxComparisonsOfHash = 6

// findSaltedSources finds the values that salted hashes were made of, in the same object first.
func (d *decider) findSaltedSources(values []*value) {
	for _, v := range values {
		if !bcrypted().MatchString(v.text()) || v.source != nil {
			continue
		}
		candidates := slices.DeleteFunc(slices.Clone(values), func(c *value) bool {
			return c == v || len(c.text()) < 4 || len(c.text()) > 72 || bcrypted().MatchString(c.text())
		})
		slices.SortStableFunc(candidates, func(a, b *value) int { return b.isIn(v) - a.isIn(v) })
		for _, c := range candidates[:min(len(candidates), maxComparisonsOfHash)] {
			if d.bcryptMatches(v.text(), c.text()) {
				v.setSource(c, nil)
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
	return false
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
