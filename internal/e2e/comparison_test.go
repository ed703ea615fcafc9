package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deployer/internal/helmtest"
	"deployer/testcharts"
)

// A program is one of those that docs/comparison.md compares.
type program struct {
	*world
	name, binary string
}

// exitsWith runs the program, which has to end with the code.
func (p program) exitsWith(code int, args ...string) result {
	p.Helper()
	return p.run(p.binary, code, args...)
}

// comparisons are the situations of docs/comparison.md that are measured with each program:
// what happens, in a word of the table.
var comparisons = []struct {
	name string
	play func(program) string
	want map[string]string // by program
}{
	{"fields of a failed release", playFailedFields, map[string]string{"deployer": "removed", "helm3": "stay", "helm4": "removed"}},
	{"objects of a failed release", playFailedObjects, map[string]string{"deployer": "removed", "helm3": "stay", "helm4": "stay"}},
	{"an object that the API server rejects", playRejected, map[string]string{"deployer": "nothing changed", "helm3": "half changed", "helm4": "half changed"}},
	{"dry run of it", playDryRun, map[string]string{"deployer": "rejected", "helm3": "accepted", "helm4": "accepted"}},
	{"a killed run", playKilled, map[string]string{"deployer": "recovered", "helm3": "blocks", "helm4": "blocks"}},
	{"two runs at once", playTwo, map[string]string{"deployer": "refused, names the holder", "helm3": "refused", "helm4": "refused"}},
	{"an image that doesn't exist", playNoImage, map[string]string{"deployer": "before the timeout, with the reason", "helm3": "at the timeout, without the reason", "helm4": "at the timeout, without the reason"}},
	{"undo of a failed adoption", playFailedAdoption, map[string]string{"deployer": "given back", "helm3": "deleted", "helm4": "deleted"}},
	{"a generated password", playGenerated, map[string]string{"deployer": "kept", "helm3": "new", "helm4": "new"}},
	{"a dry run with a Secret", playSecret, map[string]string{"deployer": "hidden", "helm3": "shown", "helm4": "shown"}},
	{"a newer definition in crds", playDefinition, map[string]string{"deployer": "updated", "helm3": "not updated", "helm4": "not updated"}},
}

// docs/comparison.md says nothing of Helm that isn't so: each situation is played with each
// program. Helm's versions are pinned, so that make test-long is often enough for theirs.
func TestComparison(t *testing.T) {
	t.Parallel()
	binaries := map[string]string{"deployer": deployerBinary, "helm3": helmtest.Helm3(t), "helm4": helmtest.Helm4(t)}
	for _, c := range comparisons {
		for name, binary := range binaries {
			if name != "deployer" && os.Getenv(longEnv) == "" {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				if got := c.play(program{newWorld(t), name, binary}); got != c.want[name] {
					t.Errorf("%s: %s, want %s", name, got, c.want[name])
				}
			})
		}
	}
}

// playFailedFields renames the containers of a Deployment in a release that fails.
func playFailedFields(p program) string {
	chart := testcharts.Dir(p.T, "rename")
	p.exitsWith(0, "install", "app", chart)
	p.exitsWith(1, append([]string{"upgrade", "app", chart}, second...)...)
	p.exitsWith(0, append([]string{"upgrade", "app", chart}, third...)...)
	if strings.Contains(fmt.Sprint(field(p.must("deployments", "app"), "spec.template.spec.containers")), "backend") {
		return "stay"
	}
	return "removed"
}

// playFailedObjects makes an object in a release that fails, and goes on without it.
func playFailedObjects(p program) string {
	fails := hookJob("fails", "post-upgrade", "before-hook-creation", true)
	p.exitsWith(0, "install", "x", p.chart(configMap("a", "1")))
	p.exitsWith(1, "upgrade", "x", p.chart(configMap("a", "2"), configMap("b", "1"), fails))
	p.exitsWith(0, "upgrade", "x", p.chart(configMap("a", "3")))
	if p.get("configmaps", "b") != nil {
		return "stay"
	}
	return "removed"
}

// rejected is a chart of two objects, of which the API server rejects the second.
func (p program) rejected() string {
	return p.chart(configMap("good", "2"), replaceOnce(deployment("bad", "x", "  replicas: 1"), "app: x}\n    spec", "app: y}\n    spec"))
}

func playRejected(p program) string {
	p.exitsWith(0, "install", "x", p.chart(configMap("good", "1")))
	p.failing("upgrade", "x", p.rejected())
	if field(p.must("configmaps", "good"), "data.key") == "1" {
		return "nothing changed"
	}
	return "half changed"
}

// failing runs the program, which must not succeed.
func (p program) failing(args ...string) result {
	p.Helper()
	r := p.try(p.binary, args...)
	if r.code == 0 {
		p.Fatalf("it succeeded:\n%s", r)
	}
	return r
}

func playDryRun(p program) string {
	p.exitsWith(0, "install", "x", p.chart(configMap("good", "1")))
	if p.try(p.binary, "upgrade", "x", p.rejected(), "--dry-run=server").code != 0 {
		return "rejected"
	}
	return "accepted"
}

// running starts an upgrade that waits for its hook.
func (p program) running() *exec.Cmd {
	p.Helper()
	p.exitsWith(0, "install", "x", p.chart(configMap("a", "1")))
	cmd, _ := p.command(p.binary, "upgrade", "x", p.endless())
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p.waiting()
	return cmd
}

func playKilled(p program) string {
	cmd := p.running()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		p.Fatal(err)
	}
	_ = cmd.Wait()
	r := p.try(p.binary, "upgrade", "x", p.chart(configMap("a", "3")))
	switch {
	case r.code == 0:
		return "recovered"
	case strings.Contains(r.err, "another operation"):
		return "blocks"
	}
	return r.String()
}

func playTwo(p program) string {
	p.running()
	r := p.failing("upgrade", "x", p.chart(configMap("a", "3")))
	switch {
	case strings.Contains(r.err, "is held by"):
		return "refused, names the holder"
	case strings.Contains(r.err, "another operation"):
		return "refused"
	}
	return r.String()
}

// playNoImage waits for pods whose image the registry doesn't have.
func playNoImage(p program) string {
	pull := `[{"state":{"waiting":{"reason":"ErrImagePull","message":"rpc error: code = NotFound desc = failed to pull and unpack image: docker.io/r/x:1: not found"}}},` +
		`{"after":"2s","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"r/x:1\""}}},` +
		`{"after":"8s","state":{"waiting":{"reason":"ErrImagePull","message":"rpc error: code = NotFound desc = failed to pull and unpack image: docker.io/r/x:1: not found"}}}]`
	r := p.failing("install", "x", p.chart(withAnnotation(deployment("d", "d", "  replicas: 1"), pull)), "--wait", "--timeout", "40s")
	when, why := "at the timeout", "without the reason"
	if !regexp.MustCompile(`context deadline exceeded|timed out|TIMED OUT|timeout`).MatchString(r.err) {
		when = "before the timeout"
	}
	if strings.Contains(r.err, "not found (pod") || strings.Contains(r.err, "failed to pull") {
		why = "with the reason"
	}
	return when + ", " + why
}

// playFailedAdoption adopts somebody's object in an install that fails and is undone.
func playFailedAdoption(p program) string {
	p.create("configmaps", "kubectl-create", configMap("theirs", "0"))
	args := []string{"install", "x", p.chart(configMap("theirs", "1"), hookJob("fails", "post-install", "before-hook-creation", true)), "--take-ownership", "--atomic"}
	if p.name == "helm4" {
		args = append(args, "--force-conflicts") // it would fail before it adopts anything
	}
	p.failing(args...)
	obj := p.get("configmaps", "theirs")
	switch {
	case obj == nil:
		return "deleted"
	case field(obj, "data.key") == "0":
		return "given back"
	}
	return fmt.Sprint("is there with ", field(obj, "data.key"))
}

func playGenerated(p program) string {
	chart := p.passwordChart()
	p.exitsWith(0, "install", "x", chart)
	before := p.password()
	p.exitsWith(0, "upgrade", "x", chart)
	if p.password() == before {
		return "kept"
	}
	return "new"
}

func playSecret(p program) string {
	const text = "planted-secret"
	r := p.exitsWith(0, "install", "x", p.chart("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: "+text+"}\n"), "--dry-run=server")
	if strings.Contains(r.out+r.err, text) || strings.Contains(r.out+r.err, base64.StdEncoding.EncodeToString([]byte(text))) {
		return "shown"
	}
	return "hidden"
}

// playDefinition adds a field to a definition in crds/.
func playDefinition(p program) string {
	name := p.unique()
	p.dropCRD("widgets." + name + ".deployer.io")
	chart := func(fields ...string) string {
		return p.chartOf(map[string]string{"crds/widgets.yaml": sizedCRD(name, fields...), "templates/a.yaml": configMap("a", "1")})
	}
	p.exitsWith(0, "install", "x", chart())
	p.exitsWith(0, "upgrade", "x", chart("added"))
	if slices.Contains(p.fieldsOf(name), "added") {
		return "updated"
	}
	return "not updated"
}
