package track_test

import (
	"flag"
	"testing"

	"deployer/internal/kubetest"
)

// TestMain lets scenarios wait side by side: they wait for the cluster, not for
// a processor.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	kubetest.Main(m)
}
