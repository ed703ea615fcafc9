package e2e

import (
	"testing"

	"deployer/internal/deployertest"
	"deployer/internal/kubetest"
)

// deployerBinary is the program under test, built once for the test run.
var deployerBinary string

func TestMain(m *testing.M) {
	kubetest.Parallel(10)
	deployertest.Main(m, &deployerBinary)
}
