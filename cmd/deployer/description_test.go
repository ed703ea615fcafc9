package main

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"math/bits"
	"path/filepath"
	"strconv"
	"strings"
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
		if c.args != "" && !strings.HasSuffix(c.args, "...]") && c.takes == "" && !c.is.has(severalForms) {
			t.Errorf("%s doesn't say for errors what its arguments %s are", command, c.args)
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

// What has to be known of a flag stands where it is declared: no list or table elsewhere has names of several flags, which
// nobody would think of who adds or renames one.
func TestNoParallelListOfFlags(t *testing.T) {
	names, otherWords := map[string]bool{}, map[string]bool{} // the latter also name a command or a value
	commands := newCommands(testEnv(t, "deployer"))
	for _, f := range allFlags(commands) {
		names[f.name] = true
		for _, word := range f.value.words {
			otherWords[word] = true
		}
	}
	for _, c := range commands {
		otherWords[c.name] = true
	}
	files := token.NewFileSet()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := goparser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			list, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			var found []string
			for _, item := range list.Elts {
				if pair, ok := item.(*ast.KeyValueExpr); ok {
					item = pair.Key
				}
				if text, ok := item.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if name, err := strconv.Unquote(text.Value); err == nil && names[name] && !otherWords[name] {
						found = append(found, name)
					}
				}
			}
			if len(found) > 1 {
				t.Errorf("%s lists flags by name: %s: make it an attribute (description.go)", files.Position(list.Pos()), strings.Join(found, ", "))
			}
			return true
		})
	}
}
