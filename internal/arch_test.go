package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allowed says which of our packages each of our packages may import. A room
// inside a room (apply/fields) may be imported by its house and what it names.
var allowed = map[string][]string{
	"internal/kube":         {"internal/lazyregexp"},
	"internal/annotation":   {},
	"internal/program":      {},
	"internal/collector":    {},
	"internal/lcs":          {},
	"internal/lazyregexp":   {},
	"internal/agekey":       {},
	"internal/hide":         {"internal/annotation", "internal/lazyregexp"},
	"internal/plugin":       {"internal/program", "internal/lazyregexp"},
	"internal/kubetest":     {},
	"internal/helmtest":     {},
	"internal/deployertest": {"internal/kubetest"},
	"internal/nodetest":     {},
	"chart":                 {"internal/agekey", "internal/annotation", "internal/kube", "internal/lcs", "internal/program", "internal/lazyregexp"},
	"release":               {"internal/annotation", "internal/kube", "internal/program", "internal/lazyregexp"},
	"apply":                 {"internal/annotation", "internal/kube", "internal/hide", "internal/lazyregexp"},
	"track":                 {"internal/annotation", "internal/kube", "internal/lazyregexp"},
	"internal/deploy":       {"chart", "release", "apply", "track", "internal/kube", "internal/hide", "internal/program"},
	"internal/planfile":     {"internal/agekey", "internal/deploy", "chart", "release", "apply", "internal/kube", "internal/hide", "internal/program"},
	"internal/view":         {"internal/deploy", "chart", "release", "apply", "track", "internal/kube", "internal/hide", "internal/lcs", "internal/program", "internal/lazyregexp"},
	"cmd/deployer":          {"internal/agekey", "internal/deploy", "internal/planfile", "internal/plugin", "internal/view", "internal/kube", "internal/hide", "chart", "release", "apply", "track", "internal/program", "internal/collector", "internal/lazyregexp"},
	"internal/bench":        {"internal/kubetest"},
	"internal/sbom":         {},
	"internal/e2e":          {"testcharts"},
	"testcharts":            {},
	"internal":              {},
}

// inside says which packages of its own house each package may import. The package that a house is named
// after may import all below it; who isn't here, none.
var inside = map[string][]string{
	"chart/develop":            {"chart", "chart/internal/limits", "chart/internal/yamltext"},
	"chart/retain":             {"chart", "chart/internal/yamltext"},
	"chart/repository":         {"chart", "chart/internal/limits"},
	"apply/compare":            {"apply/fields", "apply/ownership"},
	"apply/decide":             {"apply/definition", "apply/fields", "apply/provenance", "apply/verify"},
	"apply/definition":         {"apply/fields", "apply/verify"},
	"apply/inspect":            {"apply", "apply/compare", "apply/decide", "apply/fields", "apply/ownership", "apply/provenance"},
	"apply/manifest":           {"apply/builtin", "apply/fields"},
	"apply/ownership":          {"apply/fields"},
	"apply/predict":            {"apply/builtin", "apply/compare", "apply/fields", "apply/manifest", "apply/ownership"},
	"apply/provenance":         {"apply/compare", "apply/fields", "apply/ownership"},
	"apply/verify":             {"apply/fields"},
	"track/finding":            {"track/class", "track/rules"},
	"track/pods":               {"track/class", "track/finding", "track/rules"},
	"track/rules":              {"track/class"},
	"internal/view/output":     {"internal/view/textfmt"},
	"internal/view/page":       {"internal/view/diff", "internal/view/output", "internal/view/textfmt"},
	"internal/view/plan":       {"internal/view/diff", "internal/view/output", "internal/view/page", "internal/view/textfmt"},
	"internal/view/inspection": {"internal/view/diff", "internal/view/output", "internal/view/page", "internal/view/textfmt"},
	"internal/view/run":        {"internal/view/diff", "internal/view/output", "internal/view/page", "internal/view/plan", "internal/view/textfmt"},
	"internal/view/helm":       {"internal/view/output", "internal/view/run"},
}

// forbidden are packages of Helm that are not even in the program: they carry
// the three-way merge, the polling waits and the storage that deployer
// replaces. Helm's pkg/kube is in it because Helm's pkg/cli, which its
// downloader needs, imports it; ours may not.
var forbidden = []string{
	"helm.sh/helm/v3/pkg/action",
	"helm.sh/helm/v3/pkg/storage",
}

const helmKube = "helm.sh/helm/v3/pkg/kube"

// helm says who may import Helm at all, and which of it.
var helm = map[string]string{
	"chart":             "",
	"release":           "",
	"internal/deploy":   "helm.sh/helm/v3/pkg/release helm.sh/helm/v3/pkg/time",
	"internal/plugin":   "helm.sh/helm/v3/pkg/plugin helm.sh/helm/v3/pkg/plugin/cache helm.sh/helm/v3/pkg/plugin/installer",
	"internal/planfile": "helm.sh/helm/v3/pkg/release helm.sh/helm/v3/pkg/chart",
	"internal/view":     "helm.sh/helm/v3/pkg/release helm.sh/helm/v3/pkg/time helm.sh/helm/v3/pkg/chart",
	"cmd/deployer":      "helm.sh/helm/v3/pkg/release helm.sh/helm/v3/pkg/chart",
}

// TestImports holds the arrows of ARCHITECTURE.md.
func TestImports(t *testing.T) {
	for _, line := range list(t, `{{.ImportPath}} {{join .Imports " "}}`) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(strings.TrimPrefix(fields[0], "deployer"), "/")
		house, ok := houseOf(pkg)
		if !ok {
			t.Errorf("package %s has no place in the house: add it to the table and to ARCHITECTURE.md", pkg)
			continue
		}
		for _, imported := range fields[1:] {
			check(t, pkg, house, imported)
		}
	}
	for _, dep := range list(t, `{{join .Deps "\n"}}`, "./cmd/...") {
		for _, f := range forbidden {
			if dep == f {
				t.Errorf("the program depends on %s", f)
			}
		}
	}
}

// pure are packages that only compute: they are tested without a cluster.
var pure = []string{
	"apply/builtin", "apply/compare", "apply/decide", "apply/definition", "apply/fields", "apply/manifest", "apply/ordering", "apply/ownership", "apply/predict", "apply/provenance", "apply/verify",
	"track/class", "track/finding", "track/pods", "track/rules",
}

// clients are the packages that make requests.
var clients = []string{"k8s.io/client-go/rest", "k8s.io/client-go/dynamic", "k8s.io/client-go/metadata", "k8s.io/client-go/kubernetes"}

// TestPurePackagesMakeNoRequests: who makes a request needs a context for it. verify only names the errors of
// contexts and the codes of answers.
func TestPurePackagesMakeNoRequests(t *testing.T) {
	for _, pkg := range pure {
		for _, imported := range strings.Fields(list(t, `{{join .Imports " "}}`, "./"+pkg)[0]) {
			if pkg != "apply/verify" && (imported == "context" || imported == "net/http") || slices.Contains(clients, imported) {
				t.Errorf("%s is said to be pure and imports %s", pkg, imported)
			}
		}
	}
}

func check(t *testing.T, pkg, house, imported string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imported, "deployer/"); ok {
		target, _ := houseOf(own)
		if target == house {
			if pkg != house && !slices.Contains(inside[pkg], own) {
				t.Errorf("%s must not import %s: see inside", pkg, own)
			}
			return
		}
		for _, a := range allowed[house] {
			if target == a {
				return
			}
		}
		t.Errorf("%s must not import %s", pkg, own)
		return
	}
	if !strings.HasPrefix(imported, "helm.sh/") {
		return
	}
	permitted, ok := helm[house]
	if !ok || imported == helmKube || permitted != "" && !strings.Contains(" "+permitted+" ", " "+imported+" ") {
		t.Errorf("%s must not import %s", pkg, imported)
	}
}

// houseOf finds the longest table entry that pkg is or lies under.
func houseOf(pkg string) (string, bool) {
	best, found := "", false
	for name := range allowed {
		inside := pkg == name || strings.HasPrefix(pkg, name+"/") && name != "internal"
		if inside && len(name) >= len(best) {
			best, found = name, true
		}
	}
	return best, found
}

// TestDependenciesAreExplained wants a reason for every direct dependency.
func TestDependenciesAreExplained(t *testing.T) {
	doc, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range list(t, `{{if not .Indirect}}{{if not .Main}}{{.Path}}{{end}}{{end}}`, "-m", "all") {
		if module != "" && !strings.Contains(string(doc), "`"+module+"`") {
			t.Errorf("docs/dependencies.md doesn't say why %s is there", module)
		}
	}
}

func list(t *testing.T, format string, args ...string) []string {
	t.Helper()
	if len(args) == 0 {
		args = []string{"./..."}
	}
	cmd := exec.Command("go", append([]string{"list", "-f", format}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// commandLine is a command line of ours in a text.
var commandLine = regexp.MustCompile(`(^|[ ('"])deployer (upgrade|install|plan|apply|rollback|uninstall|test|recover|list|status|history|get|explain|template|lint|show|create|dependency|package|verify|repo|search|pull|push|registry|plugin|env|version|completion|help)\b`)

// TestHintsNameTheProgramByItsPlaceholder: hints, errors and warnings are shown
// under the name helm too, and no finished text is searched for the name. What
// help says is another matter: it is put into the words of the name as a whole.
func TestHintsNameTheProgramByItsPlaceholder(t *testing.T) {
	files := token.NewFileSet()
	for _, dir := range []string{"../chart", "../release", "../apply", "../track", "deploy", "planfile", "plugin", "view", "kube", "../cmd/deployer"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "../release/body.go" { // which speaks to Helm's users
				return err
			}
			parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if field, ok := n.(*ast.KeyValueExpr); ok {
					if name, ok := field.Key.(*ast.Ident); ok && slices.Contains([]string{"examples", "steps", "usage", "codes"}, name.Name) {
						return false // of a command's help
					}
				}
				literal, ok := n.(*ast.BasicLit)
				help := ok && (strings.Contains(literal.Value, "Examples:") || strings.Contains(literal.Value, "\n  deployer") || strings.Contains(literal.Value, "for deployer apply") || literal.Value == `"deployer plan v1"`)
				if ok && !help && literal.Kind == token.STRING && commandLine.MatchString(strings.Trim(literal.Value, "`\"")) {
					t.Errorf("%s: use program.Name in %s", files.Position(literal.Pos()), literal.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
