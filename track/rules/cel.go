package rules

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

// costLimit stops expressions that would take too long; a usual one costs a few hundred.
const costLimit = 1_000_000

// program is a compiled expression; nil is the empty one.
type program struct {
	source string
	cel    cel.Program
}

// programs are the expressions of a Rule.
type programs struct{ ready, failed, message, note, intended, unverified *program }

func (r *Rule) compile() error {
	var errs []error
	compiled := func(source string, want *cel.Type) *program {
		p, err := compile(source, want)
		errs = append(errs, err)
		return p
	}
	r.compiled = programs{
		ready: compiled(r.Ready, cel.BoolType), failed: compiled(r.Failed, cel.BoolType),
		message: compiled(r.Message, cel.StringType), note: compiled(r.Note, cel.StringType),
		intended: compiled(r.Intended, cel.StringType), unverified: compiled(r.Unverified, cel.BoolType),
	}
	return errors.Join(errs...)
}

// environment declares the variables of expressions. It is built when first needed.
//
//	self      the object
//	was       the object as the apply left it, before its controller saw it; empty when the apply changed nothing
//	observed  whether the controller has seen the present generation, as far as it says
//	yes, no   the types of the conditions that are True and False, and not of an earlier generation
//	fresh     the types of the conditions that were written after the apply
//	reason    reason of each condition, by type
//	said      message of each condition, by type
var environment = sync.OnceValues(func() (*cel.Env, error) {
	strs := cel.ListType(cel.StringType)
	texts := cel.MapType(cel.StringType, cel.StringType)
	return cel.NewEnv(
		cel.Variable("self", cel.DynType),
		cel.Variable("was", cel.DynType),
		cel.Variable("observed", cel.BoolType),
		cel.Variable("yes", strs),
		cel.Variable("no", strs),
		cel.Variable("fresh", strs),
		cel.Variable("reason", texts),
		cel.Variable("said", texts),
		cel.OptionalTypes(),
		ext.Strings(),
	)
})

func compile(source string, want *cel.Type) (*program, error) {
	source = strings.TrimSpace(source)
	if source == "" {
		return nil, nil
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%q: %w", source, issues.Err())
	}
	if out := ast.OutputType(); !out.IsExactType(want) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q gives %s, not %s", source, out, want)
	}
	compiled, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", source, err)
	}
	return &program{source: source, cel: compiled}, nil
}

// eval evaluates an expression. It returns nil for the empty one.
func (p *program) eval(vars map[string]any) (ref.Val, error) {
	if p == nil {
		return nil, nil
	}
	out, _, err := p.cel.Eval(vars)
	return out, err
}

// isTrue is false when a field is missing.
func (p *program) isTrue(vars map[string]any) bool {
	out, err := p.eval(vars)
	return err == nil && out == types.True
}

// string evaluates to the empty string when a field is missing.
func (p *program) string(vars map[string]any) string {
	out, err := p.eval(vars)
	if err != nil || out == nil {
		return ""
	}
	s, _ := out.Value().(string)
	return s
}

func variables(in Input) map[string]any {
	yes, no, freshTypes := []string{}, []string{}, []string{}
	reason, said := map[string]string{}, map[string]string{}
	for _, c := range Conditions(in.Object) {
		kind := text(c, "type")
		reason[kind], said[kind] = text(c, "reason"), OneLine(text(c, "message"))
		if isFresh(in, c) {
			freshTypes = append(freshTypes, kind)
		}
		if isOutOfDate(in.Object, c) {
			continue
		}
		switch {
		case conditionIs(c, "True"):
			yes = append(yes, kind)
		case conditionIs(c, "False"):
			no = append(no, kind)
		}
	}
	seen, _ := generationObserved(in.Object)
	was := map[string]any{}
	if in.Changed && in.Baseline != nil {
		was = in.Baseline.Object
	}
	return map[string]any{
		"self": in.Object.Object, "was": was, "observed": seen, "yes": yes, "no": no,
		"fresh": freshTypes, "reason": reason, "said": said,
	}
}
