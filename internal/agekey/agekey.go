// Package agekey reads the private keys that age decrypts with. https://age-encryption.org/v1
package agekey

import (
	"bytes"
	"errors"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"
)

// Parse parses the content of a file of private keys: keys of age-keygen, or one SSH key
// without a passphrase. Unlike those of age, its errors never quote the data, which may be a
// key.
func Parse(data []byte) ([]age.Identity, error) {
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		identities, err := age.ParseIdentities(bytes.NewReader(data))
		if err != nil {
			return nil, errors.New("it has no age private key, as age-keygen creates them")
		}
		return identities, nil
	}
	identity, err := agessh.ParseIdentity(data)
	if errors.As(err, new(*ssh.PassphraseMissingError)) {
		return nil, errors.New("the SSH key has a passphrase, and deployer can't ask for it: use a key without one, or an age identity")
	}
	if err != nil {
		return nil, errors.New("it is not an SSH key that age can use")
	}
	return []age.Identity{identity}, nil
}
