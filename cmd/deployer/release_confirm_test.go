package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"deployer/internal/deployertest"
)

// typed runs the program on a terminal, where somebody types an answer; it gives the exit code and what the terminal shows.
func (p *plans) typed(answer string, args ...string) (int, string) {
	p.t.Helper()
	terminal, tty := deployertest.Terminal(p.t)
	if _, err := terminal.WriteString(answer); err != nil {
		p.t.Fatal(err)
	}
	var shown bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&shown, terminal) }) // until the terminal is closed
	code := execute(context.Background(), append(append([]string{"deployer"}, args...), "--kubeconfig", p.config, "--color", "never"), tty, io.Discard, tty)
	tty.Close()
	reading.Wait()
	return code, shown.String()
}

// Whoever refuses what is shown changes nothing; what is accepted is done.
func TestConfirm(t *testing.T) {
	t.Setenv("CI", "")
	p := newPlans(t)
	upgrade := []string{"upgrade", "--install", "web", p.chart, "--wait=false", "--confirm"}
	code, shown := p.typed("no\n", upgrade...)
	if code != exitRejected || !strings.Contains(shown, "+ ConfigMap/"+p.ns+"/conf") || !strings.Contains(shown, "Carry this out for release web (namespace "+p.ns) ||
		!strings.Contains(shown, "not confirmed: nothing was changed") {
		t.Errorf("refused: exit code %d\n%s", code, shown)
	}
	p.run(exitFailed, "status", "web")
	if code, shown := p.typed("yes\n", upgrade...); code != exitOK {
		t.Fatalf("accepted: exit code %d\n%s", code, shown)
	}
	if got := p.colour(); got != "red" {
		t.Errorf("the colour is %q", got)
	}

	p.plan("colour=blue")
	apply := []string{"apply", p.file, p.chart, "--set", "colour=blue", "--wait=false"}
	if code, shown := p.typed("\n", apply...); code != exitRejected || p.colour() != "red" {
		t.Errorf("apply on a terminal doesn't ask: exit code %d\n%s", code, shown)
	}
	if code, shown := p.typed("", append(apply, "--confirm=false")...); code != exitOK || p.colour() != "blue" {
		t.Errorf("apply --confirm=false: exit code %d\n%s", code, shown)
	}
	if out := p.run(exitFailed, upgrade...); !strings.Contains(out, "--confirm asks on a terminal") {
		t.Errorf("without a terminal:\n%s", out)
	}
}

// A run that expects another context makes no request.
func TestExpectContext(t *testing.T) {
	p := newPlans(t)
	out := p.run(exitFailed, "upgrade", "--install", "web", p.chart, "--expect-context", "prod")
	if !strings.Contains(out, `but "prod" is expected`) || !strings.Contains(out, "--kube-context prod") {
		t.Error(out)
	}
	t.Setenv("DEPLOYER_EXPECT_CONTEXT", "prod")
	p.run(exitFailed, "list")
	p.run(exitFailed, "template", "web", p.chart, "--validate")
	p.run(exitOK, "template", "web", p.chart) // which asks no cluster
}
