package apply_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deployer/internal/kube"
)

// unserved are answers of an API server that doesn't serve a kind.
var unserved = map[string]string{
	"no API server's answer": "404 page not found",
	"no object is named": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,` +
		`"message":"the server could not find the requested resource","details":{}}`,
}

// answering answers the first n requests about configmaps/b like that.
func (s *story) answering(method string, n int32, body string) *atomic.Int32 {
	var asked atomic.Int32
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if r.Method != method || !strings.HasSuffix(r.URL.Path, "/configmaps/b") || asked.Add(1) > n {
			return nil, nil
		}
		return answered(r, http.StatusNotFound, body), nil
	}})
	return &asked
}

// TestUnservedIsNotAbsent fails if an object counts as gone because an API server answers that it doesn't
// serve the kind: an orphan would be forgotten, and an uninstall would delete the records of what it leaves.
func TestUnservedIsNotAbsent(t *testing.T) {
	t.Parallel()
	for name, body := range unserved {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.deploy(config("a") + config("b"))
			s.marks = nil
			s.answering(http.MethodGet, 2, body)
			s.expect(s.plan(config("a")), "delete ConfigMap/b") // it passes
			s.opts.RetryTimeout = time.Second
			for _, chart := range []string{config("a"), config("a") + config("b"), ""} {
				s.answering(http.MethodGet, 1000, body)
				var unknown *kube.UnservedError
				if err := s.refuse(chart); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "ConfigMap/"+s.ns+"/b") {
					t.Errorf("%q: %v", chart, err)
				}
				_, err := s.cluster.Get(t.Context(), kube.ID{Kind: "ConfigMap", Namespace: s.ns, Name: "b"})
				if !errors.As(err, &unknown) {
					t.Errorf("Get: %v", err)
				}
			}
		})
	}
}

// TestUnservedIsNotDeleted is the same for a deletion.
func TestUnservedIsNotDeleted(t *testing.T) {
	s := begin(t)
	s.deploy(config("a") + config("b"))
	asked := s.answering(http.MethodDelete, 2, unserved["no API server's answer"])
	s.run(s.plan(config("a")))
	if asked.Load() < 3 || s.get("v1", "ConfigMap", "b") != nil {
		t.Errorf("asked %d times, and it is there", asked.Load())
	}
}

// TestObjectsOfAVanishedKindAreAbsent: a definition that is deleted after the kinds were read took its
// objects with it.
func TestObjectsOfAVanishedKindAreAbsent(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	s.deploy(config("a") + foo(0, "size: 5"))
	s.crds, s.marks = "", nil
	if err := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition").Delete(bg, "foos0."+s.ns+".example.com", deleteNow); err != nil {
		t.Fatal(err)
	}
	s.eventually("the kind is gone", func() error {
		fresh := kube.New(s.c.Config(), s.ns)
		if live, err := fresh.Get(t.Context(), kube.ID{Group: s.ns + ".example.com", Kind: "Foo0", Namespace: s.ns, Name: "f"}); err != nil || live != nil {
			return errors.New("not yet")
		}
		return nil
	})
	s.expect(s.plan(config("a")))
	s.expect(s.plan(""), "delete ConfigMap/a")
}
