package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writePKI writes all keys and certificates of the cluster: its own authority
// with the API server's and the kubelet client's certificate, the authority for
// aggregated API servers, and the key of service account tokens.
func writePKI(l layout) error {
	ca, err := newAuthority(l, "ca", "devcluster")
	if err != nil {
		return err
	}
	err = ca.issue(l, "apiserver", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
	})
	if err != nil {
		return err
	}
	err = ca.issue(l, "kubelet-client", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	front, err := newAuthority(l, "front-proxy-ca", "devcluster-front-proxy")
	if err != nil {
		return err
	}
	err = front.issue(l, "front-proxy-client", &x509.Certificate{
		Subject:     pkix.Name{CommonName: frontProxyName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	_, err = newKey(l, "service-account")
	return err
}

// newAuthority writes NAME.crt and NAME.key of a new self-signed authority.
func newAuthority(l layout, name, subject string) (authority, error) {
	key, err := newKey(l, name)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: subject},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	cert, err := writeCertificate(l, name, template, authority{cert: template, key: key}, key)
	return authority{cert: cert, key: key}, err
}

// issue writes NAME.crt, signed by the authority, and NAME.key.
func (a authority) issue(l layout, name string, template *x509.Certificate) error {
	key, err := newKey(l, name)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("making the certificate %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.KeyUsage = x509.KeyUsageDigitalSignature
	_, err = writeCertificate(l, name, template, a, key)
	return err
}

func writeCertificate(l layout, name string, template *x509.Certificate, signer authority, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate %s: %w", name, err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(l.pki(name+".crt"), block, 0o600); err != nil {
		return nil, fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	return x509.ParseCertificate(der)
}

func newKey(l layout, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making the key %s: %w", name, err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(l.pki(name+".key"), block, 0o600); err != nil {
		return nil, fmt.Errorf("writing the key %s: %w", name, err)
	}
	return key, nil
}
