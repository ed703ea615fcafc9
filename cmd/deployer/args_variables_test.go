package main

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// Each flag can be given by DEPLOYER_ and its name: it takes the variable's
// value, or says that it can't. Flags without an effect have none, and
// DEPLOYER_VERSION is what scripts that install deployer call its version.
func TestEveryFlagHasAVariable(t *testing.T) {
	count := 0
	e := testEnv(t, "deployer")
	for command, c := range leaves(newApp(e).Commands) {
		e.prepareToRun(c)
		for _, f := range c.Flags {
			name := f.Names()[0]
			if name == "version" {
				continue
			}
			_, without := idleFlag(f)
			if read := readsVariable(t, f, "DEPLOYER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); read == without {
				t.Errorf("%s --%s reads its variable: %t, want %t", command, name, read, !without)
			}
			count++
		}
	}
	if count < 400 {
		t.Errorf("only %d flags were looked at", count)
	}
}

// readsVariable reports whether a value of the variable arrives at the flag. No
// type of flag takes it but one of texts, and all others complain.
func readsVariable(t *testing.T, f cli.Flag, variable string) bool {
	t.Helper()
	t.Setenv(variable, "no number, no switch, no choice")
	defer t.Setenv(variable, "")
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return f.Apply(set) != nil || f.IsSet()
}

// The name of a group may have commas in it. Helm separates groups by commas only in its variable.
func TestGroupWithCommas(t *testing.T) {
	const group = "CN=ops,OU=groups"
	for _, c := range []struct {
		flags []string
		want  []string
	}{
		{[]string{"--kube-as-group=" + group}, []string{group}},
		{nil, []string{"CN=ops", "OU=groups"}},
	} {
		t.Setenv("HELM_KUBEASGROUPS", group)
		e := testEnv(t, "deployer")
		e.useGlobalFlags(c.flags)
		if got := e.kube.AsGroups; !slices.Equal(got, c.want) {
			t.Errorf("groups of %q are %q, want %q", c.flags, got, c.want)
		}
	}
}
