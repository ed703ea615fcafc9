package rules

import (
	"cmp"
	_ "embed" // for the rules of well-known kinds, and intended states
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
)

// A Rule evaluates objects of one kind by expressions of the Common Expression Language. The
// variables they may use are declared in environment (cel.go). An expression that meets a
// missing field is not true yet.
// https://kubernetes.io/docs/reference/using-api/cel/
type Rule struct {
	Group           string          `json:"group"`                // "cert-manager.io", "*.upbound.io"; empty is the core group
	Kind            string          `json:"kind"`                 // "Certificate"; "Issuer|ClusterIssuer"; "*" for each kind of the group
	Ready           string          `json:"ready"`                // true when the object is ready
	Failed          string          `json:"failed,omitempty"`     // true when it has failed
	FailedFor       metav1.Duration `json:"failedFor,omitempty"`  // how long Failed must hold; 0 is at once
	Message         string          `json:"message,omitempty"`    // a string that describes the progress
	Note            string          `json:"note,omitempty"`       // a string to show when it is ready, also without proof; empty for none
	Intended        string          `json:"intended,omitempty"`   // names a state that somebody wants and in which nothing happens, such as "suspended"; empty for none
	Unverified      string          `json:"unverified,omitempty"` // true when no controller appears to manage the object
	UnverifiedAfter metav1.Duration `json:"after,omitempty"`      // how long Unverified must hold
	NoProgress      metav1.Duration `json:"noProgress,omitempty"` // how long it may be without progress; 0 is the default, negative is for ever
	ObserveDelay    metav1.Duration `json:"settle,omitempty"`     // how long a controller that writes no generation has to see a change; 0 is 5 s

	compiled      programs
	compileOnce   sync.Once // of one that is built in: few of them are ever asked
	builtIn       bool      // shipped with deployer: Stalled, a missing status and the general intended states count too
	ofAnnotations bool      // it may lack Ready, and speaks by its expressions
}

// A Set holds rules for kinds. It is safe for concurrent use.
type Set struct {
	rules     map[schema.GroupKind]*Rule
	wildcards []*Rule // with a * in group or kind, in the order of the file
}

type ruleFile struct {
	Rules []*Rule `json:"rules"`
}

// An intendedState is a state of objects of any kind that somebody wants and in which their controller does
// nothing.
type intendedState struct {
	When string `json:"when"` // true when the object is in that state
	Note string `json:"note"`

	compiled *program
}

// unreadable says why a file has no rules, without the words of Go's decoder.
func unreadable(err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "), "json: ")
	if strings.Contains(text, " into Go ") {
		return errors.New(`not a file of rules: it needs a list "rules:" of group, kind, ready and failed`)
	}
	return fmt.Errorf("not a file of rules: %s", text)
}

// Parse reads a rules file, in YAML or JSON, and compiles its expressions. The
// error lists everything that is wrong with it.
func Parse(data []byte) (*Set, error) { return read(data, (*Rule).compile) }

// read reads a rules file, and prepares each rule.
func read(data []byte, prepare func(*Rule) error) (*Set, error) {
	var f ruleFile
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, unreadable(err)
	}
	set := &Set{rules: map[schema.GroupKind]*Rule{}}
	var errs []error
	for i, r := range f.Rules {
		if r == nil || r.Kind == "" || r.Ready == "" {
			errs = append(errs, fmt.Errorf("rule %d: kind and ready must be set", i+1))
			continue
		}
		if err := prepare(r); err != nil {
			errs = append(errs, fmt.Errorf("rule %d, %s: %w", i+1, r.groupKind(), err))
			continue
		}
		set.add(r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, nil
}

func (r *Rule) groupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

func (s *Set) add(r *Rule) {
	if strings.Contains(r.Group+r.Kind, "*") {
		s.wildcards = append(s.wildcards, r)
		return
	}
	for kind := range strings.SplitSeq(r.Kind, "|") {
		s.rules[schema.GroupKind{Group: r.Group, Kind: kind}] = r
	}
}

func (s *Set) find(gk schema.GroupKind) *Rule {
	if s == nil {
		return nil
	}
	if r, ok := s.rules[gk]; ok {
		return r
	}
	for _, r := range s.wildcards {
		if IsOfKind(gk, r.Group, r.Kind) {
			return r
		}
	}
	return nil
}

// IsOfKind reports whether a kind is that of a row of a table: the group may begin with "*", and the kind be "*" or "A|B".
func IsOfKind(gk schema.GroupKind, group, kind string) bool {
	suffix, wild := strings.CutPrefix(group, "*")
	return (kind == "*" || slices.Contains(strings.Split(kind, "|"), gk.Kind)) && (gk.Group == group || wild && strings.HasSuffix(gk.Group, suffix))
}

// Has reports whether the set has a rule for the kind.
func (s *Set) Has(gk schema.GroupKind) bool { return s.find(gk) != nil }

//go:embed wellknown.yaml
var wellKnownData []byte

// wellKnown holds the rules for kinds of common operators. They are read when first
// needed, and each is compiled when it is.
var wellKnown = sync.OnceValue(func() *Set {
	set, err := read(wellKnownData, func(r *Rule) error { r.builtIn = true; return nil })
	if err != nil {
		panic("wellknown.yaml: " + err.Error()) // a test reads it
	}
	return set
})

// compileBuiltIn compiles a rule that is built in, once.
func (r *Rule) compileBuiltIn() {
	r.compileOnce.Do(func() {
		if err := r.compile(); err != nil {
			panic("wellknown.yaml: " + err.Error()) // a test compiles them all
		}
	})
}

// evaluate applies the rule, if there is one. It doesn't decide if it only says when the object has failed.
func (r *Rule) evaluate(in Input) (v Verdict, decides bool) {
	if r == nil {
		return Verdict{}, false
	}
	if r.builtIn {
		r.compileBuiltIn()
	}
	vars := variables(in)
	if v, is := r.intendedState(in, vars); is {
		return v, true
	}
	if r.builtIn && r.Ready == "true" {
		return ready(""), true
	}
	if v, has := r.failure(in, vars); has {
		return v, true
	}
	if r.compiled.ready == nil {
		return Verdict{}, false
	}
	is, err := r.compiled.ready.eval(vars)
	switch {
	case err == nil && is == types.True:
		v = whenObserved(in, cmp.Or(r.ObserveDelay.Duration, observeDelay), func() Verdict { return ready(r.compiled.message.string(vars)) })
		if note := r.compiled.note.string(vars); note != "" {
			v.Notes = append(v.Notes, note)
		}
		v.NoProgress = r.NoProgress.Duration
		return v, true
	case r.ofAnnotations && err != nil:
		return progressing("waiting for: " + r.compiled.ready.source + " (" + OneLine(err.Error()) + ")"), true
	case r.ofAnnotations:
		return progressing("waiting for: " + r.compiled.ready.source), true
	}
	return r.unready(in, vars), true
}

// intendedState returns the verdict on an object in a state that somebody wants.
func (r *Rule) intendedState(in Input, vars map[string]any) (Verdict, bool) {
	if note := r.compiled.intended.string(vars); note != "" {
		return intended(note), true
	}
	if !r.builtIn {
		return Verdict{}, false
	}
	return intendedByAnyKind(in, vars)
}

// failure returns the verdict on an object that has failed. A controller that says Stalled won't try again.
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md#conditions
func (r *Rule) failure(in Input, vars map[string]any) (Verdict, bool) {
	if c := Condition(in.Object, "Stalled"); r.builtIn && conditionIs(c, "True") {
		if seen, _ := generationObserved(in.Object); seen {
			return Verdict{Phase: Failed, Class: class.ConditionFailed, Message: conditionText(c)}, true
		}
	}
	switch {
	case !r.compiled.failed.isTrue(vars):
		return Verdict{}, false
	case isOfEarlierGeneration(in):
		return progressing(notObserved), true
	case r.ofAnnotations:
		return Verdict{Phase: Failed, Class: class.RuleFailed, Message: "failed: " + r.compiled.failed.source}, true
	}
	return Verdict{Phase: Failed, Class: class.ConditionFailed, Grace: r.FailedFor.Duration, Message: r.message(in, vars), NoProgress: r.NoProgress.Duration}, true
}

// unready returns the verdict on an object that is neither ready nor has failed: some never get a status.
func (r *Rule) unready(in Input, vars map[string]any) Verdict {
	v := Verdict{Message: r.message(in, vars), NoProgress: r.NoProgress.Duration}
	switch {
	case r.builtIn && r.Kind == "*" && !hasStatus(in.Object) && in.HasStatus != nil && !*in.HasStatus:
		return Verdict{Phase: Ready, Unverified: true, Message: noStatusOfKind}
	case r.compiled.unverified.isTrue(vars):
		return unverifiedAfter(in, v, r.UnverifiedAfter.Duration, cmp.Or(r.compiled.note.string(vars), "no controller appears to manage it"))
	case r.builtIn && !hasStatus(in.Object):
		return unverifiedAfter(in, v, knownKindStatusTimeout, noController)
	case r.builtIn && isScaledToZero(in.Object):
		return whenObserved(in, observeDelay, func() Verdict { return intended(scaledToZero) })
	case r.builtIn && isHopeless(r.worst(in)) && !isOfEarlierGeneration(in):
		return Verdict{Phase: Failed, Class: class.ConditionFailed, Grace: falseConditionGrace, Message: v.Message, NoProgress: v.NoProgress}
	}
	return v
}

// isHopeless reports whether a condition says that its object has failed, for a reason that trying again doesn't heal.
func isHopeless(t told) bool {
	return (t.need == failing || t.need == unmet && failureReason().MatchString(text(t.condition, "reason"))) && isPermanent(t.condition)
}

// message describes the progress of an object: by the rule, otherwise by its conditions.
func (r *Rule) message(in Input, vars map[string]any) string {
	if m := r.compiled.message.string(vars); m != "" {
		return OneLine(m)
	}
	if worst := r.worst(in); worst.need < met {
		return worst.String()
	}
	return cmp.Or(text(in.Object.Object, "status", "phase"), "waiting for the controller")
}

// worst is the first condition that isn't as it should be, of those that the rule asks for if there is one.
func (r *Rule) worst(in Input) told {
	var asked []string
	for _, m := range askedType().FindAllStringSubmatch(r.Ready+r.Failed, -1) {
		if m[1] == "" {
			asked = append(asked, m[2])
		}
	}
	return worstCondition(in.Object, slices.Concat(asked, []string{"Synced"}, readyConditions)...)
}

// askedType matches the types of conditions in expressions, with what says that they must not be.
var askedType = lazyregexp.New(`(!\()?"([\w./-]+)" in (?:yes|no)\b`)

// NewRule compiles the rule of annotations, such as deployer.io/ready and deployer.io/failed; nil when both are empty.
func NewRule(ready, failed string) (*Rule, error) {
	if ready == "" && failed == "" {
		return nil, nil
	}
	r := &Rule{Ready: ready, Failed: failed, ofAnnotations: true}
	if err := r.compile(); err != nil {
		return nil, err
	}
	return r, nil
}

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
