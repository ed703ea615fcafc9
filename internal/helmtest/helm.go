// Package helmtest gives tests the real helm binary to compare with.
package helmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const (
	version3 = "v3.22.0" // the Helm release that deployer is compared with
	version4 = "v4.3.1"  // the Helm 4 release that deployer takes releases over from
)

// Helm3 returns the path of helm 3.22.0, built as its release is, by the flags of its Makefile: it says
// v3.22.0 and knows Kubernetes v1.37.0, the version of the client-go in its go.mod, when offline. It is built once, into
// bin/helm3/helm of this repository; a build that fails is fatal to the test.
// Under -short it skips the test: see make unit.
func Helm3(t testing.TB) string {
	t.Helper()
	return built(t, "3", version3, "pkg/chartutil.k8sVersionMajor=1", "pkg/chartutil.k8sVersionMinor=37",
		"pkg/lint/rules.k8sVersionMajor=1", "pkg/lint/rules.k8sVersionMinor=37")
}

// Helm4 is Helm3 for Helm 4, in bin/helm4/helm. It finds Kubernetes' version itself.
func Helm4(t testing.TB) string {
	t.Helper()
	return built(t, "4", version4)
}

// built builds a release of Helm, with values for variables of its packages, unless that is done: a file beside the binary
// says of which version it is.
func built(t testing.TB, major, version string, values ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real Helm, which -short leaves out")
	}
	dir := filepath.Join(root(t), "bin", "helm"+major)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("making room for the helm binary: %v", err)
	}
	unlock := lock(t, filepath.Join(dir, ".lock"))
	defer unlock()
	binary, stamp, module := filepath.Join(dir, "helm"), filepath.Join(dir, ".version"), "helm.sh/helm/v"+major
	if built, _ := os.ReadFile(stamp); string(built) == version {
		return binary
	}
	flags := "-w -s"
	for _, v := range append(values, "internal/version.version="+version, "internal/version.metadata=", "internal/version.gitTreeState=clean") {
		flags += " -X " + module + "/" + v
	}
	cmd := exec.Command("go", "install", "-trimpath", "-ldflags", flags, module+"/cmd/helm@"+version)
	// Outside of any module, so that helm gets the dependencies of its own release.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0") // as Helm's Makefile builds it
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building helm %s: %v\n%s", version, err, out)
	}
	if err := os.WriteFile(stamp, []byte(version), 0o644); err != nil {
		t.Fatalf("building helm %s: %v", version, err)
	}
	return binary
}

// root is the directory of go.mod, above the package under test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("finding the repository: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("finding the repository: no go.mod in any parent directory")
		}
		dir = filepath.Dir(dir)
	}
}

// lock keeps packages tested at the same time from building at the same time.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("locking the build of helm: %v", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("locking the build of helm: %v", err)
	}
	return func() { file.Close() }
}
