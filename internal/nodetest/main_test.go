package nodetest

import (
	"os"
	"testing"

	"deployer/internal/deployertest"
)

// nodeEnv says that the cluster under test has a real node; scripts/realnode.sh sets it.
const nodeEnv = "DEPLOYER_TEST_NODE"

// deployerBinary is the program under test, built once for the test run.
var deployerBinary string

func TestMain(m *testing.M) {
	if os.Getenv(nodeEnv) == "" {
		os.Exit(m.Run()) // all tests are skipped
	}
	deployertest.Main(m, &deployerBinary)
}
