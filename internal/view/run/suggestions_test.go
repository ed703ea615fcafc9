package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/internal/view/output"
	"deployer/internal/view/viewtest"
	"deployer/release"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// pasted is a command as it is shown where no flag has chosen the cluster.
func pasted(s Suggestion) string { return program.CalledAs("deployer").Insert(s.Command) }

// TestSuggestionsNameTheCluster: a command that is pasted elsewhere must not reach whatever cluster is the default there.
func TestSuggestionsNameTheCluster(t *testing.T) {
	var written strings.Builder
	streams := output.Streams{Out: &written}.Filtered("deployer")
	streams.ChooseCluster([]output.ClusterFlag{{Own: "kubeconfig", Kubectl: "kubeconfig", Value: "my clusters.yaml"}, {Own: "kube-context", Kubectl: "context", Value: "prod-eu"}, {Own: "kube-apiserver", Kubectl: "server"}})
	state := newState(time.Now)
	state.op = viewtest.Upgrade(t)
	state.actions[decide.Update] = 1
	for _, s := range append(suggestions(class.NoNodeFits, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{}), state.undoSuggestion()...) {
		fmt.Fprintln(streams.Out, s.Command)
	}
	want := `kubectl --kubeconfig 'my clusters.yaml' --context prod-eu -n prod describe pod web
kubectl --kubeconfig 'my clusters.yaml' --context prod-eu get nodes --show-labels
deployer --kubeconfig 'my clusters.yaml' --kube-context prod-eu rollback web 6 -n prod
`
	if written.String() != want {
		t.Errorf("it suggests\n%swant\n%s", written.String(), want)
	}
}

// TestWayBackFromAnInstall: where nothing was ever deployed, it is an uninstall, which must not delete a history that was kept.
func TestWayBackFromAnInstall(t *testing.T) {
	for status, want := range map[helmrelease.Status]string{"": "uninstall", helmrelease.StatusFailed: "uninstall", helmrelease.StatusUninstalled: ""} {
		state := newState(time.Now)
		state.op = viewtest.Upgrade(t)
		state.op.Verb, state.op.Basis.Latest, state.actions[decide.Create] = deploy.Install, nil, 1
		if status != "" {
			state.op.Basis.Latest = &release.Summary{Revision: 1, Status: status}
		}
		got := ""
		for _, s := range state.undoSuggestion() {
			got = strings.Fields(pasted(s))[1]
		}
		if got != want {
			t.Errorf("after a revision that is %q it suggests %q, want %q", status, got, want)
		}
	}
}

// TestWhatIsMissingIsCreated: describing a Secret that isn't there only answers that it isn't there.
func TestWhatIsMissingIsCreated(t *testing.T) {
	for kind, want := range map[string]string{
		"Secret":    "kubectl -n prod create secret generic shop-db --from-literal=KEY=VALUE",
		"ConfigMap": "kubectl -n prod create configmap shop-db --from-literal=KEY=VALUE",
	} {
		got := suggestions(class.ConfigError, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Missing: &finding.Missing{Kind: kind, Name: "shop-db"}})
		if pasted(got[0]) != want {
			t.Errorf("it suggests %s, want %s", pasted(got[0]), want)
		}
	}
	got := suggestions(class.ConfigError, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Missing: &finding.Missing{Kind: "Secret", Name: "shop-db", Key: "user"}})
	if want := "kubectl -n prod describe secret shop-db"; pasted(got[0]) != want {
		t.Errorf("it suggests %s for a missing key, want %s", pasted(got[0]), want)
	}
}

// TestRuleThatRefusesIsShown: describing the workload wouldn't show it.
func TestRuleThatRefusesIsShown(t *testing.T) {
	for message, want := range map[string]string{
		`pods "web-1" is forbidden: ValidatingAdmissionPolicy 'no-pods' with binding 'b' denied request: no`: "kubectl get validatingadmissionpolicy no-pods -o yaml",
		`admission webhook "x.example.com" denied the request: no`:                                           "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
		`pods "web-1" is forbidden`: "kubectl -n prod describe pod web",
	} {
		if got := suggestions(class.AdmissionDenied, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Message: message}); pasted(got[0]) != want {
			t.Errorf("for %q it suggests %s, want %s", message, pasted(got[0]), want)
		}
	}
}

// TestSuggestionsAreGivenOnce: a pod is its own pod.
func TestSuggestionsAreGivenOnce(t *testing.T) {
	if got := suggestions(class.Timeout, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{}); len(got) != 1 {
		t.Errorf("it suggests %v", got)
	}
}
