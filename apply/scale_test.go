package apply_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
	"deployer/internal/kubetest"
)

// keda makes the kind ScaledObject known.
func (s *story) keda() {
	s.t.Helper()
	crd := s.manifests(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: keda.sh
  scope: Namespaced
  names: {plural: scaledobjects, singular: scaledobject, kind: ScaledObject, listKind: ScaledObjectList}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)[0].Object
	client := s.client("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	if _, err := client.Create(s.t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Delete(bg, crd.GetName(), deleteNow) })
	s.eventually("ScaledObject is served", func() error {
		s.cluster.ForgetKinds()
		if _, err := s.cluster.Mapping(s.t.Context(), scaledObject, true); err != nil {
			return err
		}
		_, err := s.client("keda.sh/v1alpha1", "ScaledObject").List(s.t.Context(), metav1.ListOptions{})
		return err
	})
}

var scaledObject = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}

// What a ScaledObject scales isn't the chart's, with the autoscaler that
// KEDA makes for it, until the chart drops it. The kind has one name in a
// cluster, which other runs of the test must not take away: make test-alone.
func TestAloneScaledByKEDA(t *testing.T) {
	s := begin(t)
	kubetest.Alone(t)
	s.keda()
	const object = "\n---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web}\nspec: {scaleTargetRef: {name: web}, maxReplicaCount: 9}\n"
	s.deploy(scaled + object)
	hpa := s.manifests(strings.Replace(autoscaler, "metadata: {name: web}", "metadata: {name: keda-hpa-web}", 1))[0].Object
	yes := true
	hpa.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "web", Controller: &yes,
		UID: s.get("keda.sh/v1alpha1", "ScaledObject", "web").GetUID(),
	}})
	s.post(hpa, "keda")
	s.scale(7, "kube-controller-manager")
	p := s.deploy(strings.Replace(scaled, "nginx:1", "nginx:2", 1) + object)
	if got := s.replicas(); got != int64(7) || !strings.Contains(outcomes(p), "yielded by") {
		t.Errorf("replicas %v, conflicts %s", got, outcomes(p))
	}
	s.deploy(scaled)
	if got := s.replicas(); got != int64(2) {
		t.Errorf("replicas when the ScaledObject has gone: %v", got)
	}
}

// An object that is made anew begins with the number that its autoscaler has
// come to.
func TestRecreatedWhileAutoscaled(t *testing.T) {
	s := begin(t)
	s.opts.AllowRecreate = true
	s.deploy(scaled + autoscaler)
	s.scale(7, "kube-controller-manager")
	p := s.deploy(strings.ReplaceAll(scaled, "app: web", "app: new") + autoscaler)
	s.expect(p, "recreate Deployment/web")
	if got := s.replicas(); got != int64(7) {
		t.Errorf("replicas: %v", got)
	}
}

// Where a kind has its number, its definition says.
func TestReplicasOfCustomResources(t *testing.T) {
	t.Parallel()
	for _, inChart := range []bool{true, false} {
		t.Run(fmt.Sprint("definition in the chart=", inChart), func(t *testing.T) {
			s := begin(t)
			s.dropCRDs(1)
			crd := strings.Replace(definition(0, ""), "specReplicasPath: .spec.replicas", "specReplicasPath: .spec.size", 1)
			s.deploy(crd)
			if !inChart {
				s.past, crd = nil, config("instead")
			}
			s.deploy(crd + foo(0, "size: 2, maybe: a"))
			size := func() any { return at(s.get(s.ns+".example.com/v1", "Foo0", "f"), "spec.size") }
			s.patch(s.ns+".example.com/v1", "Foo0", "f", types.MergePatchType, `{"spec":{"replicas":6}}`, "some-controller", "scale")
			p := s.deploy(crd + foo(0, "size: 2, maybe: b"))
			if got := size(); got != int64(2) || outcomes(p) != "spec.size: 6 -> 2 (taken by some-controller)" {
				t.Errorf("size %v, conflicts %s", got, outcomes(p))
			}
			s.patch(s.ns+".example.com/v1", "Foo0", "f", types.MergePatchType, `{"spec":{"replicas":6}}`, "some-controller", "scale")
			p = s.deploy(crd + foo(0, "maybe: b, replicas: 3"))
			if got := size(); got != int64(6) {
				t.Errorf("size %v when the chart has none, conflicts %s", got, outcomes(p))
			}
		})
	}
}

// TestReplicasStayWhereAutoscalersAreUnknown fails if the chart's number of replicas is
// applied because the API server couldn't say whether there are autoscalers.
func TestReplicasStayWhereAutoscalersAreUnknown(t *testing.T) {
	s := begin(t)
	s.deploy(scaled)
	s.post(s.manifests(autoscaler)[0].Object, "somebody")
	s.scale(7, "kube-controller-manager")
	s.withoutAnswerOf("autoscaling", "v2")
	s.marks = nil
	s.deploy(scaled)
	if got := s.replicas(); got != int64(7) {
		t.Errorf("replicas: %v, want the 7 of the autoscaler", got)
	}
}

// Prevents that a workload whose chart leaves the number of replicas to others is recreated with one replica.
func TestRecreatedWithoutStatedReplicas(t *testing.T) {
	t.Parallel()
	for _, scaler := range []string{"", autoscaler} {
		t.Run(fmt.Sprint("autoscaled=", scaler != ""), func(t *testing.T) {
			s := begin(t)
			s.opts.AllowRecreate = true
			chart := strings.Replace(scaled, "  replicas: 2\n", "", 1)
			s.deploy(chart + scaler)
			s.scale(7, "kube-controller-manager")
			next := strings.ReplaceAll(chart, "app: web", "app: new")
			s.expect(s.deploy(next+scaler), "recreate Deployment/web")
			if got := s.replicas(); got != int64(7) {
				t.Errorf("replicas: %v", got)
			}
			s.expect(s.deploy(strings.Replace(next, "nginx:1", "nginx:2", 1)+scaler), "update Deployment/web")
			if got := s.replicas(); got != int64(7) {
				t.Errorf("replicas after the next release: %v", got)
			}
		})
	}
}

// Prevents that the chart's number of replicas is applied when the chart drops an autoscaler that stays, because of its
// resource policy.
func TestReplicasStayWhenTheAutoscalerIsKept(t *testing.T) {
	s := begin(t)
	s.deploy(scaled + strings.Replace(autoscaler, "{name: web}\nspec", "{name: web, annotations: {helm.sh/resource-policy: keep}}\nspec", 1))
	s.scale(7, "kube-controller-manager")
	s.deploy(strings.Replace(scaled, "nginx:1", "nginx:2", 1))
	if s.get("autoscaling/v2", "HorizontalPodAutoscaler", "web") == nil {
		t.Fatal("the autoscaler was deleted")
	}
	if got := s.replicas(); got != int64(7) {
		t.Errorf("replicas: %v, want the 7 of the autoscaler", got)
	}
}

// A number that something has set that can't be seen any more is a conflict like others; what a custom resource scales stays.
func TestScalerThatIsGone(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	scalers := strings.NewReplacer("Foo0", "CronHPA", "foo0", "cronhpa", "required: [size]", "x-kubernetes-preserve-unknown-fields: true").Replace(definition(0, "")) + "---\n"
	s.deploy(scalers + scaled)
	s.scale(7, "some-autoscaler")
	s.opts.Conflicts = decide.FailOnConflict
	if err := s.refuse(scalers + scaled); !strings.Contains(err.Error(), "some-autoscaler") {
		t.Errorf("fail: %v", err)
	}
	s.opts.Conflicts = decide.YieldConflicts
	s.deploy(scalers + scaled)
	if got := s.replicas(); got != int64(7) {
		t.Errorf("yield: replicas %v", got)
	}
	s.opts.Conflicts = ""
	if got := outcomes(s.deploy(scalers + scaled)); got != "spec.replicas: 7 -> 2 (taken by some-autoscaler)" || s.replicas() != int64(2) {
		t.Errorf("replicas %v, conflicts %s", s.replicas(), got)
	}
	s.scale(7, "some-autoscaler")
	s.post(s.manifests("apiVersion: NS.example.com/v1\nkind: CronHPA\nmetadata: {name: web}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}")[0].Object, "x")
	if got := outcomes(s.deploy(scalers + scaled)); got != "spec.replicas: 7 -> 2 (yielded by CronHPA/web)" || s.replicas() != int64(7) {
		t.Errorf("with the scaler: replicas %v, conflicts %s", s.replicas(), got)
	}
}

// TestStoppedWorkloads fails if a workload stays at zero, where a HorizontalPodAutoscaler never acts, when one comes for it; and
// that one is started, or refused, that people or an autoscaler that was there before have stopped.
func TestStoppedWorkloads(t *testing.T) {
	t.Parallel()
	const other = "\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: later}\n" +
		"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 9}\n"
	unstated := strings.Replace(scaled, "  replicas: 2\n", "", 1)
	for _, c := range []struct {
		name, before, next string
		conflicts          decide.ConflictPolicy
		want               int64
	}{
		{"an autoscaler comes", scaled, unstated + autoscaler, decide.TakeConflicts, 2},
		{"and conflicts aren't allowed", scaled, unstated + autoscaler, decide.FailOnConflict, 2},
		{"and conflicts yield", scaled, unstated + autoscaler, decide.YieldConflicts, 2},
		{"and the object is made anew", scaled, strings.ReplaceAll(unstated, "app: web", "app: new") + autoscaler, decide.TakeConflicts, 2},
		{"one moves on to it", scaled + strings.Replace(autoscaler, "kind: Deployment, name: web", "kind: Deployment, name: other", 1), unstated + autoscaler, decide.TakeConflicts, 2},
		{"an autoscaler was there", scaled + autoscaler, unstated + autoscaler, decide.TakeConflicts, 0},
		{"and conflicts aren't allowed there", scaled + autoscaler, unstated + autoscaler, decide.FailOnConflict, 0},
		{"and the object is made anew there", scaled + autoscaler, strings.ReplaceAll(unstated, "app: web", "app: new") + autoscaler, decide.TakeConflicts, 0},
		{"another one was there", scaled + autoscaler, unstated + other, decide.TakeConflicts, 0},
		{"nothing scales it", scaled, unstated, decide.FailOnConflict, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			s.opts.AllowRecreate, s.opts.Conflicts = true, c.conflicts
			s.deploy(c.before)
			s.patch("apps/v1", "Deployment", "web", types.MergePatchType, `{"spec":{"replicas":0}}`, "kubectl-edit") // scale owns no zero
			p := s.deploy(c.next)
			if got := s.replicas(); got != c.want || len(conflicts(p)) > 0 {
				t.Errorf("replicas %v, want %d; conflicts %s", got, c.want, outcomes(p))
			}
		})
	}
}

// TestAutoscalerMovesOn fails if a workload keeps the number of an autoscaler that the release gives another one to scale, or if that
// one is set back to the chart's number.
func TestAutoscalerMovesOn(t *testing.T) {
	t.Parallel()
	other := "\n---" + strings.ReplaceAll(scaled, "web", "other")
	onOther := strings.Replace(autoscaler, "kind: Deployment, name: web", "kind: Deployment, name: other", 1)
	for _, c := range []struct {
		name       string
		conflicts  decide.ConflictPolicy
		byHand     bool
		next       string // the autoscaler
		web, other int64
	}{
		{"in the chart", decide.TakeConflicts, false, onOther, 2, 5},
		{"and is another one", decide.TakeConflicts, false, strings.Replace(onOther, "metadata: {name: web}", "metadata: {name: other}", 1), 2, 5},
		{"nowhere", decide.TakeConflicts, false, autoscaler, 7, 2},
		{"by hand, and stays there", decide.YieldConflicts, true, autoscaler, 7, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			s.deploy(scaled + other + autoscaler)
			s.opts.Conflicts = c.conflicts
			s.scale(7, "kube-controller-manager")
			s.patch("apps/v1", "Deployment", "other", types.MergePatchType, `{"spec":{"replicas":5}}`, "kubectl", "scale")
			if c.byHand {
				s.patch("autoscaling/v2", "HorizontalPodAutoscaler", "web", types.MergePatchType, `{"spec":{"scaleTargetRef":{"name":"other"}}}`, "kubectl-edit")
			}
			s.deploy(scaled + other + c.next)
			if web, other := s.replicas(), at(s.get("apps/v1", "Deployment", "other"), "spec.replicas"); web != c.web || other != c.other {
				t.Errorf("web has %v replicas and other %v, want %d and %d", web, other, c.web, c.other)
			}
		})
	}
}
