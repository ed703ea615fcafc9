package generated

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// readCertificate returns the certificate in a PEM block; nil if there is none.
func readCertificate(text string) *x509.Certificate {
	block, _ := pem.Decode([]byte(text + "\n"))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// readKey returns the private key in a PEM block; nil if there is none.
func readKey(text string) crypto.Signer {
	block, _ := pem.Decode([]byte(text + "\n"))
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer
		}
	}
	return nil
}

// publicKey is a public key in a form that can be compared.
func publicKey(key crypto.PublicKey) string {
	data, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return ""
	}
	return string(data)
}

// keyKind is the algorithm and size of a key.
func keyKind(key crypto.PublicKey) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return fmt.Sprintf("%T", key)
}

// hasSigned reports whether a CA has signed a certificate.
func hasSigned(ca, c *x509.Certificate) bool {
	return ca.IsCA && bytes.Equal(ca.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(ca) == nil
}

// A trait is something that a certificate says besides its serial number and times. If it is the same in
// all renderings, it comes from the chart.
type trait struct{ name, value string }

// certificateTraits returns the traits of a certificate. The first one that has changed is reported.
func certificateTraits(c *x509.Certificate) []trait {
	return []trait{
		{"subject", c.Subject.String()},
		{"names", fmt.Sprint(c.DNSNames, c.IPAddresses, c.EmailAddresses, c.URIs)},
		{"issuer", c.Issuer.String()},
		{"use", fmt.Sprint(c.IsCA, c.KeyUsage, c.ExtKeyUsage)},
		{"lifetime", c.NotAfter.Sub(c.NotBefore).Round(time.Hour).String()},
		{"kind of key", keyKind(c.PublicKey)},
		{"key", publicKey(c.PublicKey)},
		{"signer", string(c.AuthorityKeyId)},
	}
}

// changedTrait names a trait that comes from the chart, and that the recorded certificate doesn't have; empty
// if there is none.
func changedTrait(rendered *x509.Certificate, rerendered []*x509.Certificate, recorded *x509.Certificate) string {
	recordedTraits := certificateTraits(recorded)
	for i, trait := range certificateTraits(rendered) {
		differs := func(other *x509.Certificate) bool { return other == nil || certificateTraits(other)[i] != trait }
		if recordedTraits[i] != trait && !slices.ContainsFunc(rerendered, differs) {
			return trait.name
		}
	}
	return ""
}

// needsRenewal reports whether a certificate has used two thirds of its life.
func needsRenewal(c *x509.Certificate, now time.Time) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	return now.Sub(c.NotBefore) >= life-life/3
}
