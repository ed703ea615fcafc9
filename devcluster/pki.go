package main

import (
	"crypto/x509"
	"fmt"
	"net"

	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// writePKI writes the keys and certificates of the cluster: its authority, ca, whose key also signs the tokens of service
// accounts, and the one certificate that this has signed, apiserver, which clients and kubelets know the API server by.
func writePKI(l layout) error {
	ca, caKey, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
		EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
		Config:              cert.Config{CommonName: "devcluster"},
	})
	if err != nil {
		return fmt.Errorf("making the cluster's authority: %w", err)
	}
	if err := pkiutil.WriteCertAndKey(l.pki(""), "ca", ca, caKey); err != nil {
		return fmt.Errorf("writing the cluster's authority: %w", err)
	}
	server, key, err := pkiutil.NewCertAndKey(ca, caKey, &pkiutil.CertConfig{
		EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
		Config: cert.Config{
			CommonName:   "kube-apiserver",
			Organization: []string{"system:masters"}, // to kubelets
			Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			AltNames: cert.AltNames{
				DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
				IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
			},
		},
	})
	if err != nil {
		return fmt.Errorf("making the API server's certificate: %w", err)
	}
	return pkiutil.WriteCertAndKey(l.pki(""), "apiserver", server, key)
}
