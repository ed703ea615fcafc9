package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"deployer/internal/kubetest"
)

// testKey is where a script keeps its test.
type testKey struct{}

// hasCluster reports whether scripts with [cluster] run: with a cluster that the
// environment names, or one that package kubetest can start.
func hasCluster() bool {
	if testing.Short() {
		return false
	}
	if os.Getenv("DEPLOYER_TEST_KUBECONFIG") != "" || os.Getenv("DEPLOYER_TEST_REQUIRE_CLUSTER") != "" {
		return true
	}
	_, err := os.Stat("../../bin/devcluster")
	return err == nil
}

// useCluster is the command cluster of a script: KUBECONFIG is a cluster and a
// namespace of its own in it, whose name is in $NAMESPACE.
func useCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: cluster")
	}
	t := ts.Value(testKey{}).(testing.TB)
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ts.Setenv("NAMESPACE", namespace)
	ts.Setenv("KUBECONFIG", c.Kubeconfig(t, namespace))
}

// makeAccount is the command account of a script: a user who may look at
// releases in $NAMESPACE. Its name is in $ACCOUNT, its token in $TOKEN; the API
// server's address is in $APIHOST and $APIPORT, who signed its certificate in
// ca.crt.
func makeAccount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: account")
	}
	t := ts.Value(testKey{}).(testing.TB)
	c := kubetest.Start(t)
	user := c.User(t, ts.Getenv("NAMESPACE"), kubetest.Rule("", "list,get", "secrets"))
	config := user.Config()
	server, err := url.Parse(config.Host)
	ts.Check(err)
	ca := config.CAData
	if len(ca) == 0 {
		ca, err = os.ReadFile(config.CAFile)
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("ca.crt"), ca, 0o600))
	for name, value := range map[string]string{
		"ACCOUNT": user.Name, "TOKEN": config.BearerToken, "APIHOST": server.Hostname(), "APIPORT": server.Port(),
	} {
		ts.Setenv(name, value)
	}
}

// startProxy is the command proxy of a script: an HTTP proxy at $NAME that
// knows no names, but that every connection is for the machine at $APIHOST.
func startProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: proxy NAME")
	}
	to := ts.Getenv("APIHOST")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, port, err := net.SplitHostPort(q.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		tunnel(w, net.JoinHostPort(to, port))
	}))
	ts.Defer(proxy.CloseClientConnections)
	ts.Setenv(args[0], proxy.URL)
}

// tunnel connects the client of an answer with a server.
func tunnel(w http.ResponseWriter, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		server.Close()
		return
	}
	go func() {
		defer server.Close()
		io.Copy(server, client) // ends when either side does
	}()
	go func() {
		defer client.Close()
		io.Copy(client, server)
	}()
}
