package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply"
	"deployer/internal/kubetest"
)

// What the server's validation refuses is refused before a new namespace is there. What only
// another namespace refuses isn't.
func TestObjectsOfANewNamespaceAreValidated(t *testing.T) {
	s := begin(t)
	s.since("1.30", "ValidatingAdmissionPolicies")
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	taken := s.ns + "-taken"
	if _, err := s.c.Dynamic().Resource(configmaps).Namespace("default").Create(bg, s.manifests(config(taken))[0].Object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.c.Dynamic().Resource(configmaps).Namespace("default").Delete(bg, taken, deleteNow) })
	refused := strings.Replace(config("refused"), "metadata: {", "metadata: {labels: {refused: NS}, ", 1)
	s.policy("default", "configmaps", "!has(object.metadata.labels) || !('refused' in object.metadata.labels) || object.metadata.labels['refused'] != 'NS'", "not in default",
		func(ctx context.Context) error {
			_, err := s.c.Dynamic().Resource(configmaps).Namespace("default").Create(ctx, s.manifests(refused)[0].Object, metav1.CreateOptions{DryRun: []string{"All"}})
			return err
		})
	deployment := "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: COUNT, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: \"r/x:1\"}]}}}\n"
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {helm.sh/hook: pre-install}}\nspec: {template: {spec: {restartPolicy: POLICY, containers: [{name: c, image: \"r/x:1\"}]}}}\n"
	pod := "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: \"r/x:1\"}]}\n"
	s.owner.Namespace = s.ns + "-new"
	s.space = []string{s.owner.Namespace}
	from := len(s.c.Audit(t, s.agent))

	s.hooks = strings.Replace(job, "POLICY", "Sometimes", 1)
	err := s.refuse(refused + strings.Replace(deployment, "COUNT", "-1", 1))
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || rejected.When != apply.BeforeChanges || len(rejected.Rejections) != 2 ||
		!strings.Contains(err.Error(), "spec.replicas: Invalid value: -1") || !strings.Contains(err.Error(), `Unsupported value: "Sometimes"`) {
		t.Errorf("got %v", err)
	}

	s.hooks = strings.Replace(job, "POLICY", "Never", 1)
	p := s.plan(refused + config(taken) + strings.Replace(deployment, "COUNT", "1", 1) + pod)
	reason := "namespace " + s.owner.Namespace + " comes with this release"
	for name, want := range map[string]string{
		"ConfigMap/refused": reason, "Pod/p": reason,
		"ConfigMap/" + taken: reason + "; validated in namespace default instead", "Deployment/d": reason + "; validated in namespace default instead",
	} {
		kind, name, _ := strings.Cut(name, "/")
		if c := change(t, p, kind, name); c.Unverified != want || c.Deferral == nil {
			t.Errorf("%s: %q, want %q", c.ID, c.Unverified, want)
		}
	}
	if c := p.Hooks[0]; c.Unverified != reason+"; validated in namespace default instead" {
		t.Errorf("%s: %q", c.ID, c.Unverified)
	}
	for _, e := range kubetest.Writes(s.c.Audit(t, s.agent)[from:]) {
		t.Errorf("written: %s", e)
	}
}
