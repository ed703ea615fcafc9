package planfile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

// In kube-system the release's namespace is also what identifies the cluster: a plan of a
// release there has both.
func TestClusterUIDsInKubeSystem(t *testing.T) {
	c := kubetest.Start(t)
	cluster := kube.New(c.Config(), metav1.NamespaceSystem)
	known, err := readClusterUIDs(t.Context(), cluster, metav1.NamespaceSystem, nil)
	if err != nil {
		t.Fatal(err)
	}
	if uid := known[sourceCluster]; uid == "" || uid != known[sourceNamespace] {
		t.Errorf("the UIDs are %v, want that of kube-system for cluster and namespace", known)
	}
}
