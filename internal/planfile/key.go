package planfile

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// A key makes digests that can't be made or guessed without it.
type key []byte

// digest is the digest of a value for one purpose; empty when the value can't be encoded as
// JSON, which doesn't happen to values that were read from JSON or YAML.
func (k key) digest(purpose string, value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return encodeBase64(k.sum(purpose, data)[:16])
}

func (k key) sign(line []byte) string { return "hmac-sha256:" + encodeBase64(k.sum("seal", line)) }

func (k key) verifies(line []byte, seal string) bool {
	return hmac.Equal([]byte(k.sign(line)), []byte(seal))
}

func (k key) sum(purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, k)
	fmt.Fprintf(h, "%d %s\n", len(purpose), purpose)
	h.Write(data)
	return h.Sum(nil)
}

func encodeBase64(sum []byte) string { return base64.RawStdEncoding.EncodeToString(sum) }

// randomBytes are enough of them for a salt or a key.
func randomBytes() []byte {
	out := make([]byte, 32)
	rand.Read(out) // never fails
	return out
}
