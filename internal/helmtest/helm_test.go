package helmtest

import (
	"os/exec"
	"strings"
	"testing"
)

func TestHelm3IsTheRelease(t *testing.T) { says(t, Helm3(t), version3) }

func TestHelm4IsTheRelease(t *testing.T) { says(t, Helm4(t), version4) }

func says(t *testing.T, binary, version string) {
	t.Helper()
	out, err := exec.Command(binary, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `Version:"`+version+`"`) || !strings.Contains(string(out), `GitTreeState:"clean"`) {
		t.Errorf("helm says %s, %v", out, err)
	}
}
