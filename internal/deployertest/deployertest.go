// Package deployertest gives tests the program under test.
package deployertest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Main is a TestMain whose tests run the program: it builds it once, writes its
// path into binary, and removes it in the end.
func Main(m *testing.M, binary *string) {
	code, err := buildAndRun(m, binary)
	if err != nil {
		panic(err) // what runs failed tests again would run none of a package in which none has begun, and be content
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M, binary *string) (int, error) {
	flag.Parse()
	if testing.Short() {
		return m.Run(), nil // tests of the program need a cluster, and skip
	}
	dir, err := os.MkdirTemp("", "deployertest-")
	if err != nil {
		return 0, fmt.Errorf("making room for the program under test: %w", err)
	}
	defer os.RemoveAll(dir)
	*binary = filepath.Join(dir, "deployer")
	build := []string{"build", "-tags", "urfave_cli_no_docs", "-ldflags", "-s -w", "-o", *binary} // as the Makefile builds it
	env := append(os.Environ(), "CGO_ENABLED=0")
	if os.Getenv("DEPLOYER_TEST_RACE_PROGRAM") != "" {
		build, env = append(build, "-race"), append(env, "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(build, "deployer/cmd/deployer")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the program under test: %w\n%s", err, out)
	}
	return m.Run(), nil
}
