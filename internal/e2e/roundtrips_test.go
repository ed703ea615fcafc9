package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A farServer is an API server so far away that all requests that are made at once arrive before
// the first of them is answered. It counts how many wait for others.
type farServer struct {
	near http.Handler

	mu       sync.Mutex
	answered int      // the longest chain among the requests that were answered
	chain    []string // the requests, each with its place in the chain
}

// distance is how long each answer takes. A slow machine can only make a chain longer.
const distance = 150 * time.Millisecond

// far makes deployer use a server that is far away.
func (w *world) far() *farServer {
	w.Helper()
	f := &farServer{near: w.proxied()}
	server := httptest.NewServer(f)
	w.Cleanup(server.Close)
	w.kubeconfig = w.kubeconfigFor(server.URL)
	return f
}

func (f *farServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	place := f.answered + 1
	f.chain = append(f.chain, fmt.Sprintf("%d %s %s", place, r.Method, r.URL.RequestURI()))
	f.mu.Unlock()
	select {
	case <-time.After(distance):
	case <-r.Context().Done():
	}
	f.mu.Lock()
	f.answered = max(f.answered, place)
	f.mu.Unlock()
	f.near.ServeHTTP(w, r)
}

// connecting are the round trips before the first request: those of TCP and TLS.
const connecting = 2

// roundTrips is the shortest chain of requests, with connecting, of as many runs as it takes to have
// at most wanted ones, and of ten at most.
func (f *farServer) roundTrips(wanted int, run func()) (trips int, chain string) {
	for try := 0; try < 10 && (try == 0 || trips > wanted); try++ {
		f.mu.Lock()
		f.answered, f.chain = 0, nil
		f.mu.Unlock()
		run()
		f.mu.Lock()
		if n := f.answered + connecting; trips == 0 || n < trips {
			trips, chain = n, strings.Join(f.chain, "\n")
		}
		f.mu.Unlock()
	}
	return trips, chain
}

// What doesn't depend on each other is asked at once: far from the cluster a command takes
// as long as its longest chain of requests.
func TestRoundTrips(t *testing.T) {
	w := newWorld(t)
	var objects []string
	for i := range 10 {
		name := fmt.Sprint("o-", i)
		objects = append(objects, configMap(name, "{{ .Values.v }}"),
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+name+"}\n",
			"apiVersion: v1\nkind: Service\nmetadata: {name: "+name+"}\nspec: {type: ClusterIP, selector: {app: x}, ports: [{port: 80}]}\n",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: "+name+"}\nrules: []\n")
	}
	w.dropCRD("widgets." + w.unique() + ".deployer.io")
	chart := w.chartOf(map[string]string{
		"values.yaml":            "v: a\n",
		"crds/widgets.yaml":      widgetCRD(w.unique()),
		"templates/objects.yaml": strings.Join(objects, "---\n"),
	})
	w.ok("install", "x", chart)
	w.ok("upgrade", "x", chart)
	f := w.far()
	for _, c := range []struct {
		name string
		most int
		args []string
	}{
		{"status", 3, []string{"status", "x"}},
		{"history", 3, []string{"history", "x"}},
		{"plan of no change", 4, []string{"plan", "x", chart}},
		{"plan of a change", 6, []string{"plan", "x", chart, "--set", "v=b"}},
		{"upgrade that changes nothing", 11, []string{"upgrade", "x", chart}},
	} {
		trips, chain := f.roundTrips(c.most, func() { w.exitsOneOf([]int{0, 2}, c.args...) })
		t.Logf("%s: %d round trips", c.name, trips)
		if trips > c.most {
			t.Errorf("%s takes %d round trips, want %d at most:\n%s", c.name, trips, c.most, chain)
		}
	}
}

func (w *world) exitsOneOf(codes []int, args ...string) {
	w.Helper()
	if r := w.try(deployerBinary, args...); !slices.Contains(codes, r.code) {
		w.Fatalf("want exit code %v:\n%s", codes, r)
	}
}

// A chart that generates something is rendered twice at once. Both renderings have to see the same
// cluster: what they look up is read once.
func TestRenderingsAtOnceLookUpTheSame(t *testing.T) {
	w := newWorld(t)
	chart := w.chartOf(map[string]string{
		"templates/secret.yaml": `{{- $seed := lookup "v1" "ConfigMap" "kube-system" "extension-apiserver-authentication" }}
apiVersion: v1
kind: Secret
metadata: {name: secret, annotations: {seed: {{ dig "metadata" "name" "none" $seed }}}}
stringData: {password: {{ randAlphaNum 20 }}}
`,
	})
	w.ok("install", "x", chart)
	w.ok("upgrade", "x", chart) // which records what is generated
	f := w.far()
	w.ok("upgrade", "x", chart)
	reads := slices.DeleteFunc(slices.Clone(f.chain), func(request string) bool {
		return !strings.Contains(request, "GET /api/v1/namespaces/kube-system/configmaps/")
	})
	if len(reads) != 1 {
		t.Errorf("the object was looked up %d times, want once:\n%s", len(reads), strings.Join(f.chain, "\n"))
	}
}
