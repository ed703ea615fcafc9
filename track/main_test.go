package track_test

import (
	"testing"

	"deployer/internal/kubetest"
)

// TestMain lets scenarios wait side by side: they wait for the cluster, not for
// a processor.
func TestMain(m *testing.M) { kubetest.Main(m, 24) }
