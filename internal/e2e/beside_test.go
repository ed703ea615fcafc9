package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/helmtest"
	"deployer/internal/kubetest"
)

// besideRuns is how many stories are told, if not more are asked for.
const besideRuns = 2

// settleTimeout is how long controllers may take to do what follows from a release.
const settleTimeout = 15 * time.Second

// TestBesideHelm3 tells random stories twice: deployer and Helm 3 take the same steps with the same charts, in two
// namespaces, while hooks, controllers, admission and people change what is there. Wherever Helm ends well we do, and what
// is then there is equal but for intendedDifferences. A story takes about half a minute: make test tells besideRuns.
func TestBesideHelm3(t *testing.T) {
	t.Parallel()
	seed := kubetest.Seed(t)
	runs, _ := strconv.ParseUint(os.Getenv(seedsVariable), 10, 32)
	for i := range max(runs, besideRuns) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			newTwins(t, rand.New(rand.NewPCG(seed, i))).play()
		})
	}
}

// An intendedDifference is one that stays. docs/helm-differences.md has the same list under "In the cluster afterwards".
type intendedDifference struct {
	path   *regexp.Regexp
	where  func(s *twins, ours, helms any) bool
	reason string
}

var intendedDifferences = []intendedDifference{
	{regexp.MustCompile(`^(Deployment|StatefulSet)/[^.]*\.spec\.replicas$`), func(s *twins, _, _ any) bool { return s.wasScaled },
		"a chart that stops stating replicas leaves the number to the autoscaler that comes; Helm sets it to 1"},
	{regexp.MustCompile(`.`), func(s *twins, ours, _ any) bool { return s.helmFailed && ours == nil },
		"what a failed release leaves behind, of objects and fields, stays with Helm"},
	{regexp.MustCompile(`^Namespace\.`), func(s *twins, _, helms any) bool { return helms == nil },
		"Helm deletes Namespaces that the chart drops, with all that is in them; they stay"},
	{regexp.MustCompile(`^Job/[^.]*\.metadata\.(annotations|labels)\.`), func(*twins, any, any) bool { return true },
		"hooks have the marks of their release and run"},
	{regexp.MustCompile(`^Job/`), func(s *twins, ours, _ any) bool { return ours == nil && (s.uninstalled || s.chart.Hook == "") },
		"Helm leaves the Jobs of hooks behind that the chart drops, or that it uninstalls"},
}

// A twin is one of the two programs in its namespace.
type twin struct {
	*world
	binary   string
	proxy    *proxy
	port     int         // a port of nodes that only this twin uses
	revision map[int]int // of a chart, by its number
}

// twins are a story told with both programs.
type twins struct {
	*testing.T
	*rand.Rand
	ours, helms *twin
	chart       drawnChart
	charts      []drawnChart // that both have deployed
	told        []string

	wasScaled, helmFailed, uninstalled bool
}

// nextPort counts ports of nodes. API servers give those below 30086 only to who names them; other tests have 30060 and above.
var nextPort atomic.Int32

func newTwins(t *testing.T, random *rand.Rand) *twins {
	w := newWorld(t)
	s := &twins{T: t, Rand: random}
	base := 30000 + int(nextPort.Add(2))%60
	s.ours = &twin{world: w, binary: deployerBinary, port: base, revision: map[int]int{}}
	s.helms = &twin{world: w.beside(), binary: helmtest.Helm3(t), port: base + 1, revision: map[int]int{}}
	for _, one := range s.both() {
		one.proxy = one.proxied()
	}
	t.Cleanup(func() {
		for _, one := range s.both() {
			for kind, prefix := range besideCluster {
				one.drop(kind, prefix+one.suffix())
			}
		}
		if t.Failed() {
			t.Logf("the story:\n%s", strings.Join(s.told, "\n"))
		}
	})
	return s
}

func (s *twins) both() []*twin { return []*twin{s.ours, s.helms} }

// play takes the steps, and compares after each that both have taken.
func (s *twins) play() {
	s.chart = drawChart(s.Rand)
	if !s.deploy("install") {
		s.Errorf("Helm can't install what is drawn")
		return
	}
	for range 2 + s.IntN(3) {
		if s.IntN(2) == 0 {
			s.byHand()
		}
		if len(s.charts) > 1 && s.IntN(4) == 0 {
			s.rollback(s.IntN(len(s.charts) - 1))
		} else {
			s.chart = s.chart.next(s.Rand)
			s.deploy("upgrade")
		}
		if s.Failed() {
			return
		}
	}
	if s.IntN(2) == 0 {
		s.tell("uninstall")
		s.uninstalled = true
		if s.carryOut(func(one *twin) []string { return []string{"uninstall", "x"} }) {
			s.compare()
		}
	}
}

func (s *twins) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// deploy deploys the chart with both.
func (s *twins) deploy(verb string) bool {
	s.Helper()
	s.wasScaled = s.wasScaled || s.chart.Autoscaled
	s.tell("%s %s", verb, s.chart)
	s.playHooks(s.chart.HookDoes)
	ended := s.carryOut(func(one *twin) []string {
		return []string{verb, "x", one.world.chart(s.chart.templates()...), "--set", fmt.Sprintf("port=%d,suffix=%s", one.port, one.suffix())}
	})
	if !ended {
		return false
	}
	s.charts = append(s.charts, s.chart)
	for _, one := range s.both() {
		one.revision[len(s.charts)-1] = one.latest()
	}
	s.compare()
	return true
}

func (s *twins) rollback(to int) {
	s.Helper()
	s.tell("rollback to %s", s.charts[to])
	s.playHooks("")
	if s.carryOut(func(one *twin) []string { return []string{"rollback", "x", strconv.Itoa(one.revision[to])} }) {
		s.chart = s.charts[to]
		s.compare()
	}
}

// carryOut runs both programs, and reports whether Helm ended well. Then we have to, too.
func (s *twins) carryOut(args func(*twin) []string) bool {
	s.Helper()
	results := map[*twin]result{}
	for _, one := range s.both() {
		results[one] = one.try(one.binary, append(args(one), "--wait", "--timeout", "40s")...)
	}
	switch ours, helms := results[s.ours], results[s.helms]; {
	case helms.code != 0:
		s.tell("  Helm fails: %s", lastLine(helms.err))
		if ours.code != 0 {
			s.tell("  so do we: %s", lastLine(ours.err))
		}
		s.helmFailed = true
		return false
	case ours.code != 0:
		s.Errorf("Helm ends well, and we don't:\n%s", ours)
		return false
	}
	return true
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// compare compares what is in the two namespaces, as soon as controllers have done their work.
func (s *twins) compare() {
	s.Helper()
	s.ours.cluster.Eventually(s.T, settleTimeout, "ours and Helm's to be equal after "+s.told[len(s.told)-1], func(context.Context) error {
		if found := s.differences(); len(found) > 0 {
			return fmt.Errorf("%s", strings.Join(found, "\n"))
		}
		return nil
	})
}

func (s *twins) differences() (out []string) {
	ours, helms := s.ours.flattened(), s.helms.flattened()
	for _, path := range paths(ours, helms) {
		intended := slices.ContainsFunc(intendedDifferences, func(d intendedDifference) bool {
			return d.path.MatchString(path) && d.where(s, ours[path], helms[path])
		})
		if ours[path] != helms[path] && !intended {
			out = append(out, fmt.Sprintf("%s is %v, with Helm %v", path, ours[path], helms[path]))
		}
	}
	return out
}

// besideKinds are the kinds in a namespace that the charts and the deeds of the stories are about.
var besideKinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "resourcequotas"}, {Version: "v1", Resource: "limitranges"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, {Group: "batch", Version: "v1", Resource: "jobs"},
}

// besideCluster are the kinds outside of a namespace, with what the names of their objects begin with.
var besideCluster = map[string]string{"validatingadmissionpolicybindings": "policy-", "validatingadmissionpolicies": "policy-", "namespaces": "space-"}

// suffix ends the names of the twin's objects outside of its namespace.
func (one *twin) suffix() string { return one.ns[len(one.ns)-8:] }

// flattened flattens what a release decides of the twin's objects.
func (one *twin) flattened() map[string]any {
	objects := map[string]*unstructured.Unstructured{}
	for _, gvr := range besideKinds {
		one.collect(gvr, objects)
	}
	for kind, prefix := range besideCluster {
		if obj := one.get(kind, prefix+one.suffix()); obj != nil {
			objects[obj.GetKind()] = obj
		}
	}
	maps.DeleteFunc(objects, func(_ string, obj *unstructured.Unstructured) bool { return obj.GetDeletionTimestamp() != nil })
	out := map[string]any{}
	for path, value := range decided(objects, one.ns) {
		if text, ok := value.(string); ok {
			value = strings.ReplaceAll(strings.ReplaceAll(text, one.suffix(), "SUFFIX"), strconv.Itoa(one.port), "PORT")
		} else if value == int64(one.port) {
			value = "PORT"
		}
		out[path] = value
	}
	return out
}

// latest is the latest revision of the release.
func (one *twin) latest() int {
	list, err := one.in("secrets").List(one.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=x"})
	if err != nil {
		one.Fatal(err)
	}
	last := 0
	for _, item := range list.Items {
		n, _ := strconv.Atoi(item.GetLabels()["version"])
		last = max(last, n)
	}
	return last
}

// playHooks does what the program of the hook's Job would do, for both.
func (s *twins) playHooks(what string) {
	do, ok := hookDeeds[what]
	if !ok {
		do = func(*twin) {}
	}
	for _, one := range s.both() {
		one.proxy.arm(&fate{
			at: func(_ int, c call) bool {
				path, _, _ := strings.Cut(c.path, "?")
				return c.method == "POST" && c.write() && strings.HasSuffix(path, "/jobs")
			},
			when: after, do: func() { do(one) },
		})
	}
}

// hookDeeds are what hooks do.
var hookDeeds = map[string]func(*twin){
	"scale": func(one *twin) { one.change("deployments", "web", `{"spec":{"replicas":0}}`) },
	"patch": func(one *twin) { one.change("configmaps", "a", `{"data":{"key":"hook","more":"hook"}}`) },
	"label": func(one *twin) {
		one.change("services", "web", `{"metadata":{"labels":{"hook":"was-here"}},"spec":{"selector":{"app":"hook"}}}`)
	},
	"delete": func(one *twin) { one.drop("configmaps", "a") },
	"fixed":  func(one *twin) { one.drop("configmaps", "fixed") },
	"make": func(one *twin) {
		obj := kubetest.Object(one.T, configMap("of-hook", "1"))
		if _, err := one.in("configmaps").Create(one.bound(), obj, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil && !apierrors.IsAlreadyExists(err) {
			one.Error(err)
		}
	},
}

// change changes an object, if it is there.
func (one *twin) change(kind, name, patch string) {
	_, err := one.in(kind).Patch(one.bound(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-patch"})
	if err != nil && !apierrors.IsNotFound(err) {
		one.Errorf("changing %s/%s: %v", kind, name, err)
	}
}

// drop deletes an object, if it is there.
func (one *twin) drop(kind, name string) {
	if err := one.in(kind).Delete(one.bound(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		one.Errorf("deleting %s/%s: %v", kind, name, err)
	}
}

// byHand is what somebody does between two steps, in both namespaces.
func (s *twins) byHand() {
	names := slices.Sorted(maps.Keys(handDeeds))
	name := names[s.IntN(len(names))]
	s.tell("by hand: %s", name)
	for _, one := range s.both() {
		handDeeds[name](one)
	}
}

var handDeeds = map[string]func(*twin){
	"delete ConfigMap a":    func(one *twin) { one.drop("configmaps", "a") },
	"delete Service web":    func(one *twin) { one.drop("services", "web") },
	"delete Deployment web": func(one *twin) { one.drop("deployments", "web") },
	"change and add to a":   func(one *twin) { one.change("configmaps", "a", `{"data":{"key":"edited","added":"1"}}`) },
	"remove a key of a":     func(one *twin) { one.change("configmaps", "a", `{"data":{"key":null}}`) },
	"label and annotate web": func(one *twin) {
		one.change("deployments", "web", `{"metadata":{"labels":{"by":"hand"},"annotations":{"by":"hand"}}}`)
	},
	"scale web":              func(one *twin) { one.change("deployments", "web", `{"spec":{"replicas":3}}`) },
	"change the port of web": func(one *twin) { one.change("services", "web", `{"spec":{"selector":{"app":"other"}}}`) },
	"put a source in a volume": func(one *twin) {
		one.strategic("web", `{"spec":{"template":{"spec":{"volumes":[{"name":"v","emptyDir":null,"configMap":{"name":"a"}}]}}}}`)
	},
	"change the image of web": func(one *twin) {
		one.strategic("web", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"r/edited:1"}]}}}}`)
	},
	"add a variable to web": func(one *twin) {
		one.strategic("web", `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"BYHAND","value":"1"}]}]}}}}`)
	},
	"raise the quota":   func(one *twin) { one.change("resourcequotas", "quota", `{"spec":{"hard":{"configmaps":"90"}}}`) },
	"delete the budget": func(one *twin) { one.drop("poddisruptionbudgets", "web") },
	"restart web": func(one *twin) {
		one.change("deployments", "web", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
	},
	"change the kept ConfigMap": func(one *twin) { one.change("configmaps", "kept", `{"data":{"key":"edited"}}`) },
}

// strategic is change by a strategic merge patch of a Deployment.
func (one *twin) strategic(name, patch string) {
	_, err := one.in("deployments").Patch(one.bound(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
		one.Errorf("changing Deployment/%s: %v", name, err)
	}
}

// A drawnChart says what a chart has: each field is one thing that moves from one revision to the next.
type drawnChart struct {
	Key        int    // of ConfigMap a
	Objects    int    // more ConfigMaps
	Replicas   int    // of Deployment web
	Autoscaled bool   // web, by a HorizontalPodAutoscaler
	Volume     string // the source of its volume
	Probe      string
	Env        string
	Strategy   string
	Worker     string // the name of a workload with a port of a node; empty: none
	NodePort   string // the Service that has a port of all nodes; empty: none
	Quota      int    // of ConfigMaps; 0: none
	Limits     int    // of memory, by a LimitRange; 0: none
	Memory     int    // that a Pod asks for; 0: no Pod
	Budget     bool   // a PodDisruptionBudget
	Fixed      int    // the content of an immutable ConfigMap, or its name; 0: none
	FixedNamed bool   // the immutable ConfigMap is renamed with its content
	Kept       bool
	Secret     int    // a Secret and a ServiceAccount with a token; 0: none
	Database   string // the name of a StatefulSet; empty: none
	Policy     string // the value that a policy forbids; empty: none
	Space      string // the pod security level of a Namespace; empty: none
	HostPods   bool   // pods there that only the level privileged admits
	Hook       string // its event; empty: none
	HookDoes   string
	HookFails  bool
}

func (c drawnChart) String() string {
	text, _ := json.Marshal(c)
	return string(text)
}

func oneOf[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// parts are what next changes, one by one.
var parts = []func(*rand.Rand, *drawnChart){
	func(r *rand.Rand, c *drawnChart) { c.Key = r.IntN(4) },
	func(r *rand.Rand, c *drawnChart) {
		c.Objects = r.IntN(5)
		if c.Quota > 0 {
			c.Quota = c.Objects + 8
		}
	},
	func(r *rand.Rand, c *drawnChart) { c.Replicas = 1 + r.IntN(2) },
	func(r *rand.Rand, c *drawnChart) { c.Autoscaled = !c.Autoscaled },
	func(r *rand.Rand, c *drawnChart) {
		c.Volume = oneOf(r, "", "none", "emptyDir", "sized", "configMap", "secret", "projected")
	},
	func(r *rand.Rand, c *drawnChart) { c.Probe = oneOf(r, "", "httpGet", "tcpSocket", "exec") },
	func(r *rand.Rand, c *drawnChart) {
		c.Env = oneOf(r, "", "value", "fieldRef", "configMapKeyRef", "twice")
	},
	func(r *rand.Rand, c *drawnChart) { c.Strategy = oneOf(r, "", "Recreate", "RollingUpdate", "surge") },
	func(r *rand.Rand, c *drawnChart) { c.Worker = oneOf(r, "", "worker", "agent", "runner") },
	func(r *rand.Rand, c *drawnChart) { c.NodePort = oneOf(r, "", "front", "edge") },
	func(r *rand.Rand, c *drawnChart) { c.Quota = oneOf(r, 0, c.Objects+8, c.Objects+20) },
	func(r *rand.Rand, c *drawnChart) { c.Limits = oneOf(r, 0, 64, 128); c.Memory = min(c.Memory, c.Limits) },
	func(r *rand.Rand, c *drawnChart) {
		if c.Memory = oneOf(r, 0, 64, 128); c.Limits > 0 {
			c.Limits = max(c.Limits, c.Memory)
		}
	},
	func(r *rand.Rand, c *drawnChart) { c.Budget = !c.Budget },
	func(r *rand.Rand, c *drawnChart) {
		c.Fixed = r.IntN(3)
		c.FixedNamed = true
	},
	func(r *rand.Rand, c *drawnChart) { c.Kept = !c.Kept },
	func(r *rand.Rand, c *drawnChart) { c.Secret = r.IntN(3) },
	func(r *rand.Rand, c *drawnChart) { c.Database = oneOf(r, "", "db", "database") },
	func(r *rand.Rand, c *drawnChart) { c.Policy = oneOf(r, "", "0", "1", "2") },
	func(r *rand.Rand, c *drawnChart) {
		c.Space, c.HostPods = "privileged", r.IntN(2) == 0
		if !c.HostPods {
			c.Space = oneOf(r, "baseline", "privileged", "restricted")
		}
	},
	func(r *rand.Rand, c *drawnChart) {
		c.Hook = oneOf(r, "pre-install,pre-upgrade", "pre-upgrade", "post-upgrade", "pre-upgrade,pre-rollback")
		c.HookDoes = oneOf(r, "", "scale", "patch", "label", "delete", "make", "fixed")
		if c.Hook == "post-upgrade" {
			c.HookDoes = "" // nothing of Helm's or ours looks again
		}
		if c.HookDoes == "fixed" {
			c.Fixed, c.FixedNamed = 1+r.IntN(3), false
		}
	},
	func(r *rand.Rand, c *drawnChart) { c.HookFails = c.Hook != "" && r.IntN(4) == 0 },
}

// drawChart draws the first chart.
func drawChart(r *rand.Rand) drawnChart {
	c := drawnChart{Replicas: 1}
	for range 4 + r.IntN(len(parts)) {
		parts[r.IntN(len(parts))](r, &c)
	}
	c.HookFails = false
	if c.HookDoes == "scale" || c.HookDoes == "make" {
		c.HookDoes = ""
	}
	return c.valid()
}

// next is a chart that differs from this one in some parts.
func (c drawnChart) next(r *rand.Rand) drawnChart {
	c.HookFails = false
	if c.Hook == "" || c.HookDoes != "fixed" {
		c.FixedNamed = true
	}
	for range 1 + r.IntN(5) {
		parts[r.IntN(len(parts))](r, &c)
	}
	return c.valid()
}

// valid is the chart without what contradicts itself.
func (c drawnChart) valid() drawnChart {
	if c.Policy == fmt.Sprint(c.Key) {
		c.Policy = ""
	}
	return c
}

// templates are the chart's.
func (c drawnChart) templates() []string {
	out := []string{configMap("a", fmt.Sprint(c.Key)), c.web(), "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{name: http, port: 80}]}\n"}
	add := func(when bool, text string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(text, args...))
		}
	}
	for i := range c.Objects {
		out = append(out, configMap(fmt.Sprint("more", i), fmt.Sprint(c.Key)))
	}
	add(c.Autoscaled, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {minReplicas: 2, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n")
	add(c.Worker != "", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: %[1]s}\nspec:\n  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n    spec:\n      containers: [{name: c, image: 'r/x:1', ports: [{containerPort: 80, hostPort: {{ .Values.port }}}]}]\n", c.Worker)
	for _, name := range []string{"front", "edge"} {
		port := ""
		if c.NodePort == name {
			port = ", nodePort: {{ .Values.port }}"
		}
		add(c.NodePort != "", "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: NodePort, selector: {app: web}, ports: [{port: 80%s}]}\n", name, port)
	}
	add(c.Quota > 0, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: quota}\nspec: {hard: {configmaps: %d}}\n", c.Quota)
	add(c.Limits > 0, "apiVersion: v1\nkind: LimitRange\nmetadata: {name: limits}\nspec: {limits: [{type: Container, max: {memory: %[1]dMi}, default: {memory: %[1]dMi}, defaultRequest: {memory: 16Mi}}]}\n", c.Limits)
	add(c.Memory > 0, "apiVersion: v1\nkind: Pod\nmetadata: {name: single-%[1]d}\nspec: {automountServiceAccountToken: false, containers: [{name: c, image: 'r/x:1', resources: {requests: {memory: 16Mi}, limits: {memory: %[1]dMi}}}]}\n", c.Memory)
	add(c.Budget, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: %d, selector: {matchLabels: {app: web}}}\n", c.Replicas)
	name := "fixed"
	if c.FixedNamed {
		name += fmt.Sprint("-", c.Fixed)
	}
	add(c.Fixed > 0, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\nimmutable: true\ndata: {a: '%d'}\n", name, c.Fixed)
	add(c.Kept, "%s", kept("kept", fmt.Sprint(c.Key)))
	add(c.Secret > 0, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {a: '%d', b: x}\n", c.Secret)
	add(c.Database != "", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %[1]s}\nspec:\n  serviceName: %[1]s\n  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n    spec: {containers: [{name: c, image: 'r/x:%[2]d'}]}\n", c.Database, c.Key)
	add(c.Policy != "", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: 'policy-{{ .Values.suffix }}'}\nspec:\n  matchConstraints:\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '{{ .Release.Namespace }}'}}\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]\n  validations: [{expression: \"!has(object.data) || object.data.?key.orValue('') != '%s'\"}]\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: 'policy-{{ .Values.suffix }}'}\nspec: {policyName: 'policy-{{ .Values.suffix }}', validationActions: [Deny]}\n", c.Policy)
	add(c.Space != "", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: 'space-{{ .Values.suffix }}'\n  labels: {pod-security.kubernetes.io/enforce: %s}\n", c.Space)
	add(c.HostPods, "apiVersion: v1\nkind: Pod\nmetadata: {name: host, namespace: 'space-{{ .Values.suffix }}'}\nspec: {hostPID: true, automountServiceAccountToken: false, containers: [{name: c, image: 'r/x:1'}]}\n")
	add(c.Hook != "", "%s", hookJob("hook", c.Hook, "before-hook-creation", c.HookFails))
	return out
}

// web is the Deployment that most of the story is about.
func (c drawnChart) web() string {
	var spec strings.Builder
	if !c.Autoscaled {
		fmt.Fprintf(&spec, "  replicas: %d\n", c.Replicas)
	}
	switch c.Strategy {
	case "Recreate", "RollingUpdate":
		fmt.Fprintf(&spec, "  strategy: {type: %s}\n", c.Strategy)
	case "surge":
		spec.WriteString("  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n")
	}
	container := map[string]string{
		"httpGet": "          readinessProbe: {httpGet: {path: /, port: 80}}\n", "tcpSocket": "          readinessProbe: {tcpSocket: {port: 80}}\n", "exec": "          readinessProbe: {exec: {command: [a]}}\n",
	}[c.Probe] + map[string]string{
		"value": "          env: [{name: A, value: b}]\n", "fieldRef": "          env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n",
		"configMapKeyRef": "          env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: key, optional: true}}}, {name: B, value: c}]\n", "twice": "          env: [{name: B, value: '1'}, {name: A, value: $(B)}]\n",
	}[c.Env]
	source, has := map[string]string{
		"none": "", "emptyDir": ", emptyDir: {}", "sized": ", emptyDir: {sizeLimit: 1Gi}", "configMap": ", configMap: {name: a}",
		"secret": ", secret: {secretName: plain, optional: true}", "projected": ", projected: {sources: [{configMap: {name: a, optional: true}}]}",
	}[c.Volume]
	volumes := ""
	if has {
		container += "          volumeMounts: [{name: v, mountPath: /v}]\n"
		volumes = "      volumes: [{name: v" + source + "}]\n"
	}
	return deployment("web", "web", strings.TrimSuffix(spec.String(), "\n")) + container + volumes
}
