#!/bin/sh
# github.com/google/cel-go 0.29.2, with optional types as the API server has them. A text is asked for a field, plainly and optionally (.?). The guess:
# both are errors, as optional selection is for what may be missing and not for what has no fields at all. The plain one is an
# error; the optional one is none, so that orValue hides that the value has another type than the rule was written for.
. "$(dirname "$0")/lib/program.sh"
program github.com/google/cel-go@v0.29.2 <<'GO'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

func main() {
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("o", cel.DynType))
	if err != nil {
		panic(err)
	}
	for _, rule := range []string{"o.s.x", "o.?s.?x.orValue('default')", "o.?none.?x.orValue('default')", "o[?0].hasValue()"} {
		ast, issues := env.Compile(rule)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		out, _, err := program.Eval(map[string]any{"o": map[string]any{"s": "a text"}})
		if err != nil {
			fmt.Println(rule, "-> error")
			continue
		}
		fmt.Println(rule, "->", out.Value())
	}
}
GO
expect <<'OUT'
o.s.x -> error
o.?s.?x.orValue('default') -> default
o.?none.?x.orValue('default') -> default
o[?0].hasValue() -> false
OUT
