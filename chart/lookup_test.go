package chart

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"deployer/internal/kube"
)

// answers is an API server by table: path to JSON, or to a status code.
type answers struct {
	mu    sync.Mutex
	asked map[string]int
	hold  chan struct{} // when set, /held waits for it
}

var apiAnswers = map[string]string{
	"/version":                             `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
	"/api":                                 `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":                                `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1":                              `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get","list"]},{"name":"nodes","namespaced":false,"kind":"Node","verbs":["get"]}]}`,
	"/api/v1/namespaces/store/secrets/db":  `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db","namespace":"store"},"data":{"password":"aHVudGVyMg=="}}`,
	"/api/v1/namespaces/store/secrets":     `{"apiVersion":"v1","kind":"SecretList","metadata":{},"items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"}}]}`,
	"/api/v1/secrets":                      `{"apiVersion":"v1","kind":"SecretList","metadata":{},"items":[]}`,
	"/api/v1/nodes/n1":                     `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`,
	"/api/v1/namespaces/hidden/secrets/db": `403`,
	"/api/v1/namespaces/hidden/secrets":    `403`,
	"/api/v1/namespaces/broken/secrets/db": `500`,
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked[r.URL.Path]++
	a.mu.Unlock()
	if a.hold != nil && strings.HasSuffix(r.URL.Path, "/held") {
		<-a.hold
	}
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told so","reason":"` + reason + `","code":` + strconv.Itoa(code) + `}`))
	}
	switch answer := apiAnswers[r.URL.Path]; answer {
	case "":
		fail(http.StatusNotFound, "NotFound")
	case "403":
		fail(http.StatusForbidden, "Forbidden")
	case "500":
		fail(http.StatusInternalServerError, "InternalError")
	default:
		w.Write([]byte(answer))
	}
}

func apiServer(t *testing.T) (*kube.Cluster, *answers) {
	a := &answers{asked: map[string]int{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return kube.New(&rest.Config{Host: server.URL}, "store"), a
}

func TestLookupFinds(t *testing.T) {
	for call, want := range map[string]string{
		`(lookup "v1" "Secret" "store" "db").data.password`:                  `"aHVudGVyMg=="`,
		`(index (lookup "v1" "Secret" "store" "").items 0).metadata.name`:    `"db"`,
		`lookup "v1" "Secret" "store" "none"`:                                `{}`,
		`len (lookup "v1" "Secret" "" "").items`:                             `0`,
		`(lookup "v1" "Node" "" "n1").metadata.name`:                         `"n1"`,
		`(lookup "v1" "Node" "ignored" "n1").metadata.name`:                  `"n1"`,
		`lookup "example.com/v1" "Widget" "store" "w"`:                       `{}`,
		`lookup "example.com/v1" "Widget" "store" ""`:                        `{}`,
		`lookup "v1" "Widget" "" "w"`:                                        `{}`,
		`.Capabilities.APIVersions.Has "v1/Secret"`:                          `true`,
		`list (lookup "v1" "Secret" "a" "b") (lookup "v1" "Secret" "c" "d")`: `[{},{}]`,
	} {
		for _, dns := range []bool{false, true} {
			if dns && strings.Contains(call, "example.com") {
				continue // that way is Helm's own, which fails when the group isn't served
			}
			cluster, api := apiServer(t)
			server, err := cluster.ServerInfo(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			r, err := render(t, map[string]string{"templates/t.yaml": "v: {{ " + call + " | toJson }}"}, Input{Lookup: Lookup{Cluster: cluster}, Server: server, DNS: dns})
			if err != nil {
				t.Errorf("%s: %v", call, err)
				continue
			}
			if !strings.HasSuffix(r.Manifest, "v: "+want+"\n") {
				t.Errorf("%s gives %s, want %s", call, r.Manifest, want)
			}
			if n := api.asked["/api/v1"]; !dns && n != 1 {
				t.Errorf("%s asked for the kinds %d times", call, n)
			}
		}
	}
}

// Not knowing is no answer: a chart would make a new password of it.
func TestLookupFailsWhenTheServerDoesNotAnswer(t *testing.T) {
	for call, want := range map[string]string{
		`lookup "v1" "Secret" "hidden" "db"`: "reading Secret/hidden/db from the cluster: ",
		`lookup "v1" "Secret" "hidden" ""`:   "listing Secret in the cluster: ",
		`lookup "v1" "Secret" "broken" "db"`: "reading Secret/broken/db from the cluster: ",
	} {
		cluster, _ := apiServer(t)
		_, err := render(t, map[string]string{"templates/t.yaml": "v: {{ " + call + " }}"}, Input{Lookup: Lookup{Cluster: cluster}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
		if strings.Contains(call, "hidden") && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v isn't known as forbidden", call, err)
		}
	}
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	cluster := kube.New(&rest.Config{Host: down.URL}, "store")
	_, err := render(t, map[string]string{"templates/t.yaml": `{{ lookup "v1" "Secret" "a" "b" }}`}, Input{Lookup: Lookup{Cluster: cluster}})
	if err == nil {
		t.Error("a cluster that is down answers")
	}
}

func TestLookupEndsWithItsContext(t *testing.T) {
	for _, dns := range []bool{false, true} {
		cluster, api := apiServer(t)
		api.hold = make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		c := load(t, map[string]string{"templates/t.yaml": `{{ lookup "v1" "Secret" "store" "held" }}`})
		go func() {
			for ctx.Err() == nil {
				api.mu.Lock()
				if api.asked["/api/v1/namespaces/store/secrets/held"] > 0 {
					cancel()
				}
				api.mu.Unlock()
			}
		}()
		_, err := c.Render(ctx, Input{Release: "shop", Lookup: Lookup{Cluster: cluster}, DNS: dns})
		close(api.hold)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}
