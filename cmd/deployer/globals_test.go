package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadingEnds: a server that begins to answer and never ends holds nobody up for ever.
func TestReadingEnds(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":`))
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\nusers: [{name: u, user: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"list", "list -A", "history x", "status x", "status x --show-resources", "explain x deployment/x",
		"get all x", "get manifest x", "get hooks x", "get notes x", "get values x", "get metadata x",
	} {
		t.Run(line, func(t *testing.T) {
			var out, errOut bytes.Buffer
			args := append([]string{"deployer", "--kubeconfig", kubeconfig}, strings.Fields(line)...)
			code := execute(t.Context(), append(args, "--timeout", "200ms"), strings.NewReader(""), &out, &errOut)
			if code != 1 || !strings.Contains(errOut.String(), "reading from the cluster took more than 200ms") {
				t.Errorf("exit code %d, stderr:\n%s", code, &errOut)
			}
		})
	}
}
