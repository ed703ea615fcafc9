package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/testcharts"
)

// seedVariable repeats a run of the oracle: its value is the seed that the log
// of a failed test names.
const seedVariable = "DEPLOYER_TEST_SEED"

// seedsVariable says how many random stories are told, if more than oracleRuns.
const seedsVariable = "DEPLOYER_TEST_SEEDS"

// oracleRuns is how many are told otherwise.
const oracleRuns = 8

// TestOracle tells random stories: A is deployed, B fails, C is deployed. What is
// then in the cluster has to be what a fresh install of C makes, but for what
// the API server and controllers decide.
func TestOracle(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	runs, _ := strconv.ParseUint(os.Getenv(seedsVariable), 10, 32)
	for i := range max(runs, oracleRuns) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Logf("repeat with %s=%d", seedVariable, seed)
			random := rand.New(rand.NewPCG(seed, i))
			w := newWorld(t)
			tell := story(w, random)
			tell.play(w, random)
			w.sameAsFresh(tell)
		})
	}
}

// A told story is what its releases consist of.
type told struct {
	good  [2][]string // chart and flags of A and C
	fails [][]string  // of the releases between them
}

// story draws one: of the test charts, or of a chart that is drawn too.
func story(w *world, random *rand.Rand) told {
	switch random.IntN(3) {
	case 0:
		chart := testcharts.Dir(w.T, "rename")
		variant := func(fail bool) []string {
			names := strings.Join(some(random, []string{"main", "app", "proxy", "backend", "frontend"}, 1), ",")
			return []string{chart, "--set", "containers={" + names + "}", "--set", fmt.Sprint("hook.fail=", fail), "--set", fmt.Sprint("image=r/x:", random.IntN(3))}
		}
		return told{good: [2][]string{variant(false), variant(false)}, fails: [][]string{variant(true), variant(true)}}
	case 1:
		chart := testcharts.Dir(w.T, "everything")
		variant := func() []string { // its replicas are an autoscaler's
			return []string{chart, "--set", fmt.Sprint("image=r/x:", random.IntN(3))}
		}
		return told{good: [2][]string{variant(), variant()}}
	}
	failing := hookJob("fails", "post-upgrade", "before-hook-creation,hook-failed", true)
	return told{
		good:  [2][]string{{w.chart(drawn(random)...)}, {w.chart(drawn(random)...)}},
		fails: [][]string{{w.chart(append(drawn(random), failing)...)}, {w.chart(append(drawn(random), failing)...)}},
	}
}

// play deploys A with either program, lets up to two releases of either fail, and
// deploys C, sometimes by way of a rollback to A and a release after it.
func (s told) play(w *world, random *rand.Rand) {
	w.Helper()
	name := w.unique()
	either := func(code int, args ...string) {
		w.Helper()
		if random.IntN(2) == 0 {
			w.Log("helm", args)
			w.helmExits(code, args...)
			return
		}
		w.Log("deployer", args)
		w.exits(code, append(args, "--wait=false")...)
	}
	either(0, append([]string{"install", name}, s.good[0]...)...)
	for _, b := range s.fails[:min(len(s.fails), 1+random.IntN(2))] {
		either(1, append([]string{"upgrade", name}, b...)...)
	}
	if random.IntN(3) == 0 {
		w.ok("rollback", name, "1", "--wait=false")
	}
	args := append(append([]string{"upgrade", name}, s.good[1]...), "--wait=false", "--reset-values")
	w.Log("deployer", args)
	w.ok(args...)
}

// sameAsFresh compares with a fresh install of the last release.
func (w *world) sameAsFresh(s told) {
	w.Helper()
	after := decided(withoutHooks(w.everything()), w.ns)
	name := w.unique()
	w.ok("uninstall", name) // also makes room for what has no namespace
	fresh := w.beside()
	fresh.ok(append(append([]string{"install", name}, s.good[1]...), "--wait=false")...)
	want := decided(withoutHooks(fresh.everything()), fresh.ns)
	for _, path := range paths(after, want) {
		if after[path] != want[path] {
			w.Errorf("%s = %v, a fresh install has %v", path, after[path], want[path])
		}
	}
	fresh.ok("uninstall", name)
}

// decided flattens objects to what a release decides.
func decided(objects map[string]*unstructured.Unstructured, ns string) map[string]any {
	out := map[string]any{}
	for key, obj := range objects {
		obj = obj.DeepCopy()
		for _, path := range []string{
			"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp",
			"metadata.managedFields", "metadata.finalizers", "spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort",
			// Of Jobs: made of their uid.
			"spec.selector.matchLabels.batch.kubernetes.io/controller-uid",
		} {
			unstructured.RemoveNestedField(obj.Object, strings.Split(path, ".")...)
		}
		annotations := obj.GetAnnotations()
		delete(annotations, "deployment.kubernetes.io/revision")
		delete(annotations, "deprecated.daemonset.template.generation")
		obj.SetAnnotations(annotations)
		if obj.GetKind() == "Job" {
			unstructured.RemoveNestedField(obj.Object, "spec", "selector")
			unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "labels")
		}
		flatten(key, obj.Object, out)
	}
	for path, value := range out {
		if text, ok := value.(string); ok {
			out[path] = strings.ReplaceAll(text, ns, "NAMESPACE")
		}
		if strings.HasSuffix(path, ".nodePort") {
			delete(out, path)
		}
	}
	return out
}

// some draws at least so many of the words, in random order.
func some(random *rand.Rand, words []string, least int) []string {
	words = append([]string{}, words...)
	random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:least+random.IntN(len(words)-least+1)]
}

// drawn are the templates of a chart that is drawn: a Deployment in many shapes
// and some smaller objects.
func drawn(random *rand.Rand) []string {
	templates := []string{drawnDeployment(random)}
	for _, name := range some(random, []string{"a", "b", "c"}, 0) {
		templates = append(templates, configMap(name, fmt.Sprint(random.IntN(3)))+data(random))
	}
	if random.IntN(2) == 0 {
		ports := "  ports:\n"
		for _, p := range some(random, []string{"{name: http, port: 80}", "{name: dns, port: 53}", "{name: udp, port: 53, protocol: UDP}"}, 1) {
			ports += "    - " + p + "\n"
		}
		templates = append(templates, "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  selector: {app: d}\n"+ports)
	}
	return templates
}

// data are more entries of a ConfigMap.
func data(random *rand.Rand) string {
	var out strings.Builder
	for _, key := range some(random, []string{"k1", "k2", "k3", "k4"}, 0) {
		fmt.Fprintf(&out, "  %s: \"%d\"\n", key, random.IntN(3))
	}
	return out.String()
}

func drawnDeployment(random *rand.Rand) string {
	var out strings.Builder
	out.WriteString("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n")
	out.WriteString(drawnMap(random, "  labels", []string{"l1", "l2", "l3"}))
	out.WriteString("spec:\n  replicas: " + fmt.Sprint(random.IntN(3)) + "\n")
	switch random.IntN(3) {
	case 0:
		out.WriteString("  strategy: {type: Recreate}\n")
	case 1:
		out.WriteString("  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n")
	}
	out.WriteString("  selector: {matchLabels: {app: d}}\n  template:\n    metadata:\n      labels: {app: d}\n")
	out.WriteString(drawnMap(random, "      annotations", []string{"x1", "x2"}))
	out.WriteString("    spec:\n      containers:\n")
	for _, name := range some(random, []string{"c1", "c2", "c3"}, 1) {
		fmt.Fprintf(&out, "        - name: %s\n          image: r/x:%d\n", name, random.IntN(2))
		if env := some(random, []string{"E1", "E2", "E3"}, 0); len(env) > 0 {
			out.WriteString("          env:\n")
			for _, e := range env {
				fmt.Fprintf(&out, "            - {name: %s, value: \"%d\"}\n", e, random.IntN(2))
			}
		}
		if random.IntN(2) == 0 {
			out.WriteString("          resources: {limits: {memory: 64Mi}}\n")
		}
	}
	return out.String()
}

func drawnMap(random *rand.Rand, field string, keys []string) string {
	chosen := some(random, keys, 0)
	sort.Strings(chosen)
	var entries []string
	for _, k := range chosen {
		entries = append(entries, fmt.Sprintf("%s: v%d", k, random.IntN(2)))
	}
	if len(entries) == 0 {
		return ""
	}
	return field + ": {" + strings.Join(entries, ", ") + "}\n"
}
