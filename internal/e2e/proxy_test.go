package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// A moment is when at a call something happens to the program.
type moment string

const (
	before moment = "before it is sent"
	after  moment = "after it is committed, before its answer"
)

// A fate is what happens to a program at the first call that is its time.
type fate struct {
	at   func(n int, c call) bool // n counts calls from 1; called once for each
	when moment
	do   func()
	dies bool // nothing of it is heard any more
}

// A fault says what is answered to a call that is not sent: a code of HTTP, or
// hangUp; 0 lets it through. n counts calls from 1.
type fault func(n int, c call) int

// hangUp is no answer at all.
const hangUp = -1

// A call is one request to the API server that came through a proxy.
type call struct {
	method string
	path   string // with the query

	authorization string // the header
	code          int    // 0: it was never sent
}

func (c call) String() string { return fmt.Sprintf("%s %s %d", c.method, c.path, c.code) }

// write reports whether the call was to change something.
func (c call) write() bool {
	switch c.method {
	case http.MethodGet, http.MethodHead:
		return false
	}
	return !strings.Contains(c.path, "dryRun=All") && !strings.Contains(c.path, "selfsubject")
}

// created reports whether the call has made an object of that resource.
func (c call) created(resource string) bool {
	path, _, _ := strings.Cut(c.path, "?")
	return c.method == http.MethodPost && c.write() && c.code == http.StatusCreated && strings.HasSuffix(path, "/"+resource)
}

// A proxy stands on the loopback between a program and the API server. It sees
// every call, and is the program's fate at one of them.
type proxy struct {
	server    *httptest.Server
	target    *url.URL
	transport http.RoundTripper

	mu    sync.Mutex
	calls []call
	jobs  map[string]int // the names of hooks to how often they were made
	fate  *fate          // nil once it has struck
	fault fault          // nil: all calls are answered by the server
	dead  bool
	busy  sync.WaitGroup // calls on their way
}

// proxied gives the world a proxy, and makes deployer and helm use it.
func (w *world) proxied() *proxy {
	w.Helper()
	config := w.user.Config()
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		w.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.Fatal(err)
	}
	p := &proxy{target: target, transport: transport, jobs: map[string]int{}}
	p.server = httptest.NewServer(p)
	w.Cleanup(func() {
		_ = p.server.Config.Close() // also what leave has opened
		p.server.Close()
	})
	w.kubeconfig = w.kubeconfigFor(p.server.URL)
	return p
}

// kubeconfigFor writes a kubeconfig for a server that asks nobody who they are.
func (w *world) kubeconfigFor(server string) string {
	w.Helper()
	return w.kubeconfigAs(server, api.NewAuthInfo())
}

// kubeconfigAs writes a kubeconfig for a user of a server.
func (w *world) kubeconfigAs(server string, user *api.AuthInfo) string {
	w.Helper()
	config := api.NewConfig()
	config.Clusters["proxy"] = &api.Cluster{Server: server, InsecureSkipTLSVerify: true}
	config.Contexts["proxy"] = &api.Context{Cluster: "proxy", AuthInfo: "user", Namespace: w.ns}
	config.AuthInfos["user"] = user
	config.CurrentContext = "proxy"
	path := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.Fatal(err)
	}
	return path
}

// ServeHTTP lets a call through, unless the program dies at it.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program has gone
	}
	n, struck := p.arrived(r)
	defer p.busy.Done()
	if struck != nil && struck.when == before {
		struck.do()
	}
	if p.gone() {
		panic(http.ErrAbortHandler) // without an answer
	}
	if code := p.refusal(n, r); code == hangUp {
		panic(http.ErrAbortHandler)
	} else if code != 0 {
		p.answered(n, body, code)
		refuse(w, code)
		return
	}
	response, err := p.send(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	p.answered(n, body, response.StatusCode)
	if struck != nil && struck.when == after {
		if struck.dies {
			p.die()
		}
		struck.do()
	}
	if p.gone() {
		panic(http.ErrAbortHandler)
	}
	p.pass(w, response)
}

// arrived counts a call, and gives what happens at it, if anything does.
func (p *proxy) arrived(r *http.Request) (n int, struck *fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy.Add(1)
	if p.dead {
		return 0, nil
	}
	c := call{method: r.Method, path: r.URL.RequestURI()}
	p.calls = append(p.calls, c)
	n = len(p.calls)
	if p.fate == nil || !p.fate.at(n, c) {
		return n, nil
	}
	struck, p.fate = p.fate, nil
	// What comes at the same time isn't sent any more either.
	p.dead = struck.dies && struck.when == before
	return n, struck
}

func (p *proxy) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *proxy) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// send forwards a call. What has been sent is carried out, whatever becomes of
// the program; what only looks ends with it.
func (p *proxy) send(r *http.Request, body []byte) (*http.Response, error) {
	ctx := r.Context()
	if r.Method != http.MethodGet {
		ctx = context.WithoutCancel(ctx)
	}
	out := r.Clone(ctx)
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host, out.Host = p.target.Scheme, p.target.Host, p.target.Host
	out.Header.Del("Authorization") // the proxy's own counts
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return p.transport.RoundTrip(out)
}

// leave lets nobody reach the proxy for a while: connections end, and new ones are refused.
func (p *proxy) leave(d time.Duration) {
	address := p.server.Listener.Addr().String()
	p.server.Listener.Close()
	go p.server.CloseClientConnections() // which waits for the calls under way
	time.AfterFunc(d, func() {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			panic(err)
		}
		_ = p.server.Config.Serve(listener) // until the server is closed
	})
}

// answered notes what became of a call.
func (p *proxy) answered(n int, body []byte, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[n-1].code = code
	if p.calls[n-1].created("jobs") {
		p.jobs[jobName(body)]++
	}
}

// pass gives an answer to the program as it comes.
func (p *proxy) pass(w http.ResponseWriter, response *http.Response) {
	for key, values := range response.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(response.StatusCode)
	flusher, _ := w.(http.Flusher)
	flusher.Flush() // a watch that has nothing to tell yet
	chunk := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(chunk)
		if _, werr := w.Write(chunk[:n]); werr != nil || err != nil {
			return
		}
		flusher.Flush()
	}
}

// jobName is the name in the manifest of an object.
func jobName(body []byte) string {
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &obj); err != nil {
		return err.Error()
	}
	return obj.Name
}

// arm gives the program a fate, or none, and forgets what was seen so far.
func (p *proxy) arm(f *fate) {
	p.busy.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.jobs = nil, map[string]int{}
	p.fate, p.dead = f, false
}

// disarm waits until nothing of a dead program is on its way, and lets all calls
// through from then on.
func (p *proxy) disarm() {
	p.busy.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fate, p.dead = nil, false
}

// seen are the calls since arm.
func (p *proxy) seen() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// made says how often hook Jobs were created since arm.
func (p *proxy) made() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.jobs)
}

// failing makes calls fail, until it is told nil.
func (p *proxy) failing(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

func (p *proxy) refusal(n int, r *http.Request) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		return 0
	}
	return p.fault(n, call{method: r.Method, path: r.URL.RequestURI(), authorization: r.Header.Get("Authorization")})
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, code int) {
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusNotFound: metav1.StatusReasonNotFound,
	}[code]
	text, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: "refused by the test", Reason: reason, Code: int32(code),
	})
	if err != nil {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // whoever has gone doesn't want it
}
