package rules

import (
	_ "embed" // for the table of intended states
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed intended.yaml
var intendedData []byte

// intendedStates are the states of objects of any kind that somebody wants. They are parsed when first needed.
var intendedStates = sync.OnceValue(func() []*intendedState {
	var all []*intendedState
	err := yaml.UnmarshalStrict(intendedData, &all)
	for _, state := range all {
		if err == nil {
			state.compiled, err = compile(state.When, cel.BoolType)
		}
	}
	if err != nil {
		panic("intended.yaml: " + err.Error()) // a test reads it
	}
	return all
})

// intended is the verdict on an object whose controller does nothing because somebody wants that.
func intended(note string) Verdict {
	return Verdict{Phase: Ready, Message: note, Notes: []string{note}}
}

// intendedByAnyKind returns the verdict on an object that is in an intended state that doesn't depend on its kind.
// What Kueue holds isn't meant to stay so.
func intendedByAnyKind(in Input, vars map[string]any) (Verdict, bool) {
	if IsQueuedByKueue(in.Object) {
		return Verdict{}, false
	}
	for _, state := range intendedStates() {
		if state.compiled.isTrue(vars) {
			return intended(state.Note), true
		}
	}
	return Verdict{}, false
}

const scaledToZero = "scaled to zero"

// isScaledToZero reports whether an object wants no replicas, by any of the usual names, and its status has none.
func isScaledToZero(obj *unstructured.Unstructured) bool {
	wantsNone := slices.ContainsFunc([]string{"replicas", "instances", "numberOfInstances", "size"}, func(name string) bool {
		wanted, known := number(field(obj.Object, "spec", name))
		return known && wanted == 0
	})
	return wantsNone && hasStatus(obj) && count(obj.Object, "status", "replicas") == 0 && count(obj.Object, "status", "readyReplicas") == 0
}
