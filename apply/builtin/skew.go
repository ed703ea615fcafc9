package builtin

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
)

// changedIn are the group versions with types that older API servers merge in another way, and the
// Kubernetes version that changed them.
var changedIn = map[schema.GroupVersion]string{
	// ServiceBackendPort, the port of an Ingress, is atomic. (k8s.io/api/networking/v1/types.go)
	{Group: "networking.k8s.io", Version: "v1"}: "1.31.0",
}

// GroupVersionsUnlike returns the group versions whose schemas here aren't those of an API server of a
// version such as "v1.29.4+k3s1": its own have to be used. The fields of a type don't count. It
// returns none for a version that can't be read.
func GroupVersionsUnlike(serverVersion string) map[schema.GroupVersion]bool {
	out := map[schema.GroupVersion]bool{}
	server, err := version.ParseGeneric(serverVersion)
	if err != nil {
		return out
	}
	for gv, since := range changedIn {
		if server.LessThan(version.MustParseGeneric(since)) {
			out[gv] = true
		}
	}
	return out
}
