package main

import (
	"slices"
	"strings"
	"testing"
)

// Each flag can be given by DEPLOYER_ and its name: it takes the variable's value, or says that it can't. Flags without an
// effect have none, and DEPLOYER_VERSION is what scripts that install deployer call its version.
func TestEveryFlagHasAVariable(t *testing.T) {
	count := 0
	e := testEnv(t, "deployer")
	for command, c := range leaves(newCommands(e)) {
		for _, f := range c.flags {
			if f.name == "version" {
				continue
			}
			variable := "DEPLOYER_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
			t.Setenv(variable, "no number, no switch, no choice") // only flags of texts take it
			f.given = false
			if read := len(e.readEnvironment([]*flag{f})) > 0 || f.given; read == f.isHidden() {
				t.Errorf("%s --%s reads its variable: %t, want %t", command, f.name, read, !f.isHidden())
			}
			t.Setenv(variable, "")
			count++
		}
	}
	if count < 400 {
		t.Errorf("only %d flags were looked at", count)
	}
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
		line, err := parse(newCommands(e), append([]string{"list"}, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		e.call.flags = line.flags
		e.useFlags(e.global, everywhere)
		if got := e.kube.AuthInfo.ImpersonateGroups; !slices.Equal(got, c.want) {
			t.Errorf("groups of %q are %q, want %q", c.flags, got, c.want)
		}
	}
}
