package helmtest

import (
	"os/exec"
	"strings"
	"testing"
)

func TestHelm3IsTheRelease(t *testing.T) {
	out, err := exec.Command(Helm3(t), "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `Version:"v3.22.0"`) || !strings.Contains(string(out), `GitTreeState:"clean"`) {
		t.Errorf("helm says %s, %v", out, err)
	}
}
