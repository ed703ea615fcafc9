package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// deployerBinary is the program under test, built once for the test run.
var deployerBinary string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "e2e-")
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
