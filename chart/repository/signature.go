package repository

import (
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v3/pkg/downloader"
	"helm.sh/helm/v3/pkg/provenance"

	"deployer/chart"
)

// signatureText says in Helm's words, a line each, who signed a chart archive.
func signatureText(v *provenance.Verification) string {
	if v == nil || v.SignedBy == nil {
		return "Using Key With Fingerprint: \nChart Hash Verified: \n"
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(v.SignedBy.Identities)) {
		text += fmt.Sprintf("Signed by: %v\n", name)
	}
	return text + fmt.Sprintf("Using Key With Fingerprint: %X\nChart Hash Verified: %s\n", v.SignedBy.PrimaryKey.Fingerprint, v.FileHash)
}

// Verify checks a chart archive against the .prov file beside it and a
// keyring; an empty one means GnuPG's. It returns who signed it, in Helm's words.
func Verify(archive, keyring string) (string, error) {
	keyring, err := chart.Keyring(keyring)
	if err != nil {
		return "", err
	}
	v, err := downloader.VerifyChart(archive, keyring)
	if err != nil {
		return "", fmt.Errorf("verifying %s: %w", archive, err)
	}
	return signatureText(v), nil
}
