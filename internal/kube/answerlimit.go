package kube

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer is more than any answer that is read as a whole needs: lists are read in pages. An answer without end would take all
// memory of the machine.
const maxAnswer = 256 << 20

// limitAnswer makes reading more than maxAnswer of an answer an error, except from watches and logs.
func limitAnswer(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	if err == nil && !lastsLong(r) && !strings.HasSuffix(r.URL.Path, "/log") {
		answer.Body = &limitedBody{ReadCloser: answer.Body, left: maxAnswer, request: r.Method + " " + r.URL.Path}
	}
	return answer, err
}

type limitedBody struct {
	io.ReadCloser
	left    int
	request string
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the API server answers %s with more than %d MiB", b.request, maxAnswer>>20)
	}
	return n, err
}
