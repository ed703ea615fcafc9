package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// serve is the command serve of a script: a web server for a directory.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	args, secure := cutFlag(args, "-tls")
	if neg || len(args) != 2 && len(args) != 4 {
		ts.Fatalf("usage: serve [-tls] NAME DIR [USER PASSWORD]")
	}
	ts.Setenv(args[0], start(ts, http.FileServer(http.Dir(ts.MkAbs(args[1]))), configOf(ts, secure, false), args[2:]))
}

// serveRegistry is the command registry of a script: an OCI registry.
func serveRegistry(ts *testscript.TestScript, neg bool, args []string) {
	args, secure := cutFlag(args, "-tls")
	args, public := cutFlag(args, "-https")
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: registry [-tls|-https] NAME [USER PASSWORD]")
	}
	url := start(ts, registry.New(registry.Logger(log.New(io.Discard, "", 0))), configOf(ts, secure, public), args[1:])
	_, host, _ := strings.Cut(url, "://")
	ts.Setenv(args[0], host)
}

func cutFlag(args []string, flag string) ([]string, bool) {
	if len(args) > 0 && args[0] == flag {
		return args[1:], true
	}
	return args, false
}

// start runs a server until the script ends and returns its URL.
func start(ts *testscript.TestScript, handler http.Handler, config *tls.Config, login []string) string {
	if len(login) == 2 {
		handler = onlyFor(login[0], login[1], handler)
	}
	server := httptest.NewUnstartedServer(handler)
	ts.Defer(server.Close)
	if config == nil {
		server.Start()
		return server.URL
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = config
	server.StartTLS()
	return server.URL
}

// configOf is that of a server which ca.pem knows, nil of one without TLS. A
// secure one lets in who has client.pem and client.key, a public one everybody:
// the files are in the script's directory.
func configOf(ts *testscript.TestScript, secure, public bool) *tls.Config {
	if !secure && !public {
		return nil
	}
	pair := ownCertificate(ts)
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if secure {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AddCert(pair.Leaf)
	}
	return config
}

// ownCertificate makes a certificate that signs itself, a server's and a
// client's, or takes the one that is there already.
func ownCertificate(ts *testscript.TestScript) tls.Certificate {
	paths := []string{ts.MkAbs("client.pem"), ts.MkAbs("client.key")}
	if pair, err := tls.LoadX509KeyPair(paths[0], paths[1]); err == nil {
		return pair
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, data := range map[string][]byte{
		paths[0]: certificate, ts.MkAbs("ca.pem"): certificate,
		paths[1]: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		ts.Check(os.WriteFile(path, data, 0o600))
	}
	pair, err := tls.LoadX509KeyPair(paths[0], paths[1])
	ts.Check(err)
	return pair
}

// onlyFor asks for credentials.
func onlyFor(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if u, p, _ := q.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, q)
	})
}
