package rules

import (
	"time"

	"deployer/track/class"
)

// definition: the names must be accepted and the kind established; whether it
// is served is asked by the tracker.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func definition(in Input) Verdict {
	names := condition(in.Object, "NamesAccepted")
	if is(names, "False") && fresh(in, names) {
		return failed(class.NamesRejected, because(names))
	}
	if is(names, "True") && is(condition(in.Object, "Established"), "True") {
		return ready("established")
	}
	return waiting("waiting to be established")
}

// apiService: one without a service is served by the API server itself.
func apiService(in Input) Verdict {
	if field(in.Object.Object, "spec", "service") == nil {
		return ready("")
	}
	c := condition(in.Object, "Available")
	if is(c, "True") {
		return ready("available")
	}
	if c == nil {
		return waiting("waiting to become available")
	}
	return waiting(because(c))
}

// webhooks: cert-manager fills in the CA later when an annotation asks for it.
// https://cert-manager.io/docs/concepts/ca-injector/
func webhooks(in Input) Verdict {
	injected := false
	for key := range in.Object.GetAnnotations() {
		switch key {
		case "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca":
			injected = true
		}
	}
	if !injected {
		return ready("")
	}
	for _, w := range list(in.Object.Object, "webhooks") {
		hook, _ := w.(map[string]any)
		if text(hook, "clientConfig", "caBundle") == "" {
			return orUnverified(in, waiting("waiting for cert-manager to inject the CA"), time.Minute, "cert-manager has not injected the CA")
		}
	}
	return ready("")
}
