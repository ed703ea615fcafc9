package e2e

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// minorPlus adds a + to the minor version that the API server states, as that of EKS does.
type minorPlus struct{ http.RoundTripper }

func (m minorPlus) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := m.RoundTripper.RoundTrip(r)
	if err != nil || r.URL.Path != "/version" {
		return answer, err
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	data = bytes.Replace(data, []byte(`"gitVersion"`), []byte(`"minor": "36+", "gitVersion"`), 1) // the last one counts
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// TestChartsSeeTheMinorVersionThatTheServerStates: as with Helm, it isn't made of the whole version.
func TestChartsSeeTheMinorVersionThatTheServerStates(t *testing.T) {
	w := newWorld(t)
	p := w.proxied()
	p.transport = minorPlus{p.transport}
	chart := w.chart(configMap("a", "{{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion }}"))
	theirs, ours := w.helm("template", "x", chart, "--validate"), w.ok("template", "x", chart, "--validate")
	if !strings.Contains(theirs.out, "1.36+ v1.") || ours.out != theirs.out {
		t.Errorf("rendered:\n%s\nwant, as by helm:\n%s", ours.out, theirs.out)
	}
}
