package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"deployer/internal/deployertest"
	"deployer/internal/helmtest"
	"deployer/internal/kubetest"
)

// A world is what one test has for itself: a namespace, a user who may do
// everything, and both programs.
type world struct {
	*testing.T
	cluster    *kubetest.Cluster
	ns         string
	user       *kubetest.User
	kubeconfig string
}

// newWorld gives the test a world, in parallel with other tests.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return worldOf(t)
}

// worldOf is newWorld for a test that says itself what it runs in parallel with.
func worldOf(t *testing.T) *world {
	t.Helper()
	cluster := kubetest.Start(t)
	ns := cluster.Namespace(t)
	user := cluster.User(t, ns)
	user.Allow(t, "", kubetest.Rule("*", "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	return &world{T: t, cluster: cluster, ns: ns, user: user, kubeconfig: user.Kubeconfig(t, ns)}
}

// beside is a world in another namespace with the same user.
func (w *world) beside() *world {
	w.Helper()
	other := *w
	other.ns = w.cluster.Namespace(w.T)
	other.kubeconfig = w.user.Kubeconfig(w.T, other.ns)
	return &other
}

// unique is a name for a release whose chart derives from it the names of objects
// outside of its namespace.
func (w *world) unique() string { return "x-" + w.ns[len(w.ns)-8:] }

// A result is how a command ended.
type result struct {
	line     string // the command line
	code     int
	out, err string
	took     time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("$ %s\nexit code %d after %s\n--- stdout\n%s--- stderr\n%s", r.line, r.code, r.took.Round(time.Millisecond), r.out, r.err)
}

// commandTimeout bounds one command: more than any of them should take.
const commandTimeout = 3 * time.Minute

// command prepares a program that talks to the world's namespace.
func (w *world) command(program string, args ...string) (*exec.Cmd, func(error) result) {
	cmd := exec.CommandContext(w.Context(), program, args...)
	home := w.TempDir()
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + w.kubeconfig,
		"XDG_CACHE_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home,
		// A wait that doesn't end should fail the test before the test ends.
		"DEPLOYER_TIMEOUT=60s",
		deployertest.RaceReports(w),
	}
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	// Without a pipe that a grandchild might hold open.
	cmd.WaitDelay = 5 * time.Second
	began := time.Now()
	return cmd, func(failed error) result {
		r := result{line: filepath.Base(program) + " " + strings.Join(args, " "), out: out.String(), err: err.String(), took: time.Since(began)}
		var exit *exec.ExitError
		switch {
		case failed == nil:
		case errors.As(failed, &exit):
			r.code = exit.ExitCode()
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				r.code = 128 + int(status.Signal())
			}
		default:
			w.Fatalf("running %s: %v", r.line, failed)
		}
		return r
	}
}

// try runs a program, however it ends.
func (w *world) try(program string, args ...string) result {
	w.Helper()
	cmd, done := w.command(program, args...)
	timer := time.AfterFunc(commandTimeout, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer timer.Stop()
	return done(cmd.Run())
}

// run runs a program, which has to end with the code.
func (w *world) run(program string, code int, args ...string) result {
	w.Helper()
	r := w.try(program, args...)
	if r.code != code {
		w.Fatalf("want exit code %d:\n%s", code, r)
	}
	return r
}

// exits runs deployer, which has to end with the code.
func (w *world) exits(code int, args ...string) result {
	w.Helper()
	return w.run(deployerBinary, code, args...)
}

// ok runs deployer, which has to succeed.
func (w *world) ok(args ...string) result {
	w.Helper()
	return w.exits(0, args...)
}

// helm runs Helm 3, which has to succeed.
func (w *world) helm(args ...string) result {
	w.Helper()
	return w.helmExits(0, args...)
}

// helmExits runs Helm 3, which has to end with the code.
func (w *world) helmExits(code int, args ...string) result {
	w.Helper()
	return w.run(helmtest.Helm3(w.T), code, args...)
}

// says checks that a text has a match of each pattern.
func (w *world) says(r result, stream string, patterns ...string) {
	w.Helper()
	text := map[string]string{"stdout": r.out, "stderr": r.err}[stream]
	for _, p := range patterns {
		if !regexp.MustCompile("(?s)" + p).MatchString(text) {
			w.Errorf("%s doesn't say %q:\n%s", stream, p, r)
		}
	}
}

// chart writes a chart named "c" with one template per argument, and returns its
// directory.
func (w *world) chart(templates ...string) string {
	w.Helper()
	files := map[string]string{}
	for i, text := range templates {
		files[fmt.Sprintf("templates/t%d.yaml", i)] = text
		if strings.Contains(text, "kind: ValidatingAdmissionPolicy") {
			w.cluster.Since(w, "1.30", "ValidatingAdmissionPolicies")
		}
	}
	return w.chartOf(files)
}

// chartOf writes a chart named "c" with the given files.
func (w *world) chartOf(files map[string]string) string {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "c")
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	return dir
}

// writes are the requests of the world's user since mark that were to change
// something, other than in the records of releases and their locks.
func (w *world) writes(mark int) []kubetest.AuditEvent {
	w.Helper()
	var out []kubetest.AuditEvent
	for _, e := range w.allWrites(mark) {
		if e.Object.Resource == "secrets" && isRecordName(e.Object.Name) ||
			e.Object.Resource == "leases" || isRecord(e) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// isRecord reports whether a Secret was created by POST. Objects of charts are
// applied, by PATCH.
func isRecord(e kubetest.AuditEvent) bool {
	return e.Object.Resource == "secrets" && e.Verb == "create"
}

// allWrites are writes with those of records and locks.
func (w *world) allWrites(mark int) []kubetest.AuditEvent {
	w.Helper()
	return kubetest.Writes(w.cluster.Audit(w.T, w.user.Name)[mark:])
}

// mark is a point in the audit log, for writes.
func (w *world) mark() int {
	w.Helper()
	return len(w.cluster.Audit(w.T, w.user.Name))
}

// within is the same world in another namespace, for objects only.
func (w *world) within(namespace string) *world {
	other := *w
	other.ns = namespace
	return &other
}

// bound is a context for cleaning up, when that of the test has ended.
func (w *world) bound() context.Context { return context.WithoutCancel(w.Context()) }
