package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFailedRestoreKeepsTheCopy: when an update has failed and the plugin can't be restored either, as on a full disk,
// the copy from before the update is all that is left of it.
func TestFailedRestoreKeepsTheCopy(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	root := t.TempDir()
	upstream, plugins := filepath.Join(root, "upstream"), filepath.Join(root, "plugins")
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	if err := os.MkdirAll(upstream, 0o755); err != nil {
		t.Fatal(err)
	}
	// The hook leaves a file where the directory of plugins was: nothing can be written there.
	manifest := "name: demo\nversion: 0.1.0\ncommand: echo\nhooks: {update: 'cd / && rm -r " + plugins + " && touch " + plugins + " && exit 1'}\n"
	if err := os.WriteFile(filepath.Join(upstream, "plugin.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	git(upstream, "init", "--quiet")
	git(upstream, "add", ".")
	git(upstream, "commit", "--quiet", "-m", "demo")
	git(root, "clone", "--quiet", upstream, filepath.Join(plugins, "demo"))
	p, err := Load(filepath.Join(plugins, "demo"))
	if err != nil {
		t.Fatal(err)
	}
	places := Places{Plugins: plugins, Cache: filepath.Join(root, "cache")}
	err = Host{}.Update(context.Background(), places, p)
	if err == nil {
		t.Fatal("the update succeeded")
	}
	copied := regexp.MustCompile(regexp.QuoteMeta(places.Cache) + `\S*before-\d+`).FindString(err.Error())
	if data, rerr := os.ReadFile(filepath.Join(copied, "plugin.yaml")); copied == "" || rerr != nil || string(data) != manifest {
		t.Errorf("the plugin is lost: %v (%v)", err, rerr)
	}
}
