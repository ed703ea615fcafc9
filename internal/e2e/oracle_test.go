package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/helmtest"
	"deployer/internal/kubetest"
	"deployer/testcharts"
)

// seedsVariable says how many random stories are told, if more than oracleRuns.
const seedsVariable = "DEPLOYER_TEST_SEEDS"

// oracleRuns is how many are told otherwise.
const oracleRuns = 5

// TestOracle tells random stories: A is deployed, this and that happens, C is
// deployed or A rolled back to. What is then in the cluster has to be what a
// fresh install makes, but for what the API server and controllers decide.
func TestOracle(t *testing.T) {
	t.Parallel()
	seed := kubetest.Seed(t)
	runs, _ := strconv.ParseUint(os.Getenv(seedsVariable), 10, 32)
	for i := range max(runs, oracleRuns) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t)
			s := &tale{world: w, Rand: rand.New(rand.NewPCG(seed, i)), name: w.unique()}
			s.subject()
			s.surround()
			last := s.play()
			s.gapless()
			s.lent = nil // the last run has given back all of it
			s.untouched()
			s.sameAsFresh(last)
		})
	}
}

// A tale is a release and what becomes of it, drawn by lot.
type tale struct {
	*world
	*rand.Rand
	name   string
	chart  func(more ...string) []string // draws a chart, with more templates, and its flags
	global bool                          // the chart has objects outside of the namespace
	killed bool                          // Helm would wait for ever for the run that was killed
	others map[string]other              // by name: what is of others, and stays as it is
	lent   map[string]bool               // of these, what a failed run has adopted, and what may not be given back yet
	having map[int]string                // which of them a failed revision may have
}

// subject draws what the story is about: one of the test charts, or more often a
// chart that is drawn too.
func (s *tale) subject() {
	s.chart = func(more ...string) []string { return []string{s.world.chart(append(drawn(s.Rand), more...)...)} }
	image := func() []string { return []string{"--set", fmt.Sprint("image=r/x:", s.IntN(3))} }
	switch s.IntN(6) {
	case 0:
		s.chart = func(more ...string) []string {
			names := some(s.Rand, []string{"main", "app", "proxy", "backend", "frontend"}, 1)
			return append(image(), s.extended("rename", more), "--set", "containers={"+strings.Join(names, ",")+"}")
		}
	case 1: // its replicas are an autoscaler's
		s.global = true
		s.chart = func(more ...string) []string { return append(image(), s.extended("everything", more)) }
	}
}

// extended is a copy of a test chart with more templates.
func (s *tale) extended(name string, more []string) string {
	s.Helper()
	dir := s.TempDir()
	if err := os.CopyFS(dir, os.DirFS(testcharts.Dir(s.T, name))); err != nil {
		s.Fatal(err)
	}
	for i, text := range more {
		if err := os.WriteFile(fmt.Sprintf("%s/templates/more%d.yaml", dir, i), []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	return dir
}

// play deploys A with either program, lets things happen, and makes the release
// whose arguments it returns the last one.
func (s *tale) play() []string {
	s.Helper()
	a := s.chart()
	s.either(0, "install", a...)
	for range 1 + s.IntN(3) {
		events[s.IntN(len(events))](s)
	}
	if s.IntN(4) == 0 {
		s.either(0, "rollback", "1")
		s.deployer(0, "rollback", "1") // whatever became of the one before
		return a
	}
	c := s.chart()
	s.deployer(0, "upgrade", append(c, "--reset-values")...)
	return c
}

// events are what may happen to a release. Those that run either program leave
// it to Helm to fail at what it fails at: what it leaves behind is the point.
var events = []func(*tale){
	func(s *tale) { s.either(0, "upgrade", append(s.chart(), "--reset-values")...) },
	func(s *tale) { // ends badly when all is done
		failing := hookJob("fails", "post-upgrade", "before-hook-creation,hook-failed", true)
		s.either(1, "upgrade", append(s.chart(failing), "--reset-values")...)
	},
	func(s *tale) { // refused at the gate, where there is one
		s.either(3, "upgrade", append(s.chart(configMap("Bad_Name", "1")), "--reset-values")...)
	},
	(*tale).overQuota,
	(*tale).kill,
	(*tale).goBack,
	(*tale).edit,
	(*tale).claim,
	(*tale).adopt,
	(*tale).adoptInVain,
	(*tale).twoAtOnce,
}

// either lets one of the programs do something to the release.
func (s *tale) either(code int, verb string, args ...string) {
	s.Helper()
	if s.killed || s.IntN(3) > 0 {
		s.deployer(code, verb, args...)
		return
	}
	s.Log(s.try(helmtest.Helm3(s.T), append([]string{verb, s.name}, args...)...))
}

// deployer does something to the release, and has to end with the code; with -1,
// it may be refused, or fail.
func (s *tale) deployer(code int, verb string, args ...string) {
	s.Helper()
	r := s.try(deployerBinary, append([]string{verb, s.name, "--wait=false"}, args...)...)
	s.Log(r)
	if r.code != code && !(code < 0 && slices.Contains([]int{0, 1, 3}, r.code)) {
		s.Fatalf("want exit code %d:\n%s", code, r)
	}
	s.killed = s.killed && r.code == 3
}

// overQuota lets a release fail midway: a quota admits each of its objects, but
// not all of them.
func (s *tale) overQuota() {
	quota := s.in("resourcequotas")
	s.create("resourcequotas", "kubectl-create", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {replicationcontrollers: 1}}}")
	s.cluster.Eventually(s.T, waitTimeout, "the quota to count", func(context.Context) error {
		if field(s.must("resourcequotas", "q"), "status.hard") == nil {
			return fmt.Errorf("it has no status")
		}
		return nil
	})
	var more []string
	for _, name := range []string{"r1", "r2"} {
		more = append(more, "{apiVersion: v1, kind: ReplicationController, metadata: {name: "+name+"}, spec: {replicas: 0, template: {metadata: {labels: {r: r}}, spec: {containers: [{name: c, image: 'r/x:1'}]}}}}")
	}
	s.either(-1, "upgrade", append(s.chart(more...), "--reset-values")...) // one may be there from the last time
	if err := quota.Delete(s.Context(), "q", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// kill kills deployer at one of its calls.
func (s *tale) kill() {
	p := s.proxied()
	at := nth(1+s.IntN(50), []moment{before, after}[s.IntN(2)], 0)
	s.Log(s.killedAt(p, at, append([]string{"upgrade", s.name, "--wait=false", "--reset-values"}, s.chart()...)...))
	s.killed = true
}

// edit changes by hand what the release says, or deletes it.
func (s *tale) edit() {
	objects := s.everything()
	all := slices.DeleteFunc(keys(objects), func(key string) bool {
		kind := objects[key].GetKind()
		if slices.Contains(foreign, objects[key].GetName()) {
			return true // the story knows what becomes of them
		}
		return kind != "ConfigMap" && kind != "Deployment" || objects[key].GetAnnotations()["meta.helm.sh/release-name"] != s.name
	})
	if len(all) == 0 {
		return
	}
	obj := objects[all[s.IntN(len(all))]]
	resource := strings.ToLower(obj.GetKind()) + "s"
	s.Log("by hand:", obj.GetKind(), obj.GetName())
	if s.IntN(3) == 0 {
		if err := s.in(resource).Delete(s.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
			s.Fatal(err)
		}
		return
	}
	s.patch(resource, obj.GetName(), "kubectl-edit", edited(s.T, obj))
}

// edited is a patch of fields that a release has stated: what nobody has stated
// would stay.
func edited(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	patch := map[string]any{}
	if data, ok := field(obj, "data").(map[string]any); ok {
		for key := range data {
			data[key] = "edited"
		}
		patch["data"] = data
	}
	if containers, ok := field(obj, "spec.template.spec.containers").([]any); ok {
		for _, c := range containers {
			c.(map[string]any)["image"] = "r/edited:1"
		}
		patch["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sameAsFresh compares with a fresh install.
func (s *tale) sameAsFresh(last []string) {
	s.Helper()
	all := withoutHooks(s.everything())
	maps.DeleteFunc(all, func(_ string, obj *unstructured.Unstructured) bool { return slices.Contains(foreign, obj.GetName()) })
	after := decided(all, s.ns)
	fresh := s.beside()
	if s.global {
		s.ok("uninstall", s.name) // makes room
		defer fresh.ok("uninstall", s.name)
	}
	fresh.ok(append([]string{"install", s.name, "--wait=false"}, last...)...)
	s.same("in the end", after, decided(withoutHooks(fresh.everything()), fresh.ns))
}

// decided flattens objects to what a release decides.
func decided(objects map[string]*unstructured.Unstructured, ns string) map[string]any {
	out := map[string]any{}
	for key, obj := range objects {
		obj = generated(obj)
		obj.SetFinalizers(nil)
		unstructured.RemoveNestedField(obj.Object, "spec", "nodeName")
		flatten(key, obj.Object, out)
	}
	for path, value := range out {
		if text, ok := value.(string); ok {
			out[path] = strings.ReplaceAll(text, ns, "NAMESPACE")
		}
	}
	return out
}
