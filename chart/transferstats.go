package chart

import (
	"io"
	"net/http"
	"sync/atomic"
)

// TransferStats counts downloaded and uploaded bytes. The zero value is ready to use; several
// transfers may share one.
type TransferStats struct{ moved, announced atomic.Int64 }

// Bytes returns how many bytes have been transferred, and how many Content-Length headers
// have announced. The latter are fewer when a server sends no Content-Length.
func (t *TransferStats) Bytes() (moved, announced int64) { return t.moved.Load(), t.announced.Load() }

// Reset sets both counts to zero.
func (t *TransferStats) Reset() {
	t.moved.Store(0)
	t.announced.Store(0)
}

// through returns a body whose bytes are counted when they are read.
func (t *TransferStats) through(body io.ReadCloser, length int64) io.ReadCloser {
	t.announced.Add(max(length, 0))
	return counted{body, t}
}

type counted struct {
	io.ReadCloser
	stats *TransferStats
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.stats.moved.Add(int64(n))
	return n, err
}

// count returns a transport whose bodies are counted; nil counts nothing.
func (t *TransferStats) count(transport http.RoundTripper) http.RoundTripper {
	if t == nil {
		return transport
	}
	return countingTransport{transport, t}
}

type countingTransport struct {
	http.RoundTripper
	stats *TransferStats
}

func (t countingTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Body != nil && q.Body != http.NoBody {
		sent := *q // a transport must not change the request
		sent.Body = t.stats.through(q.Body, q.ContentLength)
		q = &sent
	}
	answer, err := t.RoundTripper.RoundTrip(q)
	if err == nil && q.Method != http.MethodHead { // the Content-Length of HEAD is that of GET
		answer.Body = t.stats.through(answer.Body, answer.ContentLength)
	}
	return answer, err
}
