package repository

import (
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v3/pkg/downloader"
	"helm.sh/helm/v3/pkg/provenance"

	"deployer/chart"
)

// A Signature says who signed a chart archive.
type Signature struct {
	Signers     []string // name, comment and address of each identity of the key
	Fingerprint string   // of the key, in capital hexadecimal digits
	Hash        string   // of the archive
}

func newSignature(v *provenance.Verification) *Signature {
	if v == nil || v.SignedBy == nil {
		return &Signature{}
	}
	return &Signature{
		Signers:     slices.Sorted(maps.Keys(v.SignedBy.Identities)),
		Fingerprint: fmt.Sprintf("%X", v.SignedBy.PrimaryKey.Fingerprint),
		Hash:        v.FileHash,
	}
}

// String is the signature in Helm's words, a line each.
func (s *Signature) String() string {
	text := ""
	for _, name := range s.Signers {
		text += fmt.Sprintf("Signed by: %v\n", name)
	}
	return text + fmt.Sprintf("Using Key With Fingerprint: %s\nChart Hash Verified: %s\n", s.Fingerprint, s.Hash)
}

// Verify checks a chart archive against the .prov file beside it and a
// keyring; an empty one means GnuPG's.
func Verify(archive, keyring string) (*Signature, error) {
	keyring, err := chart.Keyring(keyring)
	if err != nil {
		return nil, err
	}
	v, err := downloader.VerifyChart(archive, keyring)
	if err != nil {
		return nil, fmt.Errorf("verifying %s: %w", archive, err)
	}
	return newSignature(v), nil
}
