package kube

// KeyDefault is the value that the API server gives to a key field of a list's
// item that doesn't state it; empty when it gives none. The protocol of ports is
// the only such field of the built-in kinds.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#ports
func KeyDefault(field string) string {
	if field == "protocol" {
		return "TCP"
	}
	return ""
}
