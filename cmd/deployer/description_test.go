package main

import (
	"math/bits"
	"testing"
)

// Whoever adds a flag says at its place how often it is needed, whether it may be suggested, and what its value is called,
// by which it is completed.
func TestFlagsHaveTheirAttributes(t *testing.T) {
	e := testEnv(t, "deployer")
	for command, c := range leaves(newCommands(e)) {
		for _, f := range c.flags {
			if f.isHidden() {
				continue
			}
			if bits.OnesCount(uint(f.is&(common|usual|rare))) != 1 || bits.OnesCount(uint(f.is&(safe|risky))) != 1 || f.usage == "" {
				t.Errorf("%s --%s is none or several of common, usual and rare, or of safe and risky, or has no usage", command, f.name)
			}
			if _, known := kinds()[f.kind()]; !known && f.value.words == nil && f.value.bare == "" {
				t.Errorf("%s --%s: no kind of value is called %q: choose one of complete_values.go, or add it there, with nil if nothing can be offered", command, f.name, f.kind())
			}
		}
		if c.usage == "" {
			t.Errorf("%s has no usage", command)
		}
	}
}

// A flag that a saved plan has decided isn't a flag of apply.
func TestApplyHasNoFlagOfThePlan(t *testing.T) {
	for _, f := range commandNamed(newCommands(testEnv(t, "deployer")), "apply").flags {
		if f.is.has(fixed) {
			t.Errorf("apply has --%s", f.name)
		}
	}
}
