package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"deployer/internal/kubetest"
)

const permissionsDoc = "../../docs/permissions.md"

// A permissionCase is one command of the life of a release, and the heading of its
// permissions in the documentation.
type permissionCase struct {
	heading string
	args    []string
}

// permissionCases are a release's life in order. ONE and TWO are its charts.
var permissionCases = []permissionCase{
	{"plan of an install", []string{"plan", "x", "ONE"}},
	{"install", []string{"install", "x", "ONE"}},
	{"list", []string{"list"}},
	{"history", []string{"history", "x"}},
	{"get", []string{"get", "all", "x"}},
	{"status", []string{"status", "x"}},
	{"plan --drift", []string{"plan", "x", "--drift"}},
	{"test", []string{"test", "x"}},
	{"plan of an upgrade", []string{"plan", "x", "TWO"}},
	{"upgrade", []string{"upgrade", "x", "TWO"}},
	{"plan --rollback", []string{"plan", "--rollback", "x", "1"}},
	{"rollback", []string{"rollback", "x", "1"}},
	{"recover", []string{"recover", "x"}},
	{"plan --uninstall", []string{"plan", "--uninstall", "x"}},
	{"uninstall", []string{"uninstall", "x"}},
}

func (w *world) permissionArgs(c permissionCase) []string {
	both := []string{
		configMap("a", "{{ .Release.Revision }}"),
		hookJob("migrate", "pre-install,pre-upgrade,pre-rollback,pre-delete", "before-hook-creation,hook-succeeded", false),
		hookJob("check", "test", "before-hook-creation", false),
	}
	charts := map[string][]string{
		"ONE": append(both[:len(both):len(both)], deployment("d", "d", "  replicas: 1"), configMap("dropped", "1")),
		"TWO": append(both[:len(both):len(both)], deployment("d", "d", "  replicas: 2")),
	}
	var out []string
	for _, arg := range c.args {
		if templates, ok := charts[arg]; ok {
			arg = w.chart(templates...)
		}
		out = append(out, arg)
	}
	return out
}

// permissions are verbs by API group and resource, as "group/resource".
type permissions map[string]map[string]bool

// askedFor is what a user has asked the API server for in a namespace, but for what
// everybody may.
func askedFor(events []kubetest.AuditEvent, namespace string) permissions {
	out := permissions{}
	for _, e := range events {
		o := e.Object
		if o.Resource == "" || o.Namespace != namespace || strings.HasPrefix(o.Group, "authorization.") {
			continue
		}
		what := o.Group + "/" + o.Resource
		if o.Subresource != "" {
			what += "/" + o.Subresource
		}
		if out[what] == nil {
			out[what] = map[string]bool{}
		}
		out[what][e.Verb] = true
		if e.Verb == "patch" && e.Code == http.StatusCreated {
			out[what]["create"] = true // asked for by the API server itself
		}
		if o.Resource == "leases" {
			out[what]["update"] = true // by runs that last
		}
	}
	for _, what := range []string{"/secrets", "coordination.k8s.io/leases"} {
		if verbs := out[what]; verbs != nil {
			verbs["get"] = true // for a release that somebody holds, and records that aren't read at once
		}
	}
	return out
}

func (p permissions) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, what := range slices.Sorted(maps.Keys(p)) {
		group, resource, _ := strings.Cut(what, "/")
		out = append(out, kubetest.Rule(group, strings.Join(slices.Sorted(maps.Keys(p[what])), ","), resource))
	}
	return out
}

func (p permissions) String() string {
	var out strings.Builder
	for _, r := range p.rules() {
		fmt.Fprintf(&out, "- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n", r.APIGroups[0], r.Resources[0], strings.Join(r.Verbs, ", "))
	}
	return out.String()
}

// lacks lists what q has and p doesn't.
func (p permissions) lacks(q permissions) []string {
	var out []string
	for what, verbs := range q {
		for verb := range verbs {
			if !p[what][verb] {
				out = append(out, verb+" "+what)
			}
		}
	}
	slices.Sort(out)
	return out
}

var permissionSection = regexp.MustCompile("(?s)### ([^\n]+)\n\n```yaml\nrules:\n(.*?)```\n")

// documentedPermissions are those of the documentation, by heading.
func documentedPermissions(t *testing.T) map[string]permissions {
	t.Helper()
	data, err := os.ReadFile(permissionsDoc)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]permissions{}
	for _, section := range permissionSection.FindAllStringSubmatch(string(data), -1) {
		var rules []rbacv1.PolicyRule
		if err := yaml.Unmarshal([]byte(section[2]), &rules); err != nil {
			t.Fatalf("%s: %v", section[1], err)
		}
		p := permissions{}
		for _, r := range rules {
			verbs := map[string]bool{}
			for _, v := range r.Verbs {
				verbs[v] = true
			}
			p[r.APIGroups[0]+"/"+r.Resources[0]] = verbs
		}
		out[section[1]] = p
	}
	return out
}

// onlyIn is the world of a user who may do that in the world's namespace, and nothing
// else anywhere.
func (w *world) onlyIn(rules ...rbacv1.PolicyRule) *world {
	own := *w
	own.user = w.cluster.User(w.T, w.ns, rules...)
	own.kubeconfig = own.user.Kubeconfig(w.T, w.ns)
	return &own
}

// TestPermissionsDoc: the documentation has what each command asks for, no more and no
// less. With -update it is written anew. Who asks may do anything in one namespace only.
func TestPermissionsDoc(t *testing.T) {
	w := newWorld(t)
	asked := map[string]permissions{}
	user := w.onlyIn(kubetest.Rule("*", "*", "*"))
	for _, c := range permissionCases {
		mark := user.mark()
		user.ok(w.permissionArgs(c)...)
		asked[c.heading] = askedFor(w.cluster.Audit(t, user.user.Name)[mark:], w.ns)
	}
	if *updateGuides {
		writePermissions(t, asked)
	}
	documented := documentedPermissions(t)
	for _, c := range permissionCases {
		if missing := documented[c.heading].lacks(asked[c.heading]); len(missing) > 0 {
			t.Errorf("%s: %s doesn't say that it asks for %q: go test ./internal/e2e -run %s -update", c.heading, filepath.Base(permissionsDoc), missing, t.Name())
		}
		if more := asked[c.heading].lacks(documented[c.heading]); len(more) > 0 {
			t.Errorf("%s: %s says that it asks for %q, which it doesn't", c.heading, filepath.Base(permissionsDoc), more)
		}
	}
}

// writePermissions puts the rules into the documentation behind its text.
func writePermissions(t *testing.T, asked map[string]permissions) {
	t.Helper()
	data, err := os.ReadFile(permissionsDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(data), "\n### ")
	if !found {
		text = strings.TrimRight(text, "\n") + "\n"
	}
	for _, c := range permissionCases {
		text += fmt.Sprintf("\n### %s\n\n```yaml\nrules:\n%s```\n", c.heading, asked[c.heading])
	}
	if err := os.WriteFile(permissionsDoc, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPermissionsSuffice runs each command as somebody who may do what the documentation
// says, and nothing else: it works, and nothing is refused.
func TestPermissionsSuffice(t *testing.T) {
	w := newWorld(t)
	documented := documentedPermissions(t)
	for _, c := range permissionCases {
		user := w.onlyIn(documented[c.heading].rules()...)
		user.ok(w.permissionArgs(c)...)
		for _, e := range w.cluster.Audit(t, user.user.Name) {
			if e.Code == 403 && e.Object.Namespace == w.ns {
				t.Errorf("%s: was refused %s", c.heading, e)
			}
		}
	}
}

// TestMissingPermissionIsNamed takes single permissions from an install: either it isn't
// needed, or the error says verb, resource and namespace and nothing of the chart has been
// changed.
func TestMissingPermissionIsNamed(t *testing.T) {
	w := newWorld(t)
	documented := documentedPermissions(t)["install"]
	install := permissionCase{args: []string{"install", "x", "ONE"}}
	for what, verbs := range map[string]string{"/secrets": "list", "apps/deployments": "patch", "/configmaps": "get", "batch/jobs": "patch"} {
		t.Run(verbs+" "+what, func(t *testing.T) {
			less := permissions{}
			for key, value := range documented {
				less[key] = maps.Clone(value)
			}
			for verb := range strings.SplitSeq(verbs, ",") {
				if !less[what][verb] {
					t.Skipf("%s %s isn't asked for", verb, what)
				}
				delete(less[what], verb)
			}
			user := w.onlyIn(less.rules()...)
			mark := user.mark()
			r := user.try(deployerBinary, w.permissionArgs(install)...)
			if r.code == 0 {
				w.ok("uninstall", "x")
				return
			}
			_, resource, _ := strings.Cut(what, "/")
			w.says(r, "stderr", verbs, resource, w.ns)
			if made := user.writes(mark); len(made) > 0 {
				t.Errorf("it wrote %v\n%s", made, r)
			}
		})
	}
}
