package annotation

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var update = flag.Bool("update", false, "write docs/annotations.md")

const root = "../.."

// TestDocumentation holds docs/annotations.md to the list: go test -update writes it.
func TestDocumentation(t *testing.T) {
	const page = root + "/docs/annotations.md"
	if *update {
		if err := os.WriteFile(page, []byte(documentation()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != documentation() {
		t.Error("docs/annotations.md isn't what the list says: go test ./internal/annotation -update")
	}
}

// documentation is the page; ~ stands for a backtick.
func documentation() string {
	var b strings.Builder
	b.WriteString(`# Annotations

Read this to tell deployer what to do with one object of a chart. Put the annotations on the object, not on its pod template. ~*~ stands for a name, and *workloads* are ` + kindNames(withPods) + `. The annotations of Nelm and werf in the last
column mean the same; if an object has both, deployer's counts. deployer warns of an annotation of ~deployer.io~ that isn't here or has no effect on the object's kind.

| Annotation | Values | Meaning | Nelm and werf |
|---|---|---|---|
`)
	for _, info := range All() {
		meaning := info.Doc
		if len(info.Kinds) == len(withPods) {
			meaning += "; for workloads"
		} else if info.Kinds != nil {
			meaning += "; for " + kindNames(info.Kinds)
		}
		b.WriteString("| " + strings.Join([]string{"~" + info.Name + "~", info.Values, meaning, quoted(info.Aliases)}, " | ") + " |\n")
	}
	b.WriteString(`
More about them: [order](order.md), [tracking](tracking.md#annotations), [conflicts and recreation](apply.md),
[generated values](generated-values.md), [confidential values](secrets.md). Helm's own annotations mean the same as in Helm.

deployer doesn't follow these annotations of Nelm and werf; a warning says what to use instead: ` + notFollowed() + `.
`)
	return strings.ReplaceAll(b.String(), "~", "`")
}

func quoted(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, "~"+name+"~")
	}
	return strings.Join(out, ", ")
}

func notFollowed() string {
	var names []string
	for name, instead := range ofWerf {
		if instead != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return quoted(names)
}

// TestReaders: the packages that an annotation names read it, no others do, and
// nobody writes its name down a second time.
func TestReaders(t *testing.T) {
	variables := variablesOfTheList(t)
	read := map[string]map[string]bool{} // by annotation: packages
	for _, dir := range []string{"apply", "chart", "cmd", "internal", "release", "track"} {
		walk(t, dir, func(pkg string, file *ast.File, position func(token.Pos) token.Position) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "annotation" {
						for _, name := range variables[n.Sel.Name] {
							if read[name] == nil {
								read[name] = map[string]bool{}
							}
							read[name][pkg] = true
						}
					}
				case *ast.BasicLit:
					text, err := strconv.Unquote(n.Value)
					if err == nil && n.Kind == token.STRING && namesOne(text) {
						t.Errorf("%s: use package annotation for %s", position(n.Pos()), text)
					}
				}
				return true
			})
		})
	}
	for _, info := range All() {
		for _, pkg := range info.Packages {
			if !read[info.Name][pkg] {
				t.Errorf("%s doesn't read %s", pkg, info.Name)
			}
		}
		for pkg := range read[info.Name] {
			if !slices.Contains(info.Packages, pkg) {
				t.Errorf("%s reads %s, and the list doesn't say so", pkg, info.Name)
			}
		}
	}
}

// namesOne reports whether a text has the name of an annotation in it.
func namesOne(text string) bool {
	return slices.ContainsFunc(All(), func(info Info) bool { return strings.Contains(text, info.Name) })
}

// variablesOfTheList are the annotations by the variables and functions that read them.
func variablesOfTheList(t *testing.T) map[string][]string {
	out := map[string][]string{"OrderOf": {DependsOn.Name, ExternalDependencies.Name, Weight.Name}}
	file, err := parser.ParseFile(token.NewFileSet(), "list.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		ast.Inspect(spec.Values[0], func(n ast.Node) bool {
			if pair, ok := n.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Name" {
					literal := pair.Value.(*ast.BinaryExpr).Y.(*ast.BasicLit)
					out[spec.Names[0].Name] = []string{Prefix + strings.Trim(literal.Value, `"`)}
				}
			}
			return true
		})
		return false
	})
	if len(out) != len(All())+1 {
		t.Fatalf("%d variables, %d annotations", len(out)-1, len(All()))
	}
	return out
}

// walk parses the Go files of a folder but for tests and this package.
func walk(t *testing.T, dir string, visit func(pkg string, file *ast.File, position func(token.Pos) token.Position)) {
	files := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || pkg == "internal/annotation" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(packageOf(pkg), file, files.Position)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// packageOf is the package that the list names for a folder: that of the first
// floor of the house, or of internal.
func packageOf(dir string) string {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func TestEachNameIsUsedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range All() {
		for _, name := range append([]string{info.Name}, info.Aliases...) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if info.Doc == "" || info.Values == "" || len(info.Packages) == 0 {
			t.Errorf("%s isn't described", info.Name)
		}
	}
	for name := range ofWerf {
		if find(name) != nil {
			t.Errorf("%s is followed", name)
		}
	}
}

func TestOurNameCountsBeforeAliases(t *testing.T) {
	got, ok, errs := FailMode.Read(map[string]string{"werf.io/fail-mode": "IgnoreAndContinueDeployProcess", "deployer.io/fail-mode": "warn"})
	if got != "warn" || !ok || len(errs) > 0 {
		t.Errorf("%q, %v, %v", got, ok, errs)
	}
	got, ok, errs = FailMode.Read(map[string]string{"werf.io/fail-mode": "IgnoreAndContinueDeployProcess", "deployer.io/fail-mode": "maybe"})
	if got != "ignore" || !ok || len(errs) != 1 || errs[0].Name != "deployer.io/fail-mode" {
		t.Errorf("%q, %v, %v", got, ok, errs)
	}
}

func TestWithoutEffect(t *testing.T) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	for name, want := range map[string]string{
		"deployer.io/weight":                             "",
		"deployer.io/wieght":                             "is not known and has no effect",
		"deployer.io/rollout-required":                   "has no effect on objects of kind Job: it is for Deployment, StatefulSet, DaemonSet",
		"deployer.io/logs-regex-for-app":                 "",
		"werf.io/failures-allowed-per-replica":           "has no effect on objects of kind Job",
		"werf.io/ownership":                              "has no effect: objects belong to their release",
		"werf.io/version":                                "",
		"werf.io/ignore-readiness-probe-fails-for-nginx": "",
		"example.com/weight":                             "",
	} {
		got := strings.Join(WithoutEffect(map[string]string{name: "x"}, job), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Nobody gets the permission to destroy data from a word that isn't exactly it.
func TestRecreateIsExactlyTrue(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": false, "1": false, " true": false, "": false} {
		if got, _, _ := Recreate.Read(map[string]string{"deployer.io/recreate": value}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
