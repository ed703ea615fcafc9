package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"deployer/apply"
)

// unchangeable are changes that the server refuses because of what is there,
// by kind: the object, what is replaced in it and by what. The ports and addresses are of those that API servers
// give only to who names them. Cluster-wide names
// bear the namespace.
var unchangeable = map[string][3]string{
	"ConfigMap":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nimmutable: true\ndata: {a: b}", "a: b", "a: c"},
	"Secret":             {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nimmutable: true\nstringData: {a: b}", "a: b", "a: c"},
	"Secret's type":      {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ntype: Opaque\nstringData: {a: b}", "Opaque", "example.com/x"},
	"Service":            {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 80}]}", "{ports", "{clusterIP: None, ports"},
	"Service's address":  {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}", "clusterIP: None, ", "clusterIP: 10.96.0.77, "},
	"Service's port":     {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: NodePort, clusterIP: 10.96.0.78, ports: [{port: 80, nodePort: 30085}]}", "10.96.0.78", "10.96.0.79"},
	"headless Service":   {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {clusterIP: None, ports: [{port: 80}]}", "clusterIP: None, ", "type: NodePort, "},
	"Deployment":         {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "a: b", "a: c"},
	"DaemonSet":          {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: i}]}}}", "a: b", "a: c"},
	"ReplicaSet":         {"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: x}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "a: b", "a: c"},
	"StatefulSet":        {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {replicas: 0, serviceName: one, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}", "one", "two"},
	"Pod":                {"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {schedulerName: none, automountServiceAccountToken: false, containers: [{name: c, image: i}]}", "schedulerName", "hostNetwork: true, schedulerName"},
	"RoleBinding":        {"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}", "name: a", "name: b"},
	"ClusterRoleBinding": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}", "name: a", "name: b"},
	"StorageClass":       {"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NS-x}\nprovisioner: example.com/x\nparameters: {a: b}", "a: b", "a: c"},
	"StorageClass's":     {"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NS-x}\nprovisioner: example.com/x", "example.com/x", "example.com/z\nreclaimPolicy: Retain\nvolumeBindingMode: WaitForFirstConsumer"},
	"PriorityClass":      {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS-x}\nvalue: 1", "value: 1", "value: 2"},
	"PriorityClass's":    {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS-x}\nvalue: 1", "value: 1", "value: 1\npreemptionPolicy: Never"},
	"IngressClass":       {"apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: NS-x}\nspec: {controller: example.com/x}", "example.com/x", "example.com/z"},
	"RuntimeClass":       {"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: NS-x}\nhandler: a", "handler: a", "handler: b"},
	"CSIDriver":          {"apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: NS-x}\nspec: {attachRequired: true}", "attachRequired: true", "attachRequired: false"},
	"ResourceQuota":      {"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: x}\nspec: {hard: {pods: '9'}, scopes: [BestEffort]}", "BestEffort", "NotBestEffort"},
}

// What can't be changed is told as such, is left alone by
// default, and is made anew if that is allowed.
func TestImmutableKinds(t *testing.T) {
	t.Parallel()
	for name, c := range unchangeable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			first, next := c[0], strings.ReplaceAll(c[0], c[1], c[2])
			want := s.manifests(first)[0].Object
			get := func() string {
				return string(s.get(want.GetAPIVersion(), want.GetKind(), want.GetName()).GetUID())
			}
			t.Cleanup(func() { _ = s.client(want.GetAPIVersion(), want.GetKind()).Delete(bg, want.GetName(), deleteNow) })
			s.deploy(first)
			was := get()
			err := s.refuse(next)
			var broken *apply.ImmutableError
			if !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "--allow-recreate") {
				t.Fatalf("got %v", err)
			}
			if says := "changes no volume that it has made"; strings.HasPrefix(name, "StorageClass") != strings.Contains(broken.Hint(), says) {
				t.Errorf("hint %q", broken.Hint())
			}
			if get() != was {
				t.Errorf("it was made anew without being allowed to")
			}
			s.opts.AllowRecreate = true
			p := s.deploy(next)
			s.expect(p, "recreate "+want.GetKind()+"/"+want.GetName())
			if get() == was {
				t.Errorf("it is the same object")
			}
			s.expect(s.deploy(next))
		})
	}
}

// Whether the live object has a policy to be kept or the chart's, and be it
// misspelt: it isn't made anew, whatever is allowed.
func TestKeptObjectsAreNotRecreated(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"keep", "Keep ", "kepe"} {
		for _, c := range []struct{ before, after string }{{policy, policy}, {policy, "delete"}, {"delete", policy}} {
			s := newStory(t)
			s.opts.AllowRecreate = true
			chart := func(policy, value string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {helm.sh/resource-policy: %q}}\nimmutable: true\ndata: {a: %s}", policy, value)
			}
			s.deploy(chart(c.before, "b"))
			var broken *apply.ImmutableError
			_, err := s.tryPlan(s.request(chart(c.after, "c")))
			if !errors.As(err, &broken) || !broken.Never {
				t.Errorf("%q, then %q: got %v", c.before, c.after, err)
			}
		}
	}
}

// What is wrong is no reason to delete anything, whatever is allowed.
func TestMistakesDeleteNothing(t *testing.T) {
	s := begin(t)
	s.opts.AllowRecreate = true
	s.dropCRDs(1)
	const rule = `x-kubernetes-validations: [{rule: "self.size < 50 || self.replicas > 0", message: "size is immutable above 50"}]`
	crd := strings.Replace(definition(0, ""), "required: [size]", "required: [size]\n            "+rule, 1)
	headless := service("clusterIP: None, ports: [{port: 80}]")
	s.deploy(crd + foo(0, "size: 5") + "---" + small + "---\n" + headless)
	for what, chart := range map[string]string{
		"a rule":    crd + foo(0, "size: 60") + "---" + small,
		"a typo":    crd + foo(0, "size: 5") + "---" + strings.Replace(small, "image: nginx:1", "image: ''", 1),
		"a limit":   crd + foo(0, "size: 5") + "---" + strings.Replace(small, "image: nginx:1", "image: nginx:1\n        resources: {requests: {cpu: 2}, limits: {cpu: 1}}", 1),
		"a maximum": crd + foo(0, "size: 500") + "---" + small,
		// What can't be changed and is wrong too would be wrong in a new object.
		"both":       crd + foo(0, "size: 5") + "---" + strings.NewReplacer("app: web}}\n  template", "app: z}}\n  template", "image: nginx:1", "image: ''").Replace(small),
		"an address": crd + foo(0, "size: 5") + "---" + strings.Replace(headless, "None, ", "None, type: NodePort, ", 1),
	} {
		_, err := s.tryPlan(s.request(chart))
		var broken *apply.ImmutableError
		if err == nil || errors.As(err, &broken) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A rule of a CRD that compares with the old value makes the field immutable.
func TestImmutableByRule(t *testing.T) {
	s := begin(t)
	s.dropCRDs(2)
	rules := func(n int, rule string) string {
		return strings.Replace(definition(n, ""), "size: {type: integer, maximum: 100}", "size: {type: integer, maximum: 100, x-kubernetes-validations: ["+rule+"]}", 1)
	}
	crds := rules(0, "{rule: self == oldSelf}") + rules(1, "{rule: self == oldSelf, message: stays as it was}")
	s.deploy(crds + foo(0, "size: 5") + foo(1, "size: 5"))
	err := s.refuse(crds + foo(0, "size: 6") + foo(1, "size: 6"))
	var rejected *apply.RejectedError
	if !errors.As(err, &rejected) || len(rejected.Rejections) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, r := range rejected.Rejections {
		if broken := (*apply.ImmutableError)(nil); !errors.As(r.Err, &broken) {
			t.Errorf("not taken for immutable: %v", r)
		}
	}
	s.opts.AllowRecreate = true
	s.refuse(crds + foo(0, "size: 6") + foo(1, "size: 6")) // what stands behind them may hold data
	consents := func(chart string) string {
		return strings.ReplaceAll(chart, "metadata: {name: f}", `metadata: {name: f, annotations: {deployer.io/recreate: "true"}}`)
	}
	s.expect(s.deploy(crds+consents(foo(0, "size: 6")+foo(1, "size: 6"))), "recreate Foo0/f", "recreate Foo1/f")
}

// A policy that forbids a change, in whatever words, isn't circumvented by deleting the object.
func TestPolicyThatSaysImmutable(t *testing.T) {
	s := begin(t)
	s.c.Since(t, "1.30", "ValidatingAdmissionPolicies")
	chart := strings.Replace(config("a"), "name: a", "labels: {tier: gold}, name: a", 1)
	s.deploy(chart)
	silver := strings.Replace(chart, "gold", "silver", 1)
	s.policy(s.ns, "configmaps", "object.metadata.labels.tier == 'gold'", "the label tier is immutable in this cluster", s.dryRunOf(strings.Replace(silver, "name: a", "name: probe", 1)))
	s.opts.AllowRecreate = true
	if err := s.refuse(silver); errors.As(err, new(*apply.ImmutableError)) || !strings.Contains(err.Error(), "tier is immutable") {
		t.Errorf("got %v", err)
	}
}

// A claim that a pod uses isn't deleted: the deletion would wait for the pod, and the data be lost when that is gone.
func TestClaimInUseIsNotRecreated(t *testing.T) {
	s := begin(t)
	claim := func(class string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {deployer.io/recreate: 'true'}}\nspec: {accessModes: [ReadWriteOnce], storageClassName: " + class + ", resources: {requests: {storage: 1Gi}}}\n"
	}
	s.deploy(claim("a"))
	rejected, _ := errors.AsType[*apply.RejectedError](s.refuse(claim("b")))
	if got := strings.Join(hints(rejected), ""); !strings.Contains(got, "give the chart's claim another name and copy the data") {
		t.Errorf("hint %q", got)
	}
	s.opts.AllowRecreate = true
	user := s.manifests("apiVersion: v1\nkind: Pod\nmetadata: {name: user}\nspec: {containers: [{name: c, image: x}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}")[0].Object
	s.post(user, "x")
	err := s.refuse(claim("b"))
	rejected, _ = errors.AsType[*apply.RejectedError](err)
	if got := strings.Join(hints(rejected), ""); !strings.Contains(got, "Pod/"+s.ns+"/user") {
		t.Errorf("%v (%s)", err, got)
	}
	if err := s.client("v1", "Pod").Delete(t.Context(), "user", deleteNow); err != nil {
		t.Fatal(err)
	}
	s.eventually("the pod is gone", func() error {
		if s.get("v1", "Pod", "user") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	s.expect(s.deploy(claim("b")), "recreate PersistentVolumeClaim/data")
}

// A StatefulSet whose selector changes takes its pods along: the new one couldn't adopt them, nor create others of their names.
func TestStatefulSetWithOtherSelector(t *testing.T) {
	s := begin(t)
	set := func(labels string) string {
		return "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {serviceName: db, selector: {matchLabels: {" + labels + "}}, template: {metadata: {labels: {" + labels + "}}, spec: {containers: [{name: c, image: x}]}}}\n"
	}
	s.deploy(set("app: db"))
	var old types.UID
	pod := func(is func(types.UID) bool) func() error {
		return func() error {
			if p := s.get("v1", "Pod", "db-0"); p == nil || !is(p.GetUID()) {
				return errors.New("not yet")
			} else if old == "" {
				old = p.GetUID()
			}
			return nil
		}
	}
	s.eventually("the pod is there", pod(func(types.UID) bool { return true }))
	s.opts.AllowRecreate = true
	s.expect(s.deploy(set("app: db, component: x")), "recreate StatefulSet/db")
	s.eventually("the pod is another one", pod(func(uid types.UID) bool { return uid != old }))
}

// A VolumeAttributesClass that claims have isn't deleted: the deletion would wait for them.
func TestAttributesClassInUseIsNotRecreated(t *testing.T) {
	s := begin(t)
	s.c.Since(t, "1.34", "VolumeAttributesClasses")
	class := func(iops string) string {
		return "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: " + s.ns + "}\ndriverName: example.com\nparameters: {iops: '" + iops + "'}\n"
	}
	t.Cleanup(func() {
		_ = s.client("storage.k8s.io/v1", "VolumeAttributesClass").Delete(bg, s.ns, deleteNow)
	})
	s.deploy(class("1"))
	s.opts.AllowRecreate = true
	s.post(s.manifests("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: a, volumeAttributesClassName: " + s.ns + ", resources: {requests: {storage: 1Gi}}}")[0].Object, "x")
	err := s.refuse(class("2"))
	rejected, _ := errors.AsType[*apply.RejectedError](err)
	if got := strings.Join(hints(rejected), ""); !strings.Contains(got, "PersistentVolumeClaim/"+s.ns+"/data") {
		t.Errorf("%v (%s)", err, got)
	}
	if err := s.client("v1", "PersistentVolumeClaim").Delete(t.Context(), "data", deleteNow); err != nil {
		t.Fatal(err)
	}
	s.eventually("the claim is gone", func() error {
		if s.get("v1", "PersistentVolumeClaim", "data") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	s.expect(s.deploy(class("2")), "recreate VolumeAttributesClass/"+s.ns)
}

// What controllers look up when they see an object is there before it: a controller deletes a token without its account, the
// garbage collector what has no owner, and a claim without its volume gets another one.
func TestWhatControllersLookUpComesFirst(t *testing.T) {
	t.Parallel()
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n---\n"
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: CLASS, resources: {requests: {storage: 1Gi}}}\n---\n"
	const class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: CLASS}\nprovisioner: example.com/x\n---\n"
	const volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: CLASS}\nspec: {accessModes: [ReadWriteOnce], storageClassName: CLASS, capacity: {storage: 1Gi}, hostPath: {path: /x}}\n---\n"
	for _, c := range []struct{ chart, want string }{
		{"apiVersion: v1\nkind: Secret\nmetadata: {name: token, annotations: {kubernetes.io/service-account.name: robot}}\ntype: kubernetes.io/service-account-token\n---\n" + account, "ServiceAccount | Secret |"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: [{apiVersion: v1, kind: ServiceAccount, name: robot, uid: x}]}\n---\n" + account, "ServiceAccount | ConfigMap |"},
		{claim + class + volume, "PersistentVolume StorageClass | PersistentVolumeClaim |"},
		{claim + strings.ReplaceAll(class, "CLASS}", "OTHER}"), "PersistentVolumeClaim StorageClass |"},
		{strings.Replace(claim, "storageClassName: CLASS, ", "", 1) + class, "StorageClass | PersistentVolumeClaim |"},
	} {
		t.Run(c.want, func(t *testing.T) {
			s := begin(t)
			p := s.plan(strings.NewReplacer("CLASS", s.ns, "OTHER", s.ns+"-other").Replace(c.chart))
			var order []string
			for _, w := range p.Waves {
				var kinds []string
				for _, c := range w.Changes {
					kinds = append(kinds, c.ID.Kind)
				}
				slices.Sort(kinds)
				order = append(append(order, kinds...), "|")
			}
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("order: %s, want %s", got, c.want)
			}
		})
	}
}

// However many objects are refused, the definition of their kind is read once,
// and its metadata.
func TestOneReadingOfADefinition(t *testing.T) {
	s := begin(t)
	s.dropCRDs(1)
	operator := newStory(t)
	operator.ns, operator.owner.Release = s.ns, "operator"
	operator.deploy(strings.Replace(definition(0, ""), "size: {type: integer", "size: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]", 1))
	chart := func(size string) string {
		var out string
		for _, name := range []string{"f", "g", "h", "i", "j"} {
			out += strings.Replace(foo(0, size), "name: f", "name: "+name, 1)
		}
		return out
	}
	s.deploy(chart("size: 5"))
	from := len(s.c.Audit(t, s.agent))
	var rejected *apply.RejectedError
	if err := s.refuse(chart("size: 6")); !errors.As(err, &rejected) || len(rejected.Rejections) != 5 {
		t.Fatalf("got %v", err)
	}
	read := 0
	for _, e := range s.c.Audit(t, s.agent)[from:] {
		if e.Verb == "get" && e.Object.Resource == "customresourcedefinitions" {
			read++
		}
	}
	if read != 2 {
		t.Errorf("read the definition %d times, want 2", read)
	}
}
