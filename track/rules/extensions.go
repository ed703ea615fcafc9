package rules

import (
	"slices"
	"time"

	"deployer/track/class"
)

// customResourceDefinition is ready when its names are accepted and it is established. The
// tracker checks whether its kind is served.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func customResourceDefinition(in Input) Verdict {
	names := Condition(in.Object, "NamesAccepted")
	switch {
	case conditionIs(names, "False") && isFresh(in, names):
		return failed(class.NamesRejected, conditionText(names))
	case conditionIs(names, "True") && conditionIs(Condition(in.Object, "Established"), "True"):
		return ready("established")
	}
	return progressing("waiting to be established")
}

// apiService is ready when available. Without a service the API server itself serves it.
func apiService(in Input) Verdict {
	c := Condition(in.Object, "Available")
	switch {
	case field(in.Object.Object, "spec", "service") == nil:
		return ready("")
	case conditionIs(c, "True"):
		return ready("available")
	case c == nil:
		return progressing("waiting to become available")
	}
	return progressing(conditionText(c))
}

// webhookConfiguration is ready at once, unless an annotation asks cert-manager to inject
// the CA.
// https://cert-manager.io/docs/concepts/ca-injector/
func webhookConfiguration(in Input) Verdict {
	annotations := in.Object.GetAnnotations()
	isInjected := func(key string) bool { _, is := annotations[key]; return is }
	if !slices.ContainsFunc([]string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}, isInjected) {
		return ready("")
	}
	for _, hook := range Items(in.Object, "webhooks") {
		if text(hook, "clientConfig", "caBundle") == "" {
			return unverifiedAfter(in, progressing("waiting for cert-manager to inject the CA"), time.Minute, "cert-manager has not injected the CA")
		}
	}
	return ready("")
}
