package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTables finds tests whose rows run in parallel while they themselves don't: the package
// stands still until the last row of such a table has ended.
func TestTables(t *testing.T) {
	for _, dir := range []string{"apply", "cmd/deployer", "internal/deploy", "internal/e2e", "release", "track"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("tests of %s: %v, %v", dir, files, err)
		}
		functions := map[string]*ast.FuncDecl{}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range parsed.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil && f.Recv == nil {
					functions[f.Name.Name] = f
				}
			}
		}
		for name, f := range functions {
			if parallel, rows := parallelism(functions, f.Body, nil); strings.HasPrefix(name, "Test") && rows && !parallel {
				t.Errorf("%s: the rows of %s run in parallel, but not beside other tests: it needs t.Parallel()", dir, name)
			}
		}
	}
}

// parallelism says whether a test with this body runs in parallel, and whether rows of it do: by
// t.Parallel, called by it or by a function of the package that it calls.
func parallelism(functions map[string]*ast.FuncDecl, body ast.Node, through []string) (parallel, rows bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			switch {
			case f.Sel.Name == "Parallel" && len(call.Args) == 0:
				parallel = true
			case f.Sel.Name == "Run" && len(call.Args) == 2:
				rowParallel, rowRows := parallelism(functions, call.Args[1], through)
				rows = rows || rowParallel || rowRows
				return false
			}
		case *ast.Ident:
			called := functions[f.Name]
			if called == nil || slices.Contains(through, f.Name) {
				return true
			}
			calledParallel, calledRows := parallelism(functions, called.Body, append(through, f.Name))
			parallel, rows = parallel || calledParallel, rows || calledRows
		}
		return true
	})
	return parallel, rows
}
