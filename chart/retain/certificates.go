package retain

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
	"strings"
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

// pemLabel is what is fixed in a PEM block: its type, and the subject of a certificate.
func pemLabel(text string) string {
	block, _ := pem.Decode([]byte(text + "\n"))
	if block == nil {
		return ""
	}
	if c := readCertificate(text); c != nil {
		return block.Type + " " + c.Subject.String()
	}
	return block.Type
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

// linkCertificates makes sets of what belongs together: keys and their certificates, a CA and the certificates that it has signed.
func linkCertificates(values []*value) {
	var certs, keys []*value
	for _, v := range values {
		if !strings.HasPrefix(strings.TrimSpace(v.text()), "-----BEGIN") {
			continue
		}
		if v.cert = readCertificate(v.text()); v.cert != nil {
			certs = append(certs, v)
		} else if v.key = readKey(v.text()); v.key != nil {
			keys = append(keys, v)
		}
	}
	for _, v := range slices.Concat(certs, keys) {
		v.set = &[]*value{v}
	}
	join := func(a, b *value) {
		if a.set == b.set {
			return
		}
		*a.set = append(*a.set, *b.set...)
		for _, v := range *b.set {
			v.set = a.set
		}
	}
	for _, v := range certs {
		for _, key := range keys {
			if publicKey(key.key.Public()) == publicKey(v.cert.PublicKey) {
				join(key, v)
			}
		}
		for _, ca := range certs {
			if ca != v && hasSigned(ca.cert, v.cert) {
				join(ca, v)
			}
		}
	}
}

// checkCertificates returns why a set with certificates can't be kept; empty if it can.
func (d *decider) checkCertificates(set []*value) string {
	recorded := 0
	for _, v := range set {
		if v.recorded != nil && v.set != nil {
			recorded++
			v.recordedCert, v.recordedKey = readCertificate(*v.recorded), readKey(*v.recorded)
		}
	}
	if recorded == 0 {
		return ""
	}
	for _, v := range set {
		if v.recorded == nil {
			return fmt.Sprintf("%s belongs to it and is new", d.where(v.places[0]))
		}
		if reason := v.certificateMismatch(); reason != "" {
			return fmt.Sprintf("%s: %s", d.where(v.places[0]), reason)
		}
	}
	if !chainsMatch(set) {
		return "its recorded parts don't match"
	}
	for _, v := range set {
		c := v.recordedCert
		if c == nil || !d.needsRenewal(c) {
			continue
		}
		text := fmt.Sprintf("certificate of %s expires on %s: renewed", d.idOf(v.places[0].owner), c.NotAfter.UTC().Format(time.DateOnly))
		if !slices.Contains(d.result.Warnings, text) {
			d.result.Warnings = append(d.result.Warnings, text)
		}
		return text
	}
	return ""
}

// needsRenewal reports whether a certificate has used two thirds of its life, or will have ended before the next upgrade.
func (d *decider) needsRenewal(c *x509.Certificate) bool {
	life := c.NotAfter.Sub(c.NotBefore)
	now := d.time()
	if now.Sub(c.NotBefore) >= life-life/3 {
		return true
	}
	return d.in.NextUpgrade != nil && now.Add(d.in.NextUpgrade(now)).After(c.NotAfter)
}

// certificateMismatch returns why a recorded certificate or key isn't what the chart asks for now; empty if it is.
func (v *value) certificateMismatch() string {
	if v.key != nil {
		switch {
		case v.recordedKey == nil:
			return "no private key is recorded"
		case keyKind(v.recordedKey.Public()) != keyKind(v.key.Public()):
			return "the kind of key has changed"
		}
		return ""
	}
	if v.recordedCert == nil {
		return "no certificate is recorded"
	}
	var rerendered []*x509.Certificate
	for _, text := range v.places[0].versions[1:] {
		rerendered = append(rerendered, readCertificate(text))
	}
	if trait := changedTrait(v.cert, rerendered, v.recordedCert); trait != "" {
		return "the " + trait + " of the certificate changed"
	}
	return ""
}

// chainsMatch reports whether the recorded keys and certificates belong together in the same way as the rendered ones.
func chainsMatch(set []*value) bool {
	for _, v := range set {
		if v.cert == nil {
			continue
		}
		for _, other := range set {
			switch {
			case other.key != nil && publicKey(other.key.Public()) == publicKey(v.cert.PublicKey):
				if publicKey(other.recordedKey.Public()) != publicKey(v.recordedCert.PublicKey) {
					return false
				}
			case other.cert != nil && other != v && hasSigned(other.cert, v.cert):
				if !hasSigned(other.recordedCert, v.recordedCert) {
					return false
				}
			}
		}
	}
	return true
}
