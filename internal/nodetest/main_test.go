package nodetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeEnv says that the cluster under test has a real node; devcluster sets it.
const nodeEnv = "DEPLOYER_TEST_NODE"

// deployerBinary is the program under test, built once for the test run.
var deployerBinary string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodetest:", err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	if os.Getenv(nodeEnv) == "" {
		return m.Run(), nil // all tests are skipped
	}
	dir, err := os.MkdirTemp("", "nodetest-")
	if err != nil {
		return 0, fmt.Errorf("making room for the program under test: %w", err)
	}
	defer os.RemoveAll(dir)
	deployerBinary = filepath.Join(dir, "deployer")
	if out, err := exec.Command("go", "build", "-o", deployerBinary, "deployer/cmd/deployer").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the program under test: %w\n%s", err, out)
	}
	return m.Run(), nil
}
