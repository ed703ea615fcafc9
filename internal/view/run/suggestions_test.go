package run

import (
	"testing"

	"deployer/internal/kube"
	"deployer/track"
	"deployer/track/class"
	"deployer/track/finding"
)

// TestWhatIsMissingIsCreated: describing a Secret that isn't there only answers that it isn't there.
func TestWhatIsMissingIsCreated(t *testing.T) {
	for kind, want := range map[string]string{
		"Secret":    "kubectl -n prod create secret generic shop-db --from-literal=KEY=VALUE",
		"ConfigMap": "kubectl -n prod create configmap shop-db --from-literal=KEY=VALUE",
	} {
		got := suggestions(class.ConfigError, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Missing: &finding.Missing{Kind: kind, Name: "shop-db"}})
		if got[0].Command != want {
			t.Errorf("it suggests %s, want %s", got[0].Command, want)
		}
	}
	got := suggestions(class.ConfigError, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Missing: &finding.Missing{Kind: "Secret", Name: "shop-db", Key: "user"}})
	if want := "kubectl -n prod describe secret shop-db"; got[0].Command != want {
		t.Errorf("it suggests %s for a missing key, want %s", got[0].Command, want)
	}
}

// TestRuleThatRefusesIsShown: describing the workload wouldn't show it.
func TestRuleThatRefusesIsShown(t *testing.T) {
	for message, want := range map[string]string{
		`pods "web-1" is forbidden: ValidatingAdmissionPolicy 'no-pods' with binding 'b' denied request: no`: "kubectl get validatingadmissionpolicy no-pods -o yaml",
		`admission webhook "x.example.com" denied the request: no`:                                           "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
		`pods "web-1" is forbidden`: "kubectl -n prod describe pod web",
	} {
		if got := suggestions(class.AdmissionDenied, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{Message: message}); got[0].Command != want {
			t.Errorf("for %q it suggests %s, want %s", message, got[0].Command, want)
		}
	}
}

// TestSuggestionsAreGivenOnce: a pod is its own pod.
func TestSuggestionsAreGivenOnce(t *testing.T) {
	if got := suggestions(class.Timeout, kube.ID{Kind: "Pod", Namespace: "prod", Name: "web"}, track.Finding{}); len(got) != 1 {
		t.Errorf("it suggests %v", got)
	}
}
