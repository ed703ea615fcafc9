package track

import (
	"testing"

	"deployer/track/finding"
)

// TestProviders: what a kind is known to make is expected of it alone, and nothing of what makes nothing.
func TestProviders(t *testing.T) {
	secret := func(name string) finding.Missing { return finding.Missing{Kind: "Secret", Name: name} }
	for name, test := range map[string]struct {
		object    map[string]any
		what      finding.Missing
		makes     bool
		mayBeMore bool
	}{
		"users of a database":        {map[string]any{"apiVersion": "mysql.oracle.com/v2", "kind": "InnoDBCluster", "metadata": map[string]any{"name": "db"}}, secret("db-router"), true, false},
		"users of another database":  {map[string]any{"apiVersion": "mysql.oracle.com/v2", "kind": "InnoDBCluster", "metadata": map[string]any{"name": "db"}}, secret("orders-router"), false, false},
		"users by a stated name":     {map[string]any{"apiVersion": "psmdb.percona.com/v1", "kind": "PerconaServerMongoDB", "spec": map[string]any{"secrets": map[string]any{"users": "logins"}}}, secret("logins"), true, false},
		"password that is generated": {map[string]any{"apiVersion": "k8s.mariadb.com/v1alpha1", "kind": "MariaDB", "spec": map[string]any{"rootPasswordSecretKeyRef": map[string]any{"name": "root", "generate": true}}}, secret("root"), true, false},
		"policy":                     {map[string]any{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "K8sLabels"}, secret("db"), false, false},
		"snapshots of a group":       {map[string]any{"apiVersion": "groupsnapshot.storage.k8s.io/v1beta1", "kind": "VolumeGroupSnapshot"}, secret("db"), false, false},
		"kind that nobody knows":     {map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}, secret("db"), false, true},
	} {
		object := normalised(t, test.object)
		if makes, more := isOrMakes(object, test.what), mayMakeAnything(object); makes != test.makes || more != test.mayBeMore {
			t.Errorf("%s: it makes it: %t, it may make anything: %t", name, makes, more)
		}
	}
}
