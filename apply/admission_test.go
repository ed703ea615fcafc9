package apply_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/kubetest"
)

// webhook serves an admission webhook of the story's namespace for Deployments.
// mutate returns the operations of a JSON patch.
func (s *story) webhook(mutate func(obj map[string]any) []map[string]any) {
	s.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		obj := map[string]any{}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if err := json.Unmarshal(review.Request.Object.Raw, &obj); err == nil {
			if ops := mutate(obj); len(ops) > 0 {
				kind := admissionv1.PatchTypeJSONPatch
				answer.PatchType = &kind
				answer.Patch, _ = json.Marshal(ops)
			}
		}
		review.Request, review.Response = nil, answer
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	cert, ca := localCertificate(s.t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	name := s.ns + "-webhook"
	s.t.Cleanup(func() { s.client(admission, "MutatingWebhookConfiguration").Delete(bg, name, deleteNow) })
	for _, m := range s.manifests(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NS-webhook}
webhooks:
- name: inject.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  clientConfig: {url: "` + server.URL + `", caBundle: ` + ca + `}
`) {
		s.post(m.Object, "x")
	}
	s.eventually("the webhook is called", func() error {
		probe := s.manifests(strings.Replace(small[strings.Index(small, "apiVersion: apps/v1"):], "name: web}", "name: probe}", 1))[0].Object
		out, err := s.client("apps/v1", "Deployment").Create(bg, probe, metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil {
			return err
		}
		if out.GetAnnotations()["injected"] == "" {
			return errors.New("not injected")
		}
		return nil
	})
}

const admission = "admissionregistration.k8s.io/v1"

// localCertificate is one whose caBundle can be in a story's manifests, where NS
// means the namespace.
func localCertificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	for {
		if cert, bundle := kubetest.Certificate(t); !strings.Contains(bundle, "NS") {
			return cert, bundle
		}
	}
}

// A caBundle that the chart has stated and drops goes, whoever installed it; one that somebody else has put there since stays.
func TestCABundleIsDropped(t *testing.T) {
	t.Parallel()
	_, stated := localCertificate(t)
	_, injected := localCertificate(t)
	chart := func(host, bundle string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS}\nwebhooks:\n" +
			"- {name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: 'https://" + host + ".example.com/'" + bundle + "}}\n"
	}
	for _, legacy := range []bool{true, false} {
		for _, injects := range []bool{true, false} {
			s := newStory(t)
			s.install(chart("a", ", caBundle: "+stated), legacy)
			want := "<nil>"
			if injects {
				want = injected
				s.patch("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", s.ns, types.StrategicMergePatchType,
					`{"webhooks":[{"name":"a.example.com","clientConfig":{"caBundle":"`+injected+`"}}]}`, "cainjector")
			}
			s.deploy(chart("b", ""))
			if got := fmt.Sprint(at(s.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", s.ns), "webhooks.a\\example\\com.clientConfig.caBundle")); got != want {
				t.Errorf("helm3=%v injects=%v: caBundle %s, want %s", legacy, injects, got, want)
			}
		}
	}
}

// A webhook that doesn't answer, or says no, has nothing to say about an object whose content doesn't change.
func TestUnchangedNeedsNoWebhook(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *admissionv1.AdmissionReview){
		"doesn't answer": func(w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"denies": func(w http.ResponseWriter, review *admissionv1.AdmissionReview) {
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "not now"}}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(review)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.helm3Install(small)
			s.record("deployed", small)
			s.validatingWebhook(answer)
			began := time.Now()
			s.expect(s.plan(small))
			for _, c := range s.run(s.plan(small)) {
				if stays := strings.HasPrefix(c.Reason, "its fields stay with their former managers: "); stays != (c.ID.Kind == "Deployment") {
					t.Errorf("%s %s: %q", c.Action, c.ID, c.Reason)
				}
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// validatingWebhook serves a webhook of the story's namespace for Deployments, which answers as it likes.
func (s *story) validatingWebhook(answer func(http.ResponseWriter, *admissionv1.AdmissionReview)) {
	s.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, &review)
	}))
	cert, ca := localCertificate(s.t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.t.Cleanup(func() {
		s.client(admission, "ValidatingWebhookConfiguration").Delete(bg, s.ns+"-validation", deleteNow)
	})
	s.post(s.manifests(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS-validation}
webhooks:
- name: validate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  clientConfig: {url: "` + server.URL + `", caBundle: ` + ca + `}
`)[0].Object, "x")
	s.eventually("the webhook is called", func() error {
		probe := s.manifests(strings.Replace(small[strings.Index(small, "apiVersion: apps/v1"):], "name: web}", "name: probe}", 1))[0].Object
		if _, err := s.client("apps/v1", "Deployment").Create(bg, probe, metav1.CreateOptions{DryRun: []string{"All"}}); err == nil {
			return errors.New("not called")
		}
		return nil
	})
}

// inject does what sidecar injectors, policies and defaulting webhooks do:
// idempotently, as they are called for each update too.
func inject(obj map[string]any) []map[string]any {
	u := &unstructured.Unstructured{Object: obj}
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a["injected"] = "yes"
	u.SetAnnotations(a)
	spec, _, _ := unstructured.NestedMap(obj, "spec", "template", "spec")
	containers, _ := spec["containers"].([]any)
	if names(containers) == "app" {
		containers = append(containers, map[string]any{"name": "proxy", "image": "proxy:1", "env": []any{map[string]any{"name": "P", "value": "1"}}})
	}
	for _, c := range containers {
		m := c.(map[string]any)
		env, _ := m["env"].([]any)
		if m["name"] == "app" && !strings.Contains(names(env), "INJECTED") {
			m["env"] = append(env, map[string]any{"name": "INJECTED", "value": "x"})
		}
	}
	spec["containers"] = containers
	tolerations, _ := spec["tolerations"].([]any)
	added := map[string]any{"key": "injected", "operator": "Exists"}
	if !strings.Contains(fmt.Sprint(tolerations), "injected") {
		spec["tolerations"] = append(tolerations, added)
	}
	return []map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": u.GetAnnotations()},
		{"op": "add", "path": "/spec/template/spec", "value": spec},
	}
}

// What webhooks inject survives, and isn't drift.
func TestInjected(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"us", "Helm 3", "doubled ports"} {
		t.Run(first, func(t *testing.T) {
			s := begin(t)
			s.webhook(inject)
			chart := strings.Replace(small, "      containers:", "      tolerations: [{key: ours, operator: Exists}]\n      containers:", 1)
			if first == "doubled ports" {
				chart = strings.Replace(chart, "ports: [{name: http, containerPort: 8080}]", "ports: [{name: http, containerPort: 8080}, {name: x, containerPort: 8080}]", 1)
			}
			if first == "Helm 3" {
				s.helm3Install(chart)
				s.record("deployed", chart)
			}
			check := func(image string) {
				t.Helper()
				d := s.get("apps/v1", "Deployment", "web")
				spec := "spec.template.spec."
				if got := names(at(d, spec+"containers")); got != "app proxy" {
					t.Errorf("containers: %s", got)
				}
				if got := names(at(d, spec+"containers.app.env")); got != "A INJECTED" {
					t.Errorf("env: %s", got)
				}
				if got := fmt.Sprint(at(d, spec+"tolerations")); got != "[map[key:ours operator:Exists] map[key:injected operator:Exists]]" {
					t.Errorf("tolerations: %s", got)
				}
				if d.GetAnnotations()["injected"] != "yes" || at(d, spec+"containers.app.image") != image {
					t.Errorf("annotations %v, image %v", d.GetAnnotations(), at(d, spec+"containers.app.image"))
				}
			}
			s.deploy(chart)
			check("nginx:1")
			for _, marks := range []map[string]apply.Fingerprint{s.marks, nil} {
				s.marks = marks
				generation, from := s.generation("apps/v1", "Deployment", "web"), len(s.c.Audit(t, s.agent))
				s.expect(s.deploy(chart))
				for _, e := range kubetest.Writes(s.c.Audit(t, s.agent)[from:]) {
					t.Errorf("a second release writes: %s", e)
				}
				if now := s.generation("apps/v1", "Deployment", "web"); now != generation {
					t.Errorf("generation %d -> %d", generation, now)
				}
			}
			chart = strings.Replace(chart, "nginx:1", "nginx:2", 1)
			p := s.deploy(chart)
			s.expect(p, "update Deployment/web")
			if got := removed(change(t, p, "Deployment", "web")); len(got) > 0 {
				t.Errorf("removed: %v", got)
			}
			check("nginx:2")
		})
	}
}

// A caBundle that somebody else fills in stays; one that the chart has counts.
func TestCABundleOfOthers(t *testing.T) {
	t.Parallel()
	_, real := localCertificate(t)
	_, charts := localCertificate(t)
	for name, stated := range map[string]string{
		"none": "", "empty": `, caBundle: ""`, "newline": ", caBundle: Cg==", "placeholder": ", caBundle: " + base64.StdEncoding.EncodeToString([]byte("to be filled in")),
		"injected": ", caBundle: " + charts,
	} {
		for _, by := range []types.PatchType{types.MergePatchType, types.ApplyPatchType} {
			t.Run(name+" "+string(by), func(t *testing.T) {
				s := begin(t)
				annotations := ""
				if name == "injected" {
					annotations = "annotations: {cert-manager.io/inject-ca-from: NS/cert}"
				}
				t.Cleanup(func() { s.client(admission, "ValidatingWebhookConfiguration").Delete(bg, s.ns, deleteNow) })
				chart := func(stated, path string) string {
					return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: NS
  %s
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
  clientConfig: {service: {namespace: NS, name: web, path: /%s}%s}
`, annotations, path, stated)
				}
				s.deploy(chart(stated, "a"))
				patch := `{"apiVersion":"` + admission + `","kind":"ValidatingWebhookConfiguration","webhooks":[{"name":"a.example.com","clientConfig":{"caBundle":"` + real + `"}}]}`
				if by == types.MergePatchType {
					s.patch(admission, "ValidatingWebhookConfiguration", s.ns, types.StrategicMergePatchType, patch, "cert-manager-cainjector")
				} else {
					s.patch(admission, "ValidatingWebhookConfiguration", s.ns, by, patch, "cert-manager-cainjector")
				}
				bundle := func() any {
					return at(s.get(admission, "ValidatingWebhookConfiguration", s.ns), "webhooks.a\\example\\com.clientConfig.caBundle")
				}
				s.expect(s.deploy(chart(stated, "a")))
				s.marks = nil
				s.expect(s.deploy(chart(stated, "a")))
				s.expect(s.deploy(chart(stated, "b")), "update ValidatingWebhookConfiguration/"+s.ns)
				if bundle() != real {
					t.Errorf("caBundle: %v", bundle())
				}
				if name == "none" {
					p := s.deploy(chart(", caBundle: "+charts, "b"))
					if len(conflicts(p)) != 1 || bundle() != charts {
						t.Errorf("conflicts %v, caBundle %v", conflicts(p), bundle())
					}
				}
			})
		}
	}
}

// policy makes a ValidatingAdmissionPolicy for a namespace and waits until it acts on
// what it refuses.
func (s *story) policy(namespace, resources, expression, message string, refused func(context.Context) error) {
	s.c.Since(s.t, "1.30", "ValidatingAdmissionPolicies")
	s.t.Helper()
	name := s.ns + "-policy"
	s.t.Cleanup(func() {
		s.client(admission, "ValidatingAdmissionPolicyBinding").Delete(bg, name, deleteNow)
		s.client(admission, "ValidatingAdmissionPolicy").Delete(bg, name, deleteNow)
	})
	for _, m := range s.manifests(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS-policy}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["", apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [` + resources + `]}]
  validations: [{expression: "` + expression + `", message: "` + message + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS-policy}
spec:
  policyName: NS-policy
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + namespace + `}}}
`) {
		s.post(m.Object, "x")
	}
	s.eventually("the policy acts", func() error {
		if err := refused(bg); err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("not refused: %v", err)
		}
		return nil
	})
}

// All denials are told together, before the first write.
func TestPolicyDenials(t *testing.T) {
	s := begin(t)
	s.since("1.30", "ValidatingAdmissionPolicies")
	s.deploy(small)
	s.policy("NS", "configmaps, deployments", "has(object.metadata.labels) && 'team' in object.metadata.labels", "a team is needed", s.dryRunOf(config("probe")))
	s.marks = nil
	s.expect(s.plan(small)) // nothing to do, nothing to deny
	from := len(s.c.Audit(t, s.agent))
	err := s.refuse(strings.Replace(strings.Replace(small, "nginx:1", "nginx:2", 1), `a: "1"`, `a: "2"`, 1) + config("new"))
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Rejections) != 3 || strings.Count(err.Error(), "a team is needed") != 3 {
		t.Errorf("got %v", err)
	}
	for _, e := range kubetest.Writes(s.c.Audit(t, s.agent)[from:]) {
		t.Errorf("written: %s", e)
	}
}

// A policy judges the object as it is, so it denies the change of ownership.
// The chart mends the object, then its fields are taken over, in one release.
func TestPolicyDeniesTheTakeover(t *testing.T) {
	s := begin(t)
	s.since("1.30", "ValidatingAdmissionPolicies")
	s.helm3Install(small)
	s.record("deployed", small)
	s.policy("NS", "configmaps", "has(object.metadata.labels) && 'team' in object.metadata.labels", "a team is needed", s.dryRunOf(config("probe")))
	mended := strings.Replace(small, "metadata: {name: conf}\ndata: {a: \"1\", b: \"2\"}", "metadata: {name: conf, labels: {team: x}}\ndata: {a: \"2\"}", 1)
	p := s.plan(mended)
	s.expect(p, "update ConfigMap/conf")
	for _, c := range s.run(p) {
		if c.ID.Kind == "ConfigMap" && (c.Action != decide.Update || fmt.Sprint(at(c.Applied, "data")) != "map[a:2]") {
			t.Errorf("%s: %v", c.Action, c.Applied)
		}
	}
	c := s.get("v1", "ConfigMap", "conf")
	if got := fmt.Sprint(at(c, "data")); got != "map[a:2]" || managers(c) != "helm/Apply" {
		t.Errorf("data %s, managers %s", got, managers(c))
	}
	s.record("deployed", mended)
	s.expect(s.deploy(mended))
}

// A policy that denies the change of ownership whatever the object is like
// stops no release: the object is applied, and that fields stay is told.
func TestPolicyDeniesEveryTakeover(t *testing.T) {
	s := begin(t)
	s.since("1.30", "ValidatingAdmissionPolicies")
	s.helm3Install(small)
	s.record("deployed", small)
	denied := "!has(object.data) || !has(oldObject.data) || object.data != oldObject.data"
	s.policy("NS", "configmaps", "request.operation != 'UPDATE' || "+denied, "data has to change", func(ctx context.Context) error {
		_, err := s.client("v1", "ConfigMap").Patch(ctx, "conf", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"z"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
		return err
	})
	next := strings.Replace(small, `data: {a: "1", b: "2"}`, `data: {a: "2"}`, 1)
	for _, c := range s.run(s.plan(next)) {
		if c.ID.Kind == "ConfigMap" && (c.Action != decide.Update || !strings.Contains(c.Reason, "data has to change")) {
			t.Errorf("%s: %s", c.Action, c.Reason)
		}
	}
	if got := fmt.Sprint(at(s.get("v1", "ConfigMap", "conf"), "data.a")); got != "2" {
		t.Errorf("a is %s", got)
	}
}

// dryRunOf asks the server whether it would create an object.
func (s *story) dryRunOf(manifest string) func(context.Context) error {
	return func(ctx context.Context) error {
		obj := s.manifests(manifest)[0].Object
		_, err := s.client(obj.GetAPIVersion(), obj.GetKind()).Create(ctx, obj, metav1.CreateOptions{DryRun: []string{"All"}})
		return err
	}
}

// withoutAnswerOf makes a version the only one of its group, whose server doesn't answer. A cluster
// has such a group for all at once, and this one is shared, so it is put into what the cluster
// says of itself.
func (s *story) withoutAnswerOf(group, version string) {
	s.t.Helper()
	s.through(&faulty{replace: func(r *http.Request, body []byte) []byte {
		if r.URL.Path != "/apis" {
			return body
		}
		var list map[string]any
		if err := json.Unmarshal(body, &list); err != nil || list["items"] == nil {
			s.t.Errorf("discovery isn't what it used to be: %v %.200s", err, body)
			return body
		}
		others := slices.DeleteFunc(list["items"].([]any), func(item any) bool {
			return item.(map[string]any)["metadata"].(map[string]any)["name"] == group
		})
		list["items"] = append(others, map[string]any{
			"metadata": map[string]any{"name": group},
			"versions": []any{map[string]any{"version": version, "freshness": "Stale"}},
		})
		body, _ = json.Marshal(list)
		return body
	}})
}

// A group whose server doesn't answer.
func TestPartialDiscovery(t *testing.T) {
	s := begin(t)
	s.deploy(small + config("x"))
	gone := "gone.example.com"
	s.withoutAnswerOf(gone, "v1")
	s.opts.PartialDiscovery = false
	next := strings.Replace(small, "nginx:1", "nginx:2", 1)
	p := s.deploy(next)
	s.expect(p, "update Deployment/web", "keep ConfigMap/x")
	if c := change(t, p, "ConfigMap", "x"); !c.RevisitNextRelease || !strings.Contains(c.Reason, "can't list gone.example.com/v1") {
		t.Errorf("%+v", c)
	}
	// A server of that group that goes with the release holds up nothing.
	own := "\n---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1." + gone + "}\n" +
		"spec: {group: " + gone + ", version: v1, groupPriorityMinimum: 1, versionPriority: 1}\n"
	s.deploy(next + config("x") + own)
	s.expect(s.deploy(next+own), "keep ConfigMap/x")
	s.expect(s.deploy(next), "delete ConfigMap/x", "delete APIService/v1."+gone)
	s.deploy(next + config("x"))
	s.expect(s.deploy(next), "keep ConfigMap/x")
	// An object of that very group in the past is kept too, and stops nothing.
	s.past[0].Objects = append(s.past[0].Objects, s.manifests("apiVersion: gone.example.com/v1\nkind: Thing\nmetadata: {name: t}\n")...)
	s.expect(s.deploy(next), "keep ConfigMap/x", "keep Thing/t")
	if got := s.remembered(); got != "/ConfigMap/NS/x gone.example.com/Thing/NS/t" {
		t.Errorf("remembered: %s", got)
	}
	// One in the chart can't be applied.
	var about *apply.ObjectError
	err := s.refuse(next + "\n---\napiVersion: gone.example.com/v1\nkind: Thing\nmetadata: {name: t}\n")
	if !errors.As(err, &about) || about.ID.Kind != "Thing" || !strings.Contains(about.Hint(), "apiservice v1.gone.example.com") {
		t.Errorf("got %v", err)
	}
	// The server is back: what was kept goes, what never was is forgotten.
	s.through(&faulty{})
	s.expect(s.deploy(next), "delete ConfigMap/x")
	if got := s.remembered(); got != "" {
		t.Errorf("remembered: %s", got)
	}
}

// TestAloneBrokenAPIService is TestPartialDiscovery with a real APIService.
// It disturbs all other tests in the cluster, so it runs only when asked for:
// make test-alone.
func TestAloneBrokenAPIService(t *testing.T) {
	s := begin(t)
	name := "v1." + s.ns + ".example.com"
	kubetest.Alone(t)
	s.deploy(small + config("x"))
	t.Cleanup(func() { s.client("apiregistration.k8s.io/v1", "APIService").Delete(bg, name, deleteNow) })
	s.post(s.manifests(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NS.example.com}
spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: NS, name: nowhere}}
`)[0].Object, "x")
	s.opts.PartialDiscovery = false
	s.eventually("discovery is partial", func() error {
		s.cluster.ForgetKinds()
		server, err := s.cluster.ServerInfo(bg)
		if err == nil && !strings.Contains(strings.Join(server.Unavailable, " "), s.ns) {
			err = fmt.Errorf("unavailable: %v", server.Unavailable)
		}
		return err
	})
	next := strings.Replace(small, "nginx:1", "nginx:2", 1)
	s.expect(s.deploy(next), "update Deployment/web", "keep ConfigMap/x")
	if err := s.client("apiregistration.k8s.io/v1", "APIService").Delete(bg, name, deleteNow); err != nil {
		t.Fatal(err)
	}
	s.cluster.ForgetKinds()
	s.opts.PartialDiscovery = true // others may have some of their own
	s.expect(s.deploy(next), "delete ConfigMap/x")
}
