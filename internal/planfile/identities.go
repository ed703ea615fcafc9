package planfile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"

	"deployer/internal/agekey"
)

// Recipients reads public keys: age1... of age, ssh-ed25519 and ssh-rsa of SSH.
func Recipients(keys []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, text := range keys {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "ssh-") {
			r, err := agessh.ParseRecipient(text)
			if err != nil {
				return nil, fmt.Errorf("recipient %q: %w", text, err)
			}
			out = append(out, r)
			continue
		}
		if strings.HasPrefix(text, "AGE-SECRET-KEY-") {
			return nil, errors.New("a recipient is a public key, age1...; this is a private key, which must stay secret")
		}
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("recipient %q is neither an age nor an SSH public key: %w", text, err)
		}
		out = append(out, some...)
	}
	return out, nil
}

// Identities reads files of private keys: those of age-keygen, and SSH keys
// without a passphrase.
func Identities(paths []string) ([]age.Identity, error) {
	var out []age.Identity
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the identity: %w", err)
		}
		some, err := agekey.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("reading the identity %s: %w", path, err)
		}
		out = append(out, some...)
	}
	return out, nil
}
