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

// A permissionCase is a command of the life of a release, in some forms, and the heading of its permissions in the
// documentation, which it shares with the commands that one account usually runs.
type permissionCase struct {
	heading string
	forms   [][]string
}

func forms(all ...string) (out [][]string) {
	for _, line := range all {
		out = append(out, strings.Fields(line))
	}
	return out
}

const deploying = "install, upgrade, rollback"

// permissionCases are a release's life in order. ONE and TWO are its charts.
var permissionCases = []permissionCase{
	{"plan", forms("plan x ONE")},
	{deploying, forms("install x ONE")},
	{"list, history, get, status", forms("list", "list -a -o json", "history x", "status x", "get all x", "get values x", "get values x --all", "get manifest x", "get hooks x", "get notes x", "get metadata x", "get values x --revision 1")},
	{"plan --drift, explain", forms("plan x --drift", "explain x configmap/a", "explain x deployment/d spec.replicas")},
	{"test", forms("test x", "test x")}, // the second one replaces what the first has made
	{"plan", forms("plan x TWO")},
	{deploying, forms("upgrade x TWO")},
	{"plan", forms("plan --rollback x 1")},
	{deploying, forms("rollback x 1")},
	{"recover", forms("recover x")},
	{"plan", forms("plan --uninstall x")},
	{"uninstall", forms("uninstall x")},
}

func (w *world) permissionArgs(form []string) []string {
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
	for _, arg := range form {
		if templates, ok := charts[arg]; ok {
			arg = w.chart(templates...)
		}
		out = append(out, arg)
	}
	return out
}

// streamedLists is what older API servers refuse, so that a watch of theirs needs a list before it.
const streamedLists = "a list as the beginning of a watch"

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
	if out["/pods"]["watch"] {
		out["/events"] = map[string]bool{"list": true, "watch": true} // when pods aren't ready within a second
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

// add adds those of q.
func (p permissions) add(q permissions) {
	for what, verbs := range q {
		if p[what] == nil {
			p[what] = map[string]bool{}
		}
		maps.Copy(p[what], verbs)
	}
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

// TestPermissionsDoc: the documentation has what the commands of each heading ask for, no more and no
// less. With -update it is written anew. Who asks may do anything in one namespace only.
func TestPermissionsDoc(t *testing.T) {
	w := newWorld(t)
	w.cluster.Since(t, "1.34", streamedLists)
	asked := map[string]permissions{}
	user := w.onlyIn(kubetest.Rule("*", "*", "*"))
	for _, c := range permissionCases {
		mark := user.mark()
		for _, form := range c.forms {
			user.ok(w.permissionArgs(form)...)
		}
		if asked[c.heading] == nil {
			asked[c.heading] = permissions{}
		}
		asked[c.heading].add(askedFor(w.cluster.Audit(t, user.user.Name)[mark:], w.ns))
	}
	if *updateGuides {
		writePermissions(t, asked)
	}
	documented := documentedPermissions(t)
	for heading, its := range asked {
		if missing := documented[heading].lacks(its); len(missing) > 0 {
			t.Errorf("%s: %s doesn't say that it asks for %q: go test ./internal/e2e -run %s -update", heading, filepath.Base(permissionsDoc), missing, t.Name())
		}
		if more := its.lacks(documented[heading]); len(more) > 0 {
			t.Errorf("%s: %s says that it asks for %q, which it doesn't", heading, filepath.Base(permissionsDoc), more)
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
	for i, c := range permissionCases {
		if slices.IndexFunc(permissionCases, func(other permissionCase) bool { return other.heading == c.heading }) == i {
			text += fmt.Sprintf("\n### %s\n\n```yaml\nrules:\n%s```\n", c.heading, asked[c.heading])
		}
	}
	if err := os.WriteFile(permissionsDoc, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPermissionsSuffice runs each command as somebody who may do what the documentation
// says, and nothing else: it works, and nothing is refused.
func TestPermissionsSuffice(t *testing.T) {
	w := newWorld(t)
	w.cluster.Since(t, "1.34", streamedLists)
	documented := documentedPermissions(t)
	for _, c := range permissionCases {
		user := w.onlyIn(documented[c.heading].rules()...)
		for _, form := range c.forms {
			user.ok(w.permissionArgs(form)...)
		}
		for _, e := range w.cluster.Audit(t, user.user.Name) {
			if e.Code == 403 && e.Object.Namespace == w.ns {
				t.Errorf("%s: was refused %s", c.heading, e)
			}
		}
	}
}

// TestMissingPermissionIsNamed takes a single permission from each command that changes something:
// either it isn't needed, or the error says verb, resource and namespace and nothing of the chart
// has been changed. The exit code says so too, if it is a permission to change something. A rollback asks for objects
// as an upgrade does: without DEPLOYER_TEST_LONG it lacks only those for records, and for what it changes in its chart.
func TestMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	ofRecords := []string{"/secrets", "/configmaps", "coordination.k8s.io/leases"}
	documented := documentedPermissions(t)
	for command, before := range map[string][]string{
		"install":   nil,
		"upgrade":   {"install x ONE"},
		"rollback":  {"install x ONE", "upgrade x TWO"},
		"uninstall": {"install x ONE"},
		"test":      {"install x ONE"},
		"recover":   {"install x ONE"},
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t)
			c := permissionCases[slices.IndexFunc(permissionCases, func(c permissionCase) bool { return c.forms[0][0] == command })]
			args, all := w.permissionArgs(c.forms[0]), documented[c.heading]
			prepared := false
			for _, what := range slices.Sorted(maps.Keys(all)) {
				for _, verb := range slices.Sorted(maps.Keys(all[what])) {
					if verb == "watch" || what == "/pods/log" || strings.HasSuffix(what, "/leases") && verb != "create" {
						continue // the documentation says that these aren't needed
					}
					if command == "rollback" && os.Getenv(longEnv) == "" && !slices.Contains(ofRecords, what) {
						continue
					}
					if !prepared {
						w.try(deployerBinary, "uninstall", "x")
						for _, form := range forms(before...) {
							w.ok(w.permissionArgs(form)...)
						}
					}
					prepared = w.withoutPermission(all, what, verb, args)
				}
			}
		})
	}
}

// withoutPermission runs a command without one of its permissions. It reports whether the
// command failed without a change.
func (w *world) withoutPermission(all permissions, what, verb string, args []string) bool {
	w.Helper()
	less := maps.Clone(all)
	less[what] = maps.Clone(all[what])
	delete(less[what], verb)
	user := w.onlyIn(less.rules()...)
	mark := user.mark()
	r := user.try(deployerBinary, args...)
	if r.code == 0 {
		w.Logf("%s: not needed: %s %s", args[0], verb, what)
		return false
	}
	if changes := verb != "get" && verb != "list"; changes && args[0] != "recover" && r.code != 3 {
		w.Errorf("without %s %s: want exit code 3\n%s", verb, what, r)
	}
	_, resource, _ := strings.Cut(what, "/")
	w.says(r, "stderr", regexp.QuoteMeta(verb), regexp.QuoteMeta(resource), w.ns)
	made := user.allWrites(mark)
	if what != "/secrets" { // what can't be recorded isn't begun
		made = user.writes(mark)
	}
	if len(made) > 0 {
		w.Errorf("without %s %s it wrote %v\n%s", verb, what, made, r)
	}
	return len(user.allWrites(mark)) == 0
}
