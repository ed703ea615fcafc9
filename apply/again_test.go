package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
)

// TestNotLookedAtIsNotOurs fails if a plan that is made again takes an object of nobody for the release's because it was to be
// created in a namespace about which nothing could be decided before.
func TestNotLookedAtIsNotOurs(t *testing.T) {
	s := begin(t)
	space := s.ns + "-b"
	namespace := func(label string) string {
		return "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + space + ", labels: {l: " + label + "}}\n"
	}
	t.Cleanup(func() { s.c.Dynamic().Resource(namespaces).Delete(bg, space, metav1.DeleteOptions{}) })
	inside := strings.Replace(config("theirs"), "metadata: {", "metadata: {namespace: "+space+", ", 1)
	s.deploy(namespace("a"))
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := s.c.Dynamic().Resource(configMaps).Namespace(space).Create(t.Context(), s.manifests(inside)[0].Object, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	s.post(s.manifests(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS-dead}
webhooks:
- name: dead.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + space + `}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [namespaces]}]
`)[0].Object, "x")
	webhooks := s.client("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
	t.Cleanup(func() { webhooks.Delete(bg, s.ns+"-dead", deleteNow) })
	s.eventually("the webhook is called", func() error {
		_, err := s.c.Dynamic().Resource(namespaces).Patch(t.Context(), space, types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"x"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
		if err == nil {
			return errors.New("not called")
		}
		return nil
	})
	s.opts.RetryTimeout, s.hooks = time.Second, migration
	req := s.request(namespace("b") + inside)
	req.PreHooks = 1
	a := s.applier()
	p, err := a.Plan(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if c := change(t, p, "ConfigMap", "theirs"); c.Deferral == nil {
		t.Fatalf("%s is decided: %s", c.ID, c.Action)
	}
	if err := webhooks.Delete(t.Context(), s.ns+"-dead", deleteNow); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is refused as it isn't the release's", func() error {
		err := a.PlanAgain(t.Context(), req, p, 0)
		if err == nil {
			t.Fatalf("planned %s", summary(p))
		}
		if !errors.As(err, new(*apply.OwnershipError)) {
			return fmt.Errorf("PlanAgain = %w", err)
		}
		return nil
	})
}

// TestRelaxedBeforeThePlanIsMadeAgain fails if a deletion is refused by a policy that an earlier wave has relaxed, or whose
// deletion came first, because the API server hasn't heeded that yet and the plan was made again since.
func TestRelaxedBeforeThePlanIsMadeAgain(t *testing.T) {
	s := begin(t)
	s.c.Since(t, "1.30", "ValidatingAdmissionPolicies")
	t.Cleanup(func() {
		s.client(admission, "ValidatingAdmissionPolicyBinding").Delete(bg, s.ns+"-keeps", deleteNow)
		s.client(admission, "ValidatingAdmissionPolicy").Delete(bg, s.ns+"-keeps", deleteNow)
	})
	policy := func(expression string) string {
		return `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS-keeps}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [DELETE]}]
  validations: [{expression: "` + expression + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS-keeps}
spec: {policyName: NS-keeps, validationActions: [Deny]}
`
	}
	for _, c := range []struct{ name, next string }{{"relaxed", policy("true")}, {"dropped", config("a")}} {
		s.deploy(policy("false") + config("a") + config("gold"))
		s.eventually("the policy protects", func() error {
			err := s.client("v1", "ConfigMap").Delete(t.Context(), "gold", metav1.DeleteOptions{DryRun: []string{"All"}})
			if err == nil {
				return errors.New("not refused")
			}
			return nil
		})
		req := s.request(c.next + config("b"))
		a := s.applier()
		p, err := a.Plan(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		ignore := func(*apply.Change) {}
		if err := a.Prune(t.Context(), p.PruneFirst, apply.UntilAccepted, ignore); err != nil {
			t.Fatal(err)
		}
		for _, w := range p.Waves {
			if err := errors.Join(a.Prune(t.Context(), w.PruneFirst, apply.UntilAccepted, ignore), a.Run(t.Context(), w.Changes, ignore)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.PlanAgain(t.Context(), req, p, len(p.Waves)); err != nil {
			t.Fatal(err)
		}
		if err := a.Prune(t.Context(), p.Prune, apply.UntilNotBack, ignore); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if s.get("v1", "ConfigMap", "gold") != nil {
			t.Errorf("%s: it is there", c.name)
		}
		s.record("deployed", c.next+config("b"))
	}
}
