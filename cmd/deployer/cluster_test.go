package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"deployer/internal/kubetest"
)

// testKey is where a script keeps its test.
type testKey struct{}

// hasCluster tells whether scripts with [cluster] run: with a cluster that the
// environment names, or one that package kubetest can start.
func hasCluster() bool {
	if os.Getenv("DEPLOYER_TEST_KUBECONFIG") != "" || os.Getenv("DEPLOYER_TEST_REQUIRE_CLUSTER") != "" {
		return true
	}
	_, err := os.Stat("../../bin/devcluster")
	return err == nil
}

// useCluster is the command cluster of a script: KUBECONFIG is a cluster and a
// namespace of its own in it, whose name is in $NAMESPACE.
func useCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: cluster")
	}
	t := ts.Value(testKey{}).(testing.TB)
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ts.Setenv("NAMESPACE", namespace)
	ts.Setenv("KUBECONFIG", c.Kubeconfig(t, namespace))
}
