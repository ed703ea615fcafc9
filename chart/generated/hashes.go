package generated

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"deployer/internal/lazyregexp"
)

// hashes are the hash functions of templates.
var hashes = []func(string) string{
	func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) },
	func(s string) string { h := sha1.Sum([]byte(s)); return hex.EncodeToString(h[:]) },
	func(s string) string { h := sha512.Sum512([]byte(s)); return hex.EncodeToString(h[:]) },
}

var (
	hexadecimal = lazyregexp.New(`^[0-9a-f]{8,128}$`)
	bcrypted    = lazyregexp.New(`^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$`)
)

// isHash reports whether a token could be a hash, maybe a shortened one.
func isHash(s string) bool { return hexadecimal().MatchString(s) }

// A derivation says how a token is computed from another one.
type derivation struct {
	source *token
	ending string // hashed after the source: nothing, or the end of a line
	hash   func(string) string
	length int // length of the used prefix of the hash
}

func (d derivation) apply(text string) string { return d.hash(text + d.ending)[:d.length] }

// derivations finds the tokens that are hashes of other tokens.
func derivations(tokens []*token) map[*token]derivation {
	byHash := map[string]derivation{}
	for _, t := range tokens {
		if len(t.rendered) < 6 || t.nonText != nil {
			continue
		}
		for _, hash := range hashes {
			for _, ending := range []string{"", "\n"} {
				sum := hash(t.rendered + ending)
				byHash[sum[:8]] = derivation{t, ending, hash, 0}
			}
		}
	}
	out := map[*token]derivation{}
	for _, t := range tokens {
		if !isHash(t.rendered) {
			continue
		}
		d, ok := byHash[t.rendered[:8]]
		if ok && d.source.rendered != t.rendered && strings.HasPrefix(d.hash(d.source.rendered+d.ending), t.rendered) {
			d.length = len(t.rendered)
			out[t] = d
		}
	}
	return out
}

// bcryptInputs returns the inputs of a bcrypt hash. The repeated renderings have them in its
// place, in hexadecimal. It returns nil if the token isn't a bcrypt hash, or an input isn't known.
func (t *token) bcryptInputs() []string {
	if !bcrypted().MatchString(t.rendered) {
		return nil
	}
	var out []string
	for _, s := range t.rerendered {
		plain, err := hex.DecodeString(s)
		if err != nil {
			return nil
		}
		out = append(out, string(plain))
	}
	return out
}

func bcryptMatches(hash, plain string) bool {
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(plain)) == nil
}

// bcryptHash is a new hash of a text.
func bcryptHash(plain string) (string, error) {
	out, err := bcrypt.GenerateFromPassword([]byte(plain), bcrypt.DefaultCost)
	return string(out), err
}

// cipherInput returns the password and the text that encryptAES was given; false if the token isn't its result.
func (t *token) cipherInput() (password, text string, ok bool) {
	if len(t.rerendered) == 0 || t.rerendered[0] != t.rerendered[len(t.rerendered)-1] {
		return "", "", false
	}
	first, second, found := strings.Cut(t.rerendered[0], ".")
	a, err := hex.DecodeString(first)
	b, berr := hex.DecodeString(second)
	_, isCipher := decodeCipher(t.rendered)
	return string(a), string(b), found && err == nil && berr == nil && isCipher
}

// decodeCipher reads the blocks of a cipher; false if they aren't as encryptAES makes them.
func decodeCipher(text string) ([]byte, bool) {
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil && len(data) > aes.BlockSize && len(data)%aes.BlockSize == 0
}

// decryptAES decrypts what encryptAES of sprig has encrypted.
// (github.com/Masterminds/sprig/v3/crypto.go)
func decryptAES(password, text string) string {
	data, ok := decodeCipher(text)
	if !ok {
		return ""
	}
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return ""
	}
	out := make([]byte, len(data)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, data[:aes.BlockSize]).CryptBlocks(out, data[aes.BlockSize:])
	if padding := int(out[len(out)-1]); padding <= len(out) {
		return string(out[:len(out)-padding])
	}
	return ""
}
