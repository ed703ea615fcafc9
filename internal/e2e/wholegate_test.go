package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
)

// A movingGate is a release that itself changes what stands in the way of its objects.
type movingGate struct {
	name   string
	before string // the manifests of the first revision; NS is the namespace, UNIQUE a name for objects outside of it
	after  string
	again  []string // what the plan says is checked again, as regular expressions
}

var movingGates = []movingGate{
	{
		name:   "a quota is raised",
		before: configMap("a", "1") + "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: \"0\"}}\n",
		after: configMap("a", "1") + "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: \"2\"}}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n",
		again: []string{`checked again after ResourceQuota/NS/q`, `\+ Service/NS/s +create`, `Plan: 1 to create, 1 to update`},
	},
	{
		name: "a claim is refused twice",
		before: "apiVersion: v1\nkind: LimitRange\nmetadata: {name: lr}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}\n" +
			"---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: UNIQUE}\nprovisioner: shop.test/none\nallowVolumeExpansion: false\n" +
			"---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: UNIQUE}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: UNIQUE, claimRef: {namespace: NS, name: data}, hostPath: {path: /x}}\n" +
			"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: UNIQUE, resources: {requests: {storage: 1Gi}}}\n",
		after: "apiVersion: v1\nkind: LimitRange\nmetadata: {name: lr}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 5Gi}}]}\n" +
			"---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: UNIQUE}\nprovisioner: shop.test/none\nallowVolumeExpansion: true\n" +
			"---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: UNIQUE}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: UNIQUE, claimRef: {namespace: NS, name: data}, hostPath: {path: /x}}\n" +
			"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: UNIQUE, resources: {requests: {storage: 2Gi}}}\n",
		again: []string{`checked again after .*StorageClass/UNIQUE`, `checked again after .*LimitRange/NS/lr`},
	},
	{
		name:   "the level of pod security is lowered",
		before: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-x, labels: {pod-security.kubernetes.io/enforce: restricted}}\n",
		after: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-x, labels: {pod-security.kubernetes.io/enforce: privileged}}\n" +
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: NS-x}\nspec: {hostNetwork: true, terminationGracePeriodSeconds: 1, containers: [{name: c, image: r/x:1}]}\n",
		again: []string{`checked again after Namespace/NS-x`},
	},
	{
		name: "a port moves from one Service to another",
		before: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: NodePort, ports: [{port: 80, nodePort: PORT}]}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {type: ClusterIP, ports: [{port: 80}]}\n",
		after: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: ClusterIP, ports: [{port: 80}]}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {type: NodePort, ports: [{port: 80, nodePort: PORT}]}\n",
		again: []string{`checked again after Service/NS/a`},
	},
	{
		name: "what is dropped leaves room in a quota",
		before: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: \"1\"}}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n",
		after: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: \"1\"}}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 80}]}\n",
		again: []string{`checked again after Service/NS/a`, `Service/NS/a\s+delete: .*before Service/NS/b, which isn't admitted beside it`},
	},
	{
		name:   "the webhook that refuses an object is repaired",
		before: configMap("a", "1") + "---\n" + webhookOf("Fail"),
		after:  configMap("a", "2") + "---\n" + webhookOf("Ignore"),
		again:  []string{`checked again after ValidatingWebhookConfiguration/UNIQUE`},
	},
	{
		name:   "the webhook that refuses an object is dropped",
		before: configMap("a", "1") + "---\n" + webhookOf("Fail"),
		after:  configMap("a", "2"),
		again:  []string{`checked again after ValidatingWebhookConfiguration/UNIQUE`},
	},
	{
		name:   "the webhook that refuses a Secret is dropped",
		before: configMap("a", "1") + "---\n" + replaceOnce(webhookOf("Fail"), "resources: [configmaps]", "resources: [secrets]") + "  objectSelector: {matchLabels: {checked: \"true\"}}\n",
		after:  configMap("a", "2") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {checked: \"true\"}}\n",
		again:  []string{`checked again after ValidatingWebhookConfiguration/UNIQUE: .*webhook "UNIQUE.example.com"`},
	},
	{
		name:   "the parameter of a policy changes",
		before: policyBy("ConfigMap", "object.data.key == params.data.key") + "---\n" + configMap("param", "1") + "---\n" + labelled(configMap("a", "1")),
		after:  policyBy("ConfigMap", "object.data.key == params.data.key") + "---\n" + configMap("param", "2") + "---\n" + labelled(configMap("a", "2")),
		again:  []string{`checked again after ConfigMap/NS/param`},
	},
	{
		name:   "a policy gets another parameter",
		before: policyBy("ConfigMap", "object.data.key == params.data.key") + "---\n" + configMap("param", "1") + "---\n" + labelled(configMap("a", "1")),
		after: strings.ReplaceAll(policyBy("ConfigMap", "object.data.key == params.data.key"), "{name: param, namespace: NS, parameterNotFoundAction: Allow}", "{name: other, namespace: NS, parameterNotFoundAction: Deny}") +
			"---\n" + configMap("other", "2") + "---\n" + labelled(configMap("a", "2")),
		again: []string{`checked again after ConfigMap/NS/other, .*ValidatingAdmissionPolicyBinding/UNIQUE`},
	},
	{
		name:   "a policy gets another parameter by its label",
		before: policyByLabel() + "---\n" + parameter("first", "yes", "1") + "---\n" + parameter("second", "no", "2") + "---\n" + labelled(configMap("a", "1")),
		after:  policyByLabel() + "---\n" + parameter("first", "no", "1") + "---\n" + parameter("second", "yes", "2") + "---\n" + labelled(configMap("a", "2")),
		again:  []string{`checked again after .*PodTemplate/NS/first.*PodTemplate/NS/second`},
	},
	{
		name:   "the parameter that a policy chooses by its label is replaced",
		before: policyByLabel() + "---\n" + parameter("first", "yes", "1") + "---\n" + labelled(configMap("a", "1")),
		after:  policyByLabel() + "---\n" + parameter("second", "yes", "2") + "---\n" + labelled(configMap("a", "2")),
		again:  []string{`checked again after PodTemplate/NS/first, PodTemplate/NS/second`},
	},
	{
		name:   "a policy is narrowed",
		before: policyOf("UNIQUE", "object.data.key == '1'") + "---\n" + labelled(configMap("a", "1")),
		after:  replaceOnce(policyOf("UNIQUE", "object.data.key == '1'"), "[configmaps]", "[secrets]") + "---\n" + labelled(configMap("a", "2")),
		again:  []string{`checked again after ValidatingAdmissionPolicy/UNIQUE`},
	},
	{
		name:   "the binding of a policy is narrowed",
		before: policyOf("UNIQUE", "object.data.key == '1'") + "---\n" + labelled(configMap("a", "1")),
		after: replaceOnce(policyOf("UNIQUE", "object.data.key == '1'"), "validationActions: [Deny]", "validationActions: [Deny], matchResources: {objectSelector: {matchLabels: {checked: twice}}}") +
			"---\n" + labelled(configMap("a", "2")),
		again: []string{`checked again after ValidatingAdmissionPolicyBinding/UNIQUE`},
	},
	{
		name:   "a webhook doesn't select the namespace any more",
		before: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-x, labels: {guarded: NS}}\n---\n" + strings.ReplaceAll(webhookOf("Fail"), "kubernetes.io/metadata.name: NS", "guarded: NS"),
		after: "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-x, labels: {guarded: not}}\n---\n" + strings.ReplaceAll(webhookOf("Fail"), "kubernetes.io/metadata.name: NS", "guarded: NS") +
			"---\n" + strings.ReplaceAll(configMap("a", "1"), "metadata:\n", "metadata:\n  namespace: NS-x\n"),
		again: []string{`checked again after Namespace/NS-x`},
	},
	{
		name:   "a policy changes",
		before: policyOf("UNIQUE", "object.data.key == '1'") + "---\n" + labelled(configMap("a", "1")),
		after:  policyOf("UNIQUE", "object.data.key == '2'") + "---\n" + labelled(configMap("a", "2")),
		again:  []string{`checked again after ValidatingAdmissionPolicy/UNIQUE`},
	},
}

// policyOf is a policy about labelled ConfigMaps of the namespace, with its binding.
func policyOf(name, expression string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: Fail
  matchConstraints:
    objectSelector: {matchLabels: {checked: "true"}}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  validations: [{expression: "` + expression + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `, validationActions: [Deny]}
`
}

// policyBy is policyOf with a parameter.
func policyBy(kind, expression string) string {
	return replaceOnce(replaceOnce(policyOf("UNIQUE", expression), "  failurePolicy: Fail\n", "  failurePolicy: Fail\n  paramKind: {apiVersion: v1, kind: "+kind+"}\n"),
		"validationActions: [Deny]", "validationActions: [Deny], paramRef: {name: param, namespace: NS, parameterNotFoundAction: Allow}")
}

// policyByLabel is policyOf with a parameter that a label chooses.
func policyByLabel() string {
	return replaceOnce(replaceOnce(policyOf("UNIQUE", "object.data.key == params.metadata.annotations.key"), "  failurePolicy: Fail\n", "  failurePolicy: Fail\n  paramKind: {apiVersion: v1, kind: PodTemplate}\n"),
		"validationActions: [Deny]", "validationActions: [Deny], paramRef: {namespace: NS, selector: {matchLabels: {chosen: yes-NS}}, parameterNotFoundAction: Allow}")
}

// keepParametersWatched leaves a policy and its binding in the cluster that go by a kind of parameter, and about nothing: when the last
// of a kind goes, API servers stop watching it for good. Those before 1.37 find no parameter for the next policy then, and 1.37.2
// finds none by label.
func (w *world) keepParametersWatched(kind string) {
	w.Helper()
	w.cluster.Since(w, "1.30", "ValidatingAdmissionPolicies")
	name := "deployer-test-" + strings.ToLower(kind)
	policy, binding, _ := strings.Cut(strings.NewReplacer("UNIQUE", name, "NS", "none").Replace(policyBy(kind, "true")), "---\n")
	for resource, manifest := range map[string]string{"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding} {
		if _, err := w.in(resource).Create(w.Context(), kubetest.Object(w.T, manifest), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatal(err)
		}
	}
}

// parameter is an object of a kind that no other policy goes by.
func parameter(name, chosen, key string) string {
	return "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: " + name + ", labels: {chosen: " + chosen + "-NS}, annotations: {key: \"" + key + "\"}}\n" +
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: r/x:1}]}}\n"
}

// webhookOf is a webhook about ConfigMaps of the namespace that doesn't answer.
func webhookOf(onFailure string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: UNIQUE}
webhooks:
- name: UNIQUE.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: ` + onFailure + `
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
`
}

func labelled(manifest string) string {
	return replaceOnce(manifest, "metadata:\n", "metadata:\n  labels: {checked: \"true\"}\n")
}

// TestWhatAReleaseChangesItselfIsNoObstacle fails if a release is refused because of how something is that it changes itself.
func TestWhatAReleaseChangesItselfIsNoObstacle(t *testing.T) {
	t.Parallel()
	for i, c := range movingGates {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			fill := strings.NewReplacer("NS", w.ns, "UNIQUE", w.unique(), "PORT", fmt.Sprint(30060+i)).Replace
			name := w.unique()
			for _, kind := range []string{"ConfigMap", "PodTemplate"} {
				if strings.Contains(c.before, "paramKind: {apiVersion: v1, kind: "+kind+"}") {
					w.keepParametersWatched(kind)
				}
			}
			w.ok("install", name, w.chart(fill(c.before)), "--wait=false")
			if strings.Contains(c.before, "kind: PersistentVolumeClaim") {
				w.eventually("the claim is bound", func() bool { return field(w.must("persistentvolumeclaims", "data"), "status.phase") == "Bound" })
			}
			if strings.Contains(c.before, "kind: ResourceQuota") {
				w.eventually("the quota counts", func() bool {
					quota := w.must("resourcequotas", "q")
					return reflect.DeepEqual(field(quota, "status.used"), field(quota, "spec.hard"))
				})
			}
			second := w.chart(fill(c.after))
			var plan result
			w.eventually("the server refuses the change", func() bool {
				plan = w.ok("plan", name, second)
				return strings.Contains(plan.out, "checked again after")
			})
			for _, line := range c.again {
				w.says(plan, "stdout", fill(line))
			}
			w.ok("upgrade", name, second, "--wait=false")
			w.ok("uninstall", name)
		})
	}
}

// TestStillRefused: what stands in the way is changed, and not enough. Then no workload has changed.
func TestStillRefused(t *testing.T) {
	w := newWorld(t)
	quota := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {count/services: %q}}\n", fmt.Sprint(n))
	}
	service := func(name string) string {
		return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {ports: [{port: 80}]}\n"
	}
	w.ok("install", "x", w.chart(quota(0), deployment("web", "web", "  replicas: 0\n")), "--wait=false")
	w.eventually("the quota counts", func() bool { return field(w.must("resourcequotas", "q"), "status.used") != nil })
	next := w.chart(quota(0), replaceOnce(deployment("web", "web", "  replicas: 0\n"), "r/x:1", "r/x:2"), service("s"))
	// Nothing of the release explains it: it is refused before the first change, and the message names the way out.
	w.says(w.exits(3, "upgrade", "x", next), "stderr", `exceeded quota`, `raise the ResourceQuota`)

	// The quota changes, and is too small still.
	changed := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, labels: {a: b}}\nspec: {hard: {count/services: \"0\"}}\n"
	r := w.exits(1, "upgrade", "x", w.chart(changed, replaceOnce(deployment("web", "web", "  replicas: 0\n"), "r/x:1", "r/x:2"), service("s")))
	w.says(r, "stderr", `after the objects that they need were created`, `exceeded quota`)
	if strings.Contains(r.err, "retrying for up to") {
		t.Errorf("it warns of what it asks about again anyway:\n%s", r)
	}
	if got := fmt.Sprint(field(w.must("deployments", "web"), "spec.template.spec.containers")); !strings.Contains(got, "r/x:1") {
		t.Errorf("a workload has changed: %s", got)
	}
}

// TestReleaseGrantsItsOwnAccount fails if a release is refused for the lack of a permission that it brings.
func TestReleaseGrantsItsOwnAccount(t *testing.T) {
	w := newWorld(t)
	user := w.cluster.User(t, w.ns, kubetest.Rule("", "*", "secrets", "services"), kubetest.Rule("coordination.k8s.io", "*", "leases"),
		kubetest.Rule("rbac.authorization.k8s.io", "*", "roles", "rolebindings"), kubetest.Rule("", "get,list,delete", "configmaps"),
		rbacv1.PolicyRule{Verbs: []string{"bind", "escalate"}, APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}})
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [\"*\"]}]\n"
	binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"" + user.Name + "\"}]\n"
	w.kubeconfig = user.Kubeconfig(t, w.ns)
	w.says(w.exits(3, "install", "x", w.chart(role, configMap("a", "1"))), "stderr", "no permission")
	chart := w.chart(role, binding, configMap("a", "1"))
	w.says(w.ok("plan", "x", chart), "stdout", `checked again after .*RoleBinding/`+w.ns+`/b`)
	w.ok("install", "x", chart)
}
