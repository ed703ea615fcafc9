package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

func (s *story) as(u *kubetest.User) *story {
	config := u.Config()
	config.UserAgent = s.agent
	s.cluster = kube.New(config, s.ns)
	return s
}

func change(t *testing.T, p *apply.Plan, kind, name string) apply.Change {
	t.Helper()
	for _, c := range slices.AppendSeq(p.Hooks[:len(p.Hooks):len(p.Hooks)], p.Changes()) {
		if c.ID.Kind == kind && c.ID.Name == name {
			return c
		}
	}
	t.Fatalf("no change of %s/%s in\n%s", kind, name, summary(p))
	return apply.Change{}
}

// removed are the fields that a change takes away.
func removed(c apply.Change) []compare.FieldChange {
	return slices.DeleteFunc(slices.Clone(c.Fields), func(f compare.FieldChange) bool { return f.Type != compare.Removed })
}

const read = "get,list"

// Whoever may only read gets a plan, an estimate, and may not run it.
func TestReaderGetsAnEstimate(t *testing.T) {
	t.Parallel()
	for _, verbs := range []string{read, "get"} {
		t.Run(verbs, func(t *testing.T) {
			s := begin(t)
			chart := small + config("x") + config("yy") + config("z") + config("zz")
			s.deploy(chart)
			u := s.c.User(t, s.ns, kubetest.Rule("", verbs, "configmaps", "services"), kubetest.Rule("apps", verbs, "deployments"),
				kubetest.Rule("batch", verbs, "jobs"), kubetest.Rule("autoscaling", verbs, "horizontalpodautoscalers"))
			s.as(u)
			from := len(s.c.Audit(t, u.Name))
			s.expect(s.plan(chart)) // nothing to do needs no permission
			next := strings.Replace(strings.Replace(small, "nginx:1", "nginx:2", 1), `a: "1"`, `a: "2"`, 1)
			next += config("new") + config("yy") + config("z") + config("zz")
			s.hooks = migration
			s.marks = nil
			p := s.plan(next)
			s.expect(p, "update Deployment/web", "update ConfigMap/conf", "create ConfigMap/new", "delete ConfigMap/x")
			d := change(t, p, "Deployment", "web")
			if want := "local estimate: no permission to patch deployments.apps in namespace " + s.ns; d.Unverified != want {
				t.Errorf("Unverified: %q, want %q", d.Unverified, want)
			}
			if got := at(d.Predicted, "spec.template.spec.containers.app.image"); got != "nginx:2" {
				t.Errorf("the estimate: %v", got)
			}
			if got := at(d.Predicted, "spec.template.spec.dnsPolicy"); got != "ClusterFirst" {
				t.Errorf("the estimate lacks what is live: %v", got)
			}
			err := p.CheckPermissions()
			var rejected *apply.RejectedError
			if !errors.As(err, &rejected) || len(rejected.Rejections) != 5 {
				t.Fatalf("Permitted: %v", err)
			}
			for _, want := range []string{"patch configmaps", "patch deployments.apps", "delete configmaps", "create jobs.batch"} {
				if !strings.Contains(err.Error(), "no permission to "+want+" in namespace "+s.ns) {
					t.Errorf("no %q in %v", want, err)
				}
			}
			if _, err := s.tryRun(p); !errors.As(err, &rejected) {
				t.Errorf("Run: %v", err)
			}
			for _, e := range kubetest.Writes(s.c.Audit(t, u.Name)[from:]) {
				t.Errorf("written: %s", e)
			}
		})
	}
}

// The estimate of a takeover, and of a taking over that changes nothing
// but whose fields they are.
func TestReaderOfAHelm3Release(t *testing.T) {
	s := begin(t)
	s.helm3Install(small)
	s.record("deployed", small)
	s.as(s.c.User(t, s.ns, kubetest.Rule("", read, "configmaps", "services"), kubetest.Rule("apps", read, "deployments")))
	p := s.plan(strings.Replace(small, `a: "1"`, `b: "2"`, 1))
	s.expect(p, "update ConfigMap/conf")
	c := change(t, p, "ConfigMap", "conf")
	if got := fmt.Sprint(at(c.Predicted, "data")); got != "map[b:2]" {
		t.Errorf("data: %s", got)
	}
	if got := removed(c); len(got) != 1 || got[0].String() != "data.a" {
		t.Errorf("removed: %v", got)
	}
	err := p.CheckPermissions()
	if err == nil || !strings.Contains(err.Error(), "patch configmaps") || strings.Contains(err.Error(), "patch deployments.apps") {
		t.Errorf("Permitted: %v", err)
	}
}

// An object whose content doesn't change needs no permission but to be seen: that its fields stay with Helm 3 is told once.
func TestUnchangedNeedsNoPermission(t *testing.T) {
	for _, gate := range []apply.Gate{apply.GateStrict, apply.GateBestEffort, apply.GateOff} {
		s := newStory(t)
		s.opts.Gate = gate
		s.helm3Install(small)
		s.record("deployed", small)
		s.as(s.c.User(t, s.ns, kubetest.Rule("", read, "configmaps", "services"), kubetest.Rule("apps", read, "deployments")))
		p := s.plan(small)
		s.expect(p)
		if err := p.CheckPermissions(); err != nil {
			t.Errorf("%s: %v", gate, err)
		}
		for _, c := range s.run(p) {
			if c.Action != decide.Unchanged || !strings.HasPrefix(c.Reason, "its fields stay with their former managers: ") {
				t.Errorf("%s: %s %s: %q", gate, c.Action, c.ID, c.Reason)
			}
		}
	}
}

// Definitions of crds/ that are in the cluster as the chart has them need no permission to change any; without the permission to read
// them, the API server's kinds tell that they are there.
func TestCRDsThatAreThereNeedNoPermission(t *testing.T) {
	t.Parallel()
	crds := definition(0, "")
	for name, c := range map[string]struct {
		verbs  string
		policy apply.CRDPolicy
		crds   string
		want   []string
		err    string
	}{
		"unreadable":                {want: []string{"keep CustomResourceDefinition/foos0.NS.example.com"}},
		"unreadable, create":        {policy: apply.CreateCRDs, want: []string{"keep CustomResourceDefinition/foos0.NS.example.com"}},
		"readable":                  {verbs: "get"},
		"readable, create, changed": {verbs: "get", policy: apply.CreateCRDs, crds: definition(0, "length: {type: integer}")},
		"readable, changed":         {verbs: "get", crds: definition(0, "length: {type: integer}"), err: "patch customresourcedefinitions"},
		"absent":                    {crds: crds + definition(1, ""), err: "customresourcedefinitions"},
		"absent, create":            {policy: apply.CreateCRDs, crds: crds + definition(1, ""), want: []string{"keep CustomResourceDefinition/foos0.NS.example.com", "keep CustomResourceDefinition/foos1.NS.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(2)
			s.crds = crds
			chart := config("a")
			s.deploy(chart)
			s.marks = nil
			u := s.c.User(t, s.ns, kubetest.Rule("", "*", "configmaps"))
			if c.verbs != "" {
				u.Allow(t, "", kubetest.Rule("apiextensions.k8s.io", c.verbs, "customresourcedefinitions"))
			}
			s.as(u)
			s.opts.CRDs = c.policy
			if c.crds != "" {
				s.crds = c.crds
			}
			p, err := s.tryPlan(s.request(chart))
			if err == nil {
				err = p.CheckPermissions()
			}
			if c.err != "" {
				rejected, ok := errors.AsType[*apply.RejectedError](err)
				if !ok || !strings.Contains(err.Error(), c.err) || !strings.Contains(rejected.Hint(), "--crds skip") && !strings.Contains(fmt.Sprint(hints(rejected)), "--crds skip") {
					t.Errorf("%v (%v)", err, hints(rejected))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "NS", s.ns)
			}
			s.expect(p, c.want...)
			s.run(p)
		})
	}
}

func hints(r *apply.RejectedError) []string {
	var out []string
	if r != nil {
		for _, one := range r.Rejections {
			if h, ok := one.Err.(interface{ Hint() string }); ok {
				out = append(out, h.Hint())
			}
		}
	}
	return out
}

// A kind that comes with the release, and may not be made by this account.
func TestNoPermissionForWhatIsMetLater(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	s.crds = definition(0, "")
	u := s.c.User(t, s.ns)
	u.Allow(t, "", kubetest.Rule("apiextensions.k8s.io", "*", "customresourcedefinitions"))
	s.as(u)
	p := s.plan(foo(0, "size: 5"))
	_, err := s.tryRun(p)
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "no permission to ") {
		t.Errorf("got %v", err)
	}
}

// What can't be looked at is kept, and remembered.
func TestPruneOfWhatMayNotBeRead(t *testing.T) {
	s := begin(t)
	s.deploy(config("a") + config("b"))
	s.as(s.c.User(t, s.ns, kubetest.Rule("apps", "*", "deployments")))
	p := s.plan(small[strings.Index(small, "apiVersion: apps/v1"):])
	s.expect(p, "create Deployment/web", "keep ConfigMap/a", "keep ConfigMap/b")
	if c := change(t, p, "ConfigMap", "a"); !c.RevisitNextRelease {
		t.Errorf("not remembered: %+v", c)
	}
}

// Prevents that an account which may only grant what it has can't deploy a Role together with its RoleBinding: the API
// server looks for the rules of the Role, also in a dry run.
func TestRoleComesWithItsBinding(t *testing.T) {
	const roles = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [VERB]}]\n"
	const binding = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: default, namespace: NS}]\n"
	s := begin(t)
	s.as(s.c.User(t, s.ns, kubetest.Rule("", read, "configmaps"), kubetest.Rule("rbac.authorization.k8s.io", "get,list,create,patch,delete", "roles", "rolebindings")))
	chart := strings.Replace(roles, "VERB", "get", 1) + binding
	s.expect(s.deploy(chart), "create Role/r", "create RoleBinding/a")
	s.expect(s.deploy(chart))
	if err := s.refuse(strings.Replace(roles, "VERB", "delete", 1) + binding); !strings.Contains(err.Error(), "not currently held") {
		t.Errorf("granting what it doesn't have: %v", err)
	}
}

// Prevents that a Pod is rejected because of what comes with it: admission looks for its account and its classes, also in a dry run.
func TestPodComesWithWhatItNeeds(t *testing.T) {
	s := begin(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: KIND}\nspec: {SPEC, containers: [{name: c, image: x}]}\n---\n"
	for spec, needed := range map[string]string{
		"serviceAccountName: NS-a": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NS-a}\n",
		"priorityClassName: NS-b":  "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS-b}\nvalue: 3\n",
		"runtimeClassName: NS-c":   "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: NS-c}\nhandler: h\n",
	} {
		kind, _, _ := strings.Cut(strings.ToLower(spec), "name:")
		chart := strings.NewReplacer("SPEC", spec, "KIND", kind).Replace(pod) + needed
		p, err := s.tryPlan(s.request(chart))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if _, err := s.tryRun(p); err != nil {
			t.Errorf("%s: Run: %v", spec, err)
		}
		s.past, s.marks = nil, nil
		s.record("deployed", chart)
	}
}

// Prevents that the permissions that suffice for the first run of a hook don't for the next, when its object is there:
// a hook is never patched.
func TestHooksNeedNoPermissionToPatch(t *testing.T) {
	s := begin(t)
	s.hooks = migration
	s.mustHook(migration)
	s.record("deployed", config("a"))
	s.as(s.c.User(t, s.ns, kubetest.Rule("", "get,patch,create", "configmaps"), kubetest.Rule("batch", "create,delete,get", "jobs")))
	p := s.plan(config("a"))
	if err := p.CheckPermissions(); err != nil {
		t.Error(err)
	}
	if c := change(t, p, "Job", "migrate"); c.Predicted == nil || c.Unverified != "" {
		t.Errorf("the hook was not dry-run: %q", c.Unverified)
	}
	s.mustHook(migration)
}
