package apply_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

const migration = `
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: pre-upgrade}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: "c:1"}]}
`

func (s *story) hook(text string) (*unstructured.Unstructured, error) {
	s.t.Helper()
	return s.hookFor("", text)
}

func (s *story) hookFor(attempt, text string) (*unstructured.Unstructured, error) {
	s.t.Helper()
	return s.applier().CreateHook(s.t.Context(), s.manifests(text)[0], s.past, attempt)
}

func (s *story) mustHook(text string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.hook(text)
	if err != nil {
		s.t.Fatalf("CreateHook: %v", err)
	}
	return obj
}

// A killed run of a hook that lets the server choose its name is found by the next run of the same attempt.
func TestNamelessHookOfAKilledRun(t *testing.T) {
	s := begin(t)
	const nameless = "\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: g-, annotations: {helm.sh/hook: pre-upgrade}}\n" +
		"spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: \"c:1\"}]}}}\n"
	var made []*unstructured.Unstructured
	for _, attempt := range []string{"one", "one", "two", "", ""} {
		obj, err := s.hookFor(attempt, nameless)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, obj)
	}
	if made[0].GetUID() != made[1].GetUID() {
		t.Error("the hook of the killed run was started a second time")
	}
	names := map[string]bool{}
	for _, obj := range made {
		names[obj.GetName()] = true
	}
	if len(names) != 4 {
		t.Errorf("names: %v", names)
	}
	if found, err := s.applier().FindHook(t.Context(), s.manifests(nameless)[0], "one"); err != nil || found == nil || found.GetUID() != made[0].GetUID() {
		t.Errorf("found %v, %v", found, err)
	}
}

// Prevents that a claim that becomes a hook, or that a hook keeps, is deleted with its data.
func TestHooksLeaveData(t *testing.T) {
	s := begin(t)
	claim := func(annotations string) string {
		return "\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {" + annotations + "}}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	s.deploy(claim(""))
	uid := s.get("v1", "PersistentVolumeClaim", "data").GetUID()
	for _, hook := range []string{claim("helm.sh/hook: pre-upgrade"), claim("helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-failed")} {
		s.hooks = hook
		if err := s.refuse(config("a")); !strings.Contains(err.Error(), "may hold data") {
			t.Errorf("plan: %v", err)
		}
		var exists *apply.HookExistsError
		if _, err := s.hook(hook); !errors.As(err, &exists) {
			t.Errorf("run: %v", err)
		}
	}
	if live := s.get("v1", "PersistentVolumeClaim", "data"); live == nil || live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
		t.Error("the claim was deleted")
	}
}

func (s *story) finished(name string) func() error {
	return func() error {
		if done, _ := condition(s.get("batch/v1", "Job", name), "Complete"); !done {
			return errors.New("not complete")
		}
		return nil
	}
}

func condition(obj *unstructured.Unstructured, kind string) (bool, string) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True", ""
		}
	}
	return false, ""
}

// A finished hook Job of an earlier run is replaced.
func TestHookRunsEachTime(t *testing.T) {
	s := begin(t)
	first := s.mustHook(migration)
	if at(first, "metadata.annotations.meta\\helm\\sh/release-name") != "web" {
		t.Errorf("no ownership: %v", first.GetAnnotations())
	}
	s.eventually("the Job completes", s.finished("migrate"))
	second := s.mustHook(migration)
	if first.GetUID() == second.GetUID() {
		t.Errorf("the hook didn't run again")
	}
	if err := s.applier().DeleteHook(bg, first); err != nil {
		t.Fatal(err)
	}
	if s.get("batch/v1", "Job", "migrate") == nil {
		t.Errorf("another object than the one given was deleted")
	}
	if err := s.applier().DeleteHook(bg, second); err != nil {
		t.Fatal(err)
	}
	if s.get("batch/v1", "Job", "migrate") != nil {
		t.Errorf("it is still there")
	}
}

// A hook that is at work was left by the run that died, and then the same attempt waits for it, or by one that gave up:
// waiting for it once more would never end, or end with what it found of an earlier revision.
func TestHookThatIsAtWork(t *testing.T) {
	s := begin(t)
	for _, stuck := range []string{
		strings.Replace(migration, `spec: {restart`, `spec: {schedulerName: none, restart`, 1),
		"\napiVersion: v1\nkind: Pod\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\nspec: {schedulerName: none, containers: [{name: c, image: \"c:1\"}]}\n",
	} {
		var made []*unstructured.Unstructured
		for _, run := range []struct {
			attempt, text string
			isSame        bool
		}{
			{attempt: "one"}, {attempt: "one", isSame: true}, {attempt: "two"}, {attempt: ""}, {attempt: ""},
			{attempt: "three"}, {attempt: "three", text: strings.Replace(stuck, "c:1", "c:2", 1)},
		} {
			obj, err := s.hookFor(run.attempt, cmp.Or(run.text, stuck))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(made); n > 0 && run.isSame != (obj.GetUID() == made[n-1].GetUID()) {
				t.Errorf("%d: %s of attempt %q is the one of the run before: %v, want %v", n, obj.GetKind(), run.attempt, !run.isSame, run.isSame)
			}
			made = append(made, obj)
		}
	}
}

// A run that goes on with a dead one's attempt doesn't run a hook again that has
// finished since: only the dead one would have noted that it had. One that has
// failed runs again.
func TestHookOfADeadRunHasFinished(t *testing.T) {
	s := begin(t)
	create := func(attempt, text string) *unstructured.Unstructured {
		t.Helper()
		obj, err := s.hookFor(attempt, text)
		if err != nil {
			t.Fatalf("CreateHook(%s): %v", attempt, err)
		}
		return obj
	}
	first := create("one-pre-upgrade", migration)
	s.eventually("the Job completes", s.finished("migrate"))
	if again := create("one-pre-upgrade", migration); again.GetUID() != first.GetUID() {
		t.Errorf("the hook was run twice")
	}
	if other := create("one-pre-upgrade", strings.Replace(migration, "c:1", "c:2", 1)); other.GetUID() == first.GetUID() {
		t.Errorf("another hook was taken for the same")
	}
	second := create("one-post-upgrade", migration)
	s.eventually("the Job completes", s.finished("migrate"))
	if other := create("two-post-upgrade", migration); other.GetUID() == second.GetUID() {
		t.Errorf("the hook of another attempt was taken for this one's")
	}
	failing := strings.Replace(migration, "spec: {restart", `metadata: {annotations: {sim.deployer/steps: '[{"phase":"Failed","state":{"terminated":{"exitCode":1}}}]'}}
    spec: {restart`, 1)
	failing = strings.Replace(failing, "spec:\n", "spec:\n  backoffLimit: 0\n", 1)
	bad := create("three-pre-upgrade", failing)
	s.eventually("the Job fails", func() error {
		if failed, _ := condition(s.get("batch/v1", "Job", "migrate"), "Failed"); !failed {
			return errors.New("not failed")
		}
		return nil
	})
	if again := create("three-pre-upgrade", failing); again.GetUID() == bad.GetUID() {
		t.Errorf("a hook that has failed wasn't run again")
	}
}

// Somebody else's object of the hook's name survives.
func TestHookNameIsTaken(t *testing.T) {
	s := begin(t)
	foreign := s.manifests(migration)[0].Object
	foreign.SetAnnotations(nil)
	s.post(foreign, "someone")
	_, err := s.hook(migration)
	var exists *apply.HookExistsError
	if !errors.As(err, &exists) {
		t.Fatalf("got %v", err)
	}
	s.hooks = migration
	err = s.refuse(config("a"))
	if !errors.As(err, &exists) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	if err := s.applier().DeleteHook(bg, s.get("batch/v1", "Job", "migrate")); err != nil {
		t.Fatal(err)
	}
	// Helm 3's hooks carry no ownership: known by name and annotation.
	s.post(s.manifests(migration)[0].Object, "helm")
	if _, err = s.hook(migration); !errors.As(err, &exists) {
		t.Fatalf("got %v", err)
	}
	s.record("deployed", config("a"))
	uid := s.get("batch/v1", "Job", "migrate").GetUID()
	if got := s.mustHook(migration); got.GetUID() == uid {
		t.Errorf("not replaced")
	}
	// What a run left that didn't get to delete it is in nobody's way, whatever
	// the policy says: helm#8101.
	uid = s.get("batch/v1", "Job", "migrate").GetUID()
	if got := s.mustHook(strings.Replace(migration, "pre-upgrade", "pre-upgrade, helm.sh/hook-delete-policy: hook-failed", 1)); got.GetUID() == uid {
		t.Errorf("not replaced")
	}
}

// The gate asks about hooks too, those that exist and those that don't.
func TestGateAsksAboutHooks(t *testing.T) {
	s := begin(t)
	s.hooks = migration + `
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: other-, annotations: {helm.sh/hook: pre-upgrade}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "c:1"}]}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}
---
apiVersion: v1
kind: Pod
metadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}
spec: {serviceAccountName: hook, containers: [{name: c, image: "c:1"}]}
`
	p := s.plan(config("a"))
	if len(p.Hooks) != 4 || p.Hooks[3].Unverified == "" || p.Hooks[0].Predicted == nil {
		t.Errorf("hooks: %+v", p.Hooks)
	}
	s.mustHook(migration)
	p = s.plan(config("a"))
	if p.Hooks[0].Reason == "" {
		t.Errorf("hook: %+v", p.Hooks[0])
	}
	s.hooks = strings.Replace(migration, "restartPolicy: Never", "restartPolicy: Always", 1)
	err := s.refuse(config("a"))
	t.Log(err)
}

// An object changes between hook and main, and is then as one that always
// was what it is now.
func TestHookBecomesMain(t *testing.T) {
	s := begin(t)
	hook := strings.Replace(config("c"), "metadata: {name: c}", "metadata: {name: c, annotations: {helm.sh/hook: pre-install}}", 1)
	s.post(s.manifests(hook)[0].Object, "helm")
	s.hooks = hook
	s.record("deployed", config("a"))
	s.hooks = ""
	s.deploy(config("a") + config("c"))
	c := s.get("v1", "ConfigMap", "c")
	if got := fmt.Sprint(c.GetAnnotations()); got != "map[meta.helm.sh/release-name:web meta.helm.sh/release-namespace:"+s.ns+"]" || managers(c) != "helm/Apply" {
		t.Errorf("annotations %s, managers %s", got, managers(c))
	}
	// and back: what the hook makes is not pruned, whether it runs now or not
	s.hooks = hook
	s.expect(s.plan(config("a")))
	s.hooks, s.resting = "", hook
	s.expect(s.plan(config("a")))
	s.resting = ""
	s.expect(s.plan(config("a")), "delete ConfigMap/c")
}

// A hook's Job goes when the chart drops the hook; what hooks have made
// for others stays, and so does the Job of a hook that doesn't run now.
func TestDroppedHooks(t *testing.T) {
	s := begin(t)
	made := strings.Replace(config("made"), "metadata: {name: made}", "metadata: {name: made, annotations: {helm.sh/hook: pre-install}}", 1)
	s.deploy(config("a"))
	s.mustHook(migration)
	s.mustHook(made)
	helms := strings.ReplaceAll(migration, "migrate", "of-helm")
	s.post(s.manifests(helms)[0].Object, "helm")
	s.hooks = migration + "\n---\n" + made + "\n---\n" + helms
	s.record("deployed", config("a"))
	s.hooks, s.resting = "", s.hooks
	s.expect(s.plan(config("a")))
	s.resting = ""
	p := s.plan(config("a"))
	s.expect(p, "delete Job/migrate", "keep Job/of-helm")
	if got := s.reasons(p); !strings.Contains(got, "delete migrate: left by a hook of revision 2 that the chart no longer has") {
		t.Errorf("reasons: %s", got)
	}
	s.run(p)
	if s.get("batch/v1", "Job", "migrate") != nil || s.get("v1", "ConfigMap", "made") == nil {
		t.Error("the Job is left, or the ConfigMap is gone")
	}
}

// Prevents that an object stays for ever that a template made, and that became a hook which never ran: neither a chart
// without it nor an uninstall deleted it.
func TestDroppedHookThatTheTemplateMade(t *testing.T) {
	t.Parallel()
	for name, uninstall := range map[string]bool{"upgrade": false, "uninstall": true} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.deploy(config("a") + config("b"))
			hook := strings.Replace(config("b"), "metadata: {name: b}", "metadata: {name: b, annotations: {helm.sh/hook: post-rollback}}", 1)
			s.resting = hook
			s.expect(s.plan(config("a")))
			s.deploy(config("a"))
			s.hooks, s.resting = hook, ""
			s.record("deployed", config("a"))
			s.hooks = ""
			chart := config("a")
			if uninstall {
				chart = ""
			}
			s.run(s.plan(chart))
			if s.get("v1", "ConfigMap", "b") != nil {
				t.Error("it is left")
			}
		})
	}
}

// Prevents that what a hook has made since the plan is deleted as what a template had made.
func TestDroppedHookRanSinceThePlan(t *testing.T) {
	s := begin(t)
	s.deploy(config("a") + config("b"))
	s.resting = strings.Replace(config("b"), "metadata: {name: b}", "metadata: {name: b, annotations: {helm.sh/hook: post-rollback}}", 1)
	s.deploy(config("a"))
	s.hooks, s.resting = s.resting, ""
	s.record("deployed", config("a"))
	s.hooks = ""
	p := s.plan(config("a"))
	s.expect(p, "delete ConfigMap/b")
	s.patch("v1", "ConfigMap", "b", types.MergePatchType, `{"metadata":{"annotations":{"helm.sh/hook":"post-rollback"}}}`, "helm")
	s.run(p)
	if s.get("v1", "ConfigMap", "b") == nil {
		t.Error("it is gone")
	}
}

// TestDroppedHooksWithGeneratedNames fails if Jobs and Pods of hooks with generateName stay for ever: no
// name of theirs is in the chart. They are told by their ownership and by what they were generated from.
func TestDroppedHooksWithGeneratedNames(t *testing.T) {
	s := begin(t)
	generated := strings.Replace(migration, "name: migrate", "generateName: migrate-", 1)
	longer := strings.Replace(generated, "migrate-", "migrate-db-", 1)
	pod := "\napiVersion: v1\nkind: Pod\nmetadata: {generateName: check-, annotations: {helm.sh/hook: pre-upgrade}}\n" +
		"spec: {restartPolicy: Never, containers: [{name: c, image: \"c:1\"}]}\n"
	secret := "\napiVersion: v1\nkind: Secret\nmetadata: {generateName: made-, annotations: {helm.sh/hook: pre-upgrade}}\n"
	s.deploy(config("a"))
	first, second := s.mustHook(generated), s.mustHook(generated)
	running, check, made := s.mustHook(longer), s.mustHook(pod), s.mustHook(secret)
	other := *s
	other.owner.Release = "other"
	theirs := other.mustHook(generated)
	helms := s.post(s.owned(s.manifests(generated)[0].Object), "helm") // ours, but not made by a hook of ours
	mine := s.owned(s.manifests(generated)[0].Object)                  // what somebody has made of one of ours
	mine.SetName("mine")
	mine.SetAnnotations(first.GetAnnotations())
	s.post(mine, "kubectl-create")
	s.hooks = strings.Join([]string{generated, longer, pod, secret}, "\n---\n")
	s.record("deployed", config("a"))

	s.resting = s.hooks
	s.hooks = longer
	s.expect(s.plan(config("a"))) // the chart has them, whether they run now or not
	s.resting = ""
	p := s.plan(config("a"))
	s.expect(p, "delete Job/"+first.GetName(), "delete Job/"+second.GetName(), "delete Pod/"+check.GetName())
	if got := s.reasons(p); !strings.Contains(got, "left by a hook of revision 2 that the chart no longer has") {
		t.Errorf("reasons: %s", got)
	}
	s.run(p)
	for name, stays := range map[string]bool{first.GetName(): false, second.GetName(): false, running.GetName(): true, theirs.GetName(): true, helms.GetName(): true, "mine": true} {
		if is := s.get("batch/v1", "Job", name) != nil; is != stays {
			t.Errorf("Job/%s is there: %v, want %v", name, is, stays)
		}
	}

	s.hooks = ""
	s.expect(s.plan(""), "delete ConfigMap/a", "delete Job/"+running.GetName())
	if s.get("v1", "Secret", made.GetName()) == nil {
		t.Error("the Secret of a hook is gone")
	}
}

// TestGeneratedNamesAtAnUninstall fails if Jobs stay when the release is uninstalled: those whose name is cut, and those of
// a hook that the uninstall runs once more, under another name.
func TestGeneratedNamesAtAnUninstall(t *testing.T) {
	s := begin(t)
	long := strings.Replace(migration, "name: migrate", "generateName: "+strings.Repeat("long-", 12), 1)
	atEnd := strings.NewReplacer("name: migrate", "generateName: migrate-", "pre-upgrade", "\"pre-upgrade,pre-delete\"").Replace(migration)
	s.deploy(config("a"))
	cut, earlier := s.mustHook(long), s.mustHook(atEnd)
	s.hooks = long + "\n---\n" + atEnd
	s.record("deployed", config("a"))
	s.hooks = atEnd
	s.expect(s.plan(""), "delete ConfigMap/a", "delete Job/"+cut.GetName(), "delete Job/"+earlier.GetName())
}

// TestGeneratedNamesThatCannotBeListed fails if what a hook left is forgotten because the account
// may not list it: an upgrade remembers to look again, and an uninstall is refused.
func TestGeneratedNamesThatCannotBeListed(t *testing.T) {
	s := begin(t)
	generated := strings.Replace(migration, "name: migrate", "generateName: migrate-", 1)
	s.deploy(config("a"))
	left := s.mustHook(generated)
	s.hooks = generated
	s.record("deployed", config("a"))
	s.hooks = ""
	all := s.cluster
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/jobs") {
			return nil, nil
		}
		return answered(r, http.StatusNotFound, "404 page not found"), nil
	}})
	if err := s.refuse(config("a")); !strings.Contains(err.Error(), "listing jobs in namespace "+s.ns) {
		t.Errorf("an answer that isn't about permissions: %v", err)
	}
	s.cluster = kube.New(s.c.User(t, s.ns, kubetest.Rule("", "*", "*"), kubetest.Rule("batch", "get,delete", "jobs")).Config(), s.ns)
	s.expect(s.plan(""), "delete ConfigMap/a", "keep Job/migrate-*")
	var missing *verify.PermissionError
	if err := s.plan("").CheckPermissions(); !errors.As(err, &missing) || missing.Verb != "list" || missing.Resource != "jobs" || missing.Namespace != s.ns {
		t.Errorf("uninstall: %v", err)
	}
	p := s.plan(config("a"))
	s.expect(p, "keep Job/migrate-*")
	if err := p.CheckPermissions(); err != nil {
		t.Errorf("upgrade: %v", err)
	}
	s.run(p)
	s.record("deployed", config("a"))
	s.cluster = all
	s.resting = generated
	s.expect(s.plan(config("a"))) // the chart has the hook again
	s.resting = ""
	s.expect(s.plan(config("a")), "delete Job/"+left.GetName())
}

// TestHooksWithNamesAreNotListed prevents requests for what no hook could have left.
func TestHooksWithNamesAreNotListed(t *testing.T) {
	s := begin(t)
	s.hooks = migration + "\n---\n" + strings.Replace(migration, "name: migrate", "generateName: migrate-", 1)
	s.deploy(config("a"))
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/jobs") && r.Method == http.MethodGet {
			t.Errorf("GET %s", r.URL)
		}
		return nil, nil
	}})
	s.expect(s.plan(config("a"))) // the chart has both
	s.past[0].Hooks = s.manifests(migration)
	s.hooks = ""
	s.expect(s.plan(config("a")))
}

// TestHookGoneWhenItIsRead prevents a crash when a hook's dry run finds its name taken by a Job
// that is gone, by its TTL or somebody else, when it is read.
func TestHookGoneWhenItIsRead(t *testing.T) {
	s := begin(t)
	s.mustHook(migration)
	jobs := s.client("batch/v1", "Job")
	var gone sync.Once
	s.through(&faulty{after: func(r *http.Request, resp *http.Response) error {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs") && resp.StatusCode == http.StatusConflict {
			gone.Do(func() {
				background := metav1.DeletePropagationBackground
				if err := jobs.Delete(bg, "migrate", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}})
	s.hooks = migration
	p := s.plan(config("a"))
	if len(p.Hooks) != 1 || p.Hooks[0].Predicted == nil || p.Hooks[0].Reason != "" || p.Hooks[0].Unverified != "" {
		t.Errorf("hooks: %+v", p.Hooks)
	}
}

// Prevents that a hook with a field that its kind doesn't have counts as done because another one is: all such
// hooks of one name were taken for the same.
func TestHooksWithUnknownFieldsAreToldApart(t *testing.T) {
	s := begin(t)
	misspelt := strings.Replace(migration, "spec:\n", "spec:\n  backofLimit: 3\n", 1)
	first, err := s.hookFor("one", misspelt)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.applier().FindHook(t.Context(), s.manifests(misspelt)[0], "one"); err != nil || found == nil || found.GetUID() != first.GetUID() {
		t.Errorf("the hook of the killed run isn't found: %v, %v", found, err)
	}
	second, err := s.hookFor("one", strings.Replace(misspelt, "c:1", "c:2", 1))
	if err != nil {
		t.Fatal(err)
	}
	if second.GetUID() == first.GetUID() {
		t.Error("another hook was taken for the one that ran before, and didn't run")
	}
}

// Prevents that a hook at work is killed and run again because the next run has other flags.
func TestHookAtWorkOutlastsOtherFlags(t *testing.T) {
	s := begin(t)
	stuck := strings.Replace(migration, `spec: {restart`, `spec: {schedulerName: none, restart`, 1)
	running, err := s.hookFor("one", stuck)
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Conflicts, s.opts.Validation, s.opts.RevertManual = decide.YieldConflicts, apply.ValidationStrict, true
	if again, err := s.hookFor("one", stuck); err != nil || again.GetUID() != running.GetUID() {
		t.Errorf("the hook was run again: %v", err)
	}
}

// Prevents that the plan rejects a hook because the API server can't be asked about it while the object of its earlier
// run is there.
func TestHookThatCantBeAskedAboutUnderAnotherName(t *testing.T) {
	s := begin(t)
	hook := "\napiVersion: v1\nkind: Service\nmetadata: {name: early, annotations: {helm.sh/hook: pre-upgrade}}\nspec: {type: NodePort, ports: [{name: p, port: 80, nodePort: PORT}]}\n"
	first := s.mustHook(strings.Replace(hook, "PORT", "0", 1))
	s.hooks = strings.Replace(hook, "PORT", fmt.Sprint(at(first, "spec.ports.p.nodePort")), 1)
	s.record("deployed", config("a"))
	p := s.plan(config("a"))
	if len(p.Hooks) != 1 || !strings.Contains(p.Hooks[0].Unverified, "no dry run while the old object exists") {
		t.Errorf("hooks: %+v", p.Hooks)
	}
	if second := s.mustHook(s.hooks); second.GetUID() == first.GetUID() {
		t.Error("the hook didn't run again")
	}
}

// TestHookThatIsAlwaysThere fails if a run never ends because somebody makes the object of its hook again as often as it is deleted.
func TestHookThatIsAlwaysThere(t *testing.T) {
	s := begin(t)
	s.hooks = migration
	s.record("deployed", config("a"))
	theirs, jobs, tries := s.manifests(migration)[0].Object, s.client("batch/v1", "Job"), 0
	s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
		if !real(r) || r.Method != http.MethodPost {
			return nil, nil
		}
		if tries++; tries > 100 {
			return nil, errors.New("tried a hundred times")
		}
		_, err := jobs.Create(bg, theirs.DeepCopy(), metav1.CreateOptions{FieldManager: "helm"})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return nil, err
	}})
	if _, err := s.hook(migration); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
