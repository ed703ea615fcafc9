// Package helmtest gives tests the real helm binary to compare with.
package helmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Version is the Helm release that deployer is compared with.
const Version = "v3.22.0"

// Version4 is the Helm 4 release that deployer takes releases over from.
const Version4 = "v4.3.1"

// Helm3 returns the path of helm 3.22.0, built as its release is: it says
// v3.22.0 and knows Kubernetes v1.37.0 when offline. It is built once, into
// bin/helm3/helm of this repository; a build that fails is fatal to the test.
// Under -short it skips the test: see make unit.
func Helm3(t testing.TB) string {
	t.Helper()
	return built(t, helm{dir: "helm3", module: "helm.sh/helm/v3", version: Version, flags: flags3()})
}

// Helm4 is Helm3 for Helm 4, in bin/helm4/helm.
func Helm4(t testing.TB) string {
	t.Helper()
	return built(t, helm{dir: "helm4", module: "helm.sh/helm/v4", version: Version4, flags: flags4()})
}

// A helm is one release of Helm.
type helm struct{ dir, module, version, flags string }

func built(t testing.TB, h helm) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real Helm, which -short leaves out")
	}
	dir := filepath.Join(root(t), "bin", h.dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("making room for the helm binary: %v", err)
	}
	unlock := lock(t, filepath.Join(dir, ".lock"))
	defer unlock()
	binary := filepath.Join(dir, "helm")
	if !works(binary, h.version) {
		build(t, h, dir)
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

// works asks the binary for its version, once: the answer is kept in a file
// beside it, which counts as long as the binary isn't newer.
func works(binary, version string) bool {
	info, err := os.Stat(binary)
	if err != nil {
		return false
	}
	stamp := filepath.Join(filepath.Dir(binary), ".version")
	if known, err := os.Stat(stamp); err == nil && known.ModTime().After(info.ModTime()) {
		said, err := os.ReadFile(stamp)
		return err == nil && string(said) == version
	}
	said, err := exec.Command(binary, "version", "--template", "{{.Version}}").Output()
	if err != nil || string(said) != version {
		return false
	}
	return os.WriteFile(stamp, said, 0o644) == nil
}

func build(t testing.TB, h helm, dir string) {
	t.Helper()
	cmd := exec.Command("go", "install", "-trimpath", "-ldflags", h.flags, h.module+"/cmd/helm@"+h.version)
	// Outside of any module, so that helm gets the dependencies of its own release.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0") // as Helm's Makefile builds it
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building helm %s: %v\n%s", h.version, err, out)
	}
	if !works(filepath.Join(dir, "helm"), h.version) {
		t.Fatalf("building helm %s: the binary in %s doesn't say it is that version", h.version, dir)
	}
}

// flags3 are those of Helm 3's Makefile. The Kubernetes version is that of the
// client-go in Helm's go.mod, v0.37.0.
func flags3() string {
	return ldflags("helm.sh/helm/v3/",
		"internal/version.version="+Version,
		"internal/version.metadata=",
		"internal/version.gitTreeState=clean",
		"pkg/chartutil.k8sVersionMajor=1",
		"pkg/chartutil.k8sVersionMinor=37",
		"pkg/lint/rules.k8sVersionMajor=1",
		"pkg/lint/rules.k8sVersionMinor=37",
	)
}

// flags4 are those of Helm 4's Makefile: it finds Kubernetes' version itself.
func flags4() string {
	return ldflags("helm.sh/helm/v4/",
		"internal/version.version="+Version4,
		"internal/version.metadata=",
		"internal/version.gitTreeState=clean",
	)
}

func ldflags(module string, values ...string) string {
	set := []string{"-w", "-s"}
	for _, v := range values {
		set = append(set, "-X", module+v)
	}
	return strings.Join(set, " ")
}
