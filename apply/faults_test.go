package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// faulty hands requests on and lets some of them go wrong.
type faulty struct {
	next   http.RoundTripper
	before func(*http.Request) (*http.Response, error) // instead of the server's answer; nil, nil hands on
	after  func(*http.Request, *http.Response) error   // loses the answer

	replace func(r *http.Request, body []byte) []byte // what the server says
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.before != nil {
		if resp, err := f.before(r); resp != nil || err != nil {
			return resp, err
		}
	}
	resp, err := f.next.RoundTrip(r)
	if err == nil && f.replace != nil && r.Method == http.MethodGet && !strings.Contains(r.URL.RawQuery, "watch") {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		body = f.replace(r, body)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
	}
	if err == nil && f.after != nil {
		if lost := f.after(r, resp); lost != nil {
			resp.Body.Close()
			return nil, lost
		}
	}
	return resp, err
}

func (s *story) through(f *faulty) {
	config := s.c.Config()
	config.UserAgent = s.agent
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		f.next = next
		return f
	}
	s.cluster = kube.New(config, s.ns)
}

func real(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "dryRun")
}

// Each write is committed once and its answer lost.
func TestLostAnswers(t *testing.T) {
	s := begin(t)
	var mu sync.Mutex
	lost := map[string]bool{}
	s.through(&faulty{after: func(r *http.Request, _ *http.Response) error {
		mu.Lock()
		defer mu.Unlock()
		key := r.Method + r.URL.Path
		if !real(r) || lost[key] {
			return nil
		}
		lost[key] = true
		return fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)
	}})
	p := s.deploy(many)
	for c := range p.Changes() {
		if c.Action != decide.Create {
			t.Errorf("%s %s", c.Action, c.ID)
		}
	}
	lost = map[string]bool{}
	s.deploy(strings.Replace(strings.Replace(many, "nginx:1", "nginx:2", 1), "c:1", "c:2", 2))
	lost = map[string]bool{}
	first := s.mustHook(migration)
	if got := s.get("batch/v1", "Job", "migrate").GetUID(); got != first.GetUID() {
		t.Errorf("the hook ran twice")
	}
	lost = map[string]bool{}
	s.deploy(config("a"))
	if s.get("apps/v1", "Deployment", "web") != nil {
		t.Errorf("not pruned")
	}
}

// Passing failures of the server are not the user's business.
func TestPassingFailures(t *testing.T) {
	s := begin(t)
	var mu sync.Mutex
	seen := map[string]int{}
	answers := []struct {
		code int
		text string
	}{{429, "too many requests"}, {503, "the server is currently unable"}, {500, "etcdserver: leader changed"},
		{500, "Internal error occurred: failed calling webhook \"x\": connection refused"}}
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, s.ns) {
			return nil, nil
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.Method + r.URL.Path + fmt.Sprint(real(r))
		seen[key]++
		if seen[key] > 1 {
			return nil, nil
		}
		a := answers[len(seen)%len(answers)]
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`, a.text, a.code)
		return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
	}})
	s.deploy(small)
	s.deploy(strings.Replace(small, "nginx:1", "nginx:2", 1))
}

// A conflict about an object that isn't there passes too.
func TestPassingConflicts(t *testing.T) {
	s := begin(t)
	var asked sync.Map
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if _, again := asked.LoadOrStore(r.URL.String(), true); again || r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, s.ns) {
			return nil, nil
		}
		return answered(r, 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"Operation cannot be fulfilled: try again"}`), nil
	}})
	s.deploy(small)
	s.deploy(strings.Replace(small, "nginx:1", "nginx:2", 1))
}

// Mistakes are told at once, not retried for minutes.
func TestMistakesAreNotRetried(t *testing.T) {
	s := begin(t)
	asked := s.requests("deployments", func() { s.refuse(strings.Replace(small, "image: nginx:1", `image: ""`, 1)) })
	asked = slices.DeleteFunc(asked, func(e kubetest.AuditEvent) bool { return e.Verb == "get" || e.Verb == "list" })
	if len(asked) != 1 {
		t.Errorf("the API server was asked %v", asked)
	}
}

// TestPortIsLetGoLate fails if a recreation fails because the API server lets a port go only after the object that had it.
func TestPortIsLetGoLate(t *testing.T) {
	s := begin(t)
	s.opts.AllowRecreate = true
	const chart = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: NodePort, clusterIP: 10.96.0.80, ports: [{port: 80, nodePort: 30087}]}"
	s.deploy(chart)
	next := strings.Replace(chart, "10.96.0.80", "10.96.0.81", 1)
	late := s.manifests(strings.NewReplacer("name: x", "name: late", "clusterIP: 10.96.0.80, ", "").Replace(chart))[0].Object
	services, held := s.client("v1", "Service"), false
	s.through(&faulty{
		before: func(r *http.Request) (*http.Response, error) {
			if real(r) && r.Method != http.MethodDelete && !held && strings.HasSuffix(r.URL.Path, "/x") {
				held = true
				s.eventually("the port is let go", func() error { // late here, too
					_, err := services.Create(bg, late, metav1.CreateOptions{})
					return err
				})
			}
			return nil, nil
		},
		after: func(_ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusUnprocessableEntity {
				_ = services.Delete(bg, "late", deleteNow)
			}
			return nil
		},
	})
	s.run(s.plan(next))
	if !held || at(s.get("v1", "Service", "x"), "spec.clusterIP") != "10.96.0.81" {
		t.Errorf("held %v, %v", held, s.get("v1", "Service", "x"))
	}
}

// A server that is too old for server-side apply is named as such.
func TestServerWithoutApply(t *testing.T) {
	s := begin(t)
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Content-Type") != string(types.ApplyPatchType) {
			return nil, nil
		}
		return answered(r, 415, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"UnsupportedMediaType","code":415,`+
			`"message":"the body of the request was in an unknown format - accepted media types include: application/json-patch+json"}`), nil
	}})
	err := s.refuse(small)
	if !strings.Contains(err.Error(), "server-side apply") || !strings.Contains(hint(err), "1.22") {
		t.Errorf("got %v\n%s", err, hint(err))
	}
}

// A webhook that can't do dry runs doesn't stop a release.
func TestWebhookRefusesDryRun(t *testing.T) {
	s := begin(t)
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if real(r) || r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "configmaps") {
			return nil, nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","message":"admission webhook \"x\" does not support dry run","code":400}`
		return &http.Response{StatusCode: 400, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
	}})
	p := s.plan(small)
	if !strings.Contains(p.Waves[0].Changes[0].Unverified, "doesn't support dry runs") {
		t.Errorf("%+v", p.Waves[0].Changes[0])
	}
	s.run(p)
	s.record("deployed", small)
	p = s.plan(strings.Replace(small, `a: "1"`, `a: "5"`, 1))
	s.expect(p, "update ConfigMap/conf")
	s.run(p)
	if got := at(s.get("v1", "ConfigMap", "conf"), "data.a"); got != "5" {
		t.Errorf("data.a: %v", got)
	}
}

// Another release adopts the object between our plan and our write.
func TestAdoptionRace(t *testing.T) {
	s := begin(t)
	s.post(s.manifests(config("c"))[0].Object, "x")
	s.opts.TakeOwnership = true
	p := s.plan(config("c"))
	s.patch("v1", "ConfigMap", "c", types.MergePatchType,
		`{"metadata":{"annotations":{"meta.helm.sh/release-name":"b","meta.helm.sh/release-namespace":"`+s.ns+`"}}}`, "helm")
	_, err := s.tryRun(p)
	var owner *apply.OwnershipError
	if !errors.As(err, &owner) || owner.Owner.Release != "b" {
		t.Fatalf("got %v", err)
	}
}

// Somebody who may not list, and may not see autoscalers.
func TestRestrictedUser(t *testing.T) {
	s := begin(t)
	u := s.c.User(t, s.ns, kubetest.Rule("", "get,create,patch,delete", "configmaps", "services"),
		kubetest.Rule("apps", "get,create,patch,delete", "deployments"))
	s.cluster = kube.New(u.Config(), s.ns)
	chart := small + config("x") + config("yy") + config("z")
	s.deploy(chart)
	s.expect(s.deploy(chart))
	s.deploy(strings.Replace(chart, "nginx:1", "nginx:2", 1))
	s.deploy(config("x"))

	blind := s.c.User(t, s.ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}})
	s.cluster = kube.New(blind.Config(), s.ns)
	s.past, s.marks = nil, nil
	s.deploy(config("new"))
	err := s.refuse(config("x"))
	t.Log(err)
	err = s.plan(config("q") + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n").CheckPermissions()
	if err == nil || !strings.Contains(err.Error(), "no permission to patch secrets in namespace "+s.ns) {
		t.Errorf("Permitted: %v", err)
	}
}

// answered makes an answer in place of the server's.
func answered(r *http.Request, code int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"text/plain"}}
	if strings.HasPrefix(body, "{") {
		h.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

const conflict = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,` +
	`"message":"Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"}`

// Every first write of each kind goes wrong in every way: creation, takeover,
// update, recreation, deletion and a hook. Nothing fails, and nothing is done
// twice.
func TestEveryWriteMeetsEveryFault(t *testing.T) {
	t.Parallel()
	lost := func(err error) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	before := map[string]func(*http.Request) (*http.Response, error){
		"429": func(r *http.Request) (*http.Response, error) {
			return answered(r, 429, "slow down", "Retry-After", "1"), nil
		},
		"500": func(r *http.Request) (*http.Response, error) { return answered(r, 500, "oops"), nil },
		"503": func(r *http.Request) (*http.Response, error) { return answered(r, 503, "<html>"), nil },
		"409": func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				return nil, nil // nothing to be in conflict with
			}
			return answered(r, 409, conflict), nil
		},
		"connection reset": lost(fmt.Errorf("write: %w", syscall.ECONNRESET)),
		"stream ended":     lost(errors.New("stream error: stream ID 7; REFUSED_STREAM; received from peer")),
	}
	for name := range before {
		t.Run(name, func(t *testing.T) { everyWrite(t, &faulty{before: before[name]}) })
	}
	t.Run("the answer is lost", func(t *testing.T) {
		everyWrite(t, &faulty{after: func(*http.Request, *http.Response) error { return io.ErrUnexpectedEOF }})
	})
	t.Run("only its end is lost", func(t *testing.T) {
		everyWrite(t, &faulty{after: func(_ *http.Request, resp *http.Response) error {
			resp.Body = io.NopCloser(iotest.ErrReader(syscall.ECONNRESET))
			return nil
		}})
	})
}

// once lets a fault happen to the first real write of each method and path.
func (f *faulty) once() *faulty {
	var mu sync.Mutex
	seen := map[string]bool{}
	first := func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		key := r.Method + r.URL.Path + r.Header.Get("Content-Type")
		was := seen[key]
		seen[key] = was || real(r)
		return real(r) && !was
	}
	out := &faulty{}
	if before := f.before; before != nil {
		out.before = func(r *http.Request) (*http.Response, error) {
			if !first(r) {
				return nil, nil
			}
			return before(r)
		}
	}
	if after := f.after; after != nil {
		out.after = func(r *http.Request, resp *http.Response) error {
			if !first(r) {
				return nil
			}
			return after(r, resp)
		}
	}
	return out
}

func everyWrite(t *testing.T, f *faulty) {
	s := begin(t)
	once := func(image string) string {
		return "\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: '" + image + "'}]}}}\n"
	}
	old := config("legacy") + config("gone") + once("a:1")
	s.helm3Install(old)
	s.record("deployed", old)
	was := s.get("batch/v1", "Job", "once").GetUID()
	s.through(f.once())
	next := strings.Replace(config("legacy"), "k: v", "new: x", 1) + config("fresh") + once("a:2")
	p := s.plan(next)
	actions := map[string]decide.Action{}
	for _, c := range s.run(p) {
		actions[c.ID.Kind+"/"+c.ID.Name] = c.Action
	}
	for name, want := range map[string]decide.Action{
		"ConfigMap/legacy": decide.Update, "ConfigMap/fresh": decide.Create, "Job/once": decide.Recreate, "ConfigMap/gone": decide.Delete,
	} {
		if actions[name] != want {
			t.Errorf("%s: %s, want %s", name, actions[name], want)
		}
	}
	s.record("deployed", next)
	hook := s.mustHook(migration)
	if got := s.get("batch/v1", "Job", "migrate").GetUID(); got != hook.GetUID() {
		t.Error("the hook ran twice")
	}
	if s.get("v1", "ConfigMap", "gone") != nil || s.get("batch/v1", "Job", "once").GetUID() == was || at(s.get("v1", "ConfigMap", "legacy"), "data.new") != "x" {
		t.Error("not done")
	}
	made := map[string]int{}
	for _, e := range s.c.Audit(t, s.agent) {
		if e.Write() && e.Code == http.StatusCreated {
			made[e.Object.Resource+"/"+e.Object.Name]++
		}
	}
	for name, n := range made {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	s.expect(s.deploy(next))
}

// A hook that lets the server choose its name isn't made twice either.
func TestLostAnswerOfANamelessHook(t *testing.T) {
	s := begin(t)
	f := &faulty{after: func(*http.Request, *http.Response) error { return io.ErrUnexpectedEOF }}
	s.through(f.once())
	obj := s.mustHook(strings.Replace(migration, "name: migrate", "generateName: migrate-", 1))
	jobs, err := s.c.Client().BatchV1().Jobs(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Name != obj.GetName() || !strings.HasPrefix(obj.GetName(), "migrate-") {
		t.Errorf("%v, %d jobs, %s", err, len(jobs.Items), obj.GetName())
	}
}
