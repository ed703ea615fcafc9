package apply

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestAdmissionRules: each row of the table of what admission reads, by a refusal and an object of the release that it comes from, or
// that has nothing to do with it.
func TestAdmissionRules(t *testing.T) {
	const (
		pod     = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}, spec: {priorityClassName: gold, runtimeClassName: vm, containers: [{name: c}]}}"
		service = "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {clusterIP: 10.0.0.1, ports: [{port: 1, nodePort: 30001}]}}"
		ingress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: shop}, spec: {rules: [{host: x.test}]}}"
		config  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}"
		claim   = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d, namespace: shop}, spec: {storageClassName: fast}}"
		gold    = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 1}"
		vm      = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: vm}, handler: x}"
		hook    = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: w.example.com}]}"
		mutates = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: m}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''], resources: [configmaps]}]}}}"
		binds   = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: m}}"
		quota   = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}}"

		database = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {template: {spec: {containers: [{name: c}]}}, volumeClaimTemplates: [{metadata: {name: data}}]}}"
	)
	const (
		policySays = "ValidatingAdmissionPolicy 'v' with binding 'b' denied request"
		parameter  = "{apiVersion: v1, kind: Secret, metadata: {name: param, namespace: shop, labels: {chosen: 'yes'}}}"
	)
	chosen, err := labels.Parse("chosen=yes")
	if err != nil {
		t.Fatal(err)
	}
	defaultOf := func(name string) string {
		return "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " + name + "}, globalDefault: true}"
	}
	for name, c := range map[string]struct {
		refused, text string
		kind          verify.Kind
		old, next     string
		want          bool
	}{
		"quota":                           {config, "exceeded quota: q, requested: count/configmaps=1, used: x, limited: y", verify.Quota, quota, quota, true},
		"another quota":                   {config, "exceeded quota: r, requested: count/configmaps=1, used: x, limited: y", verify.Quota, quota, quota, false},
		"what a quota counts is dropped":  {config, "exceeded quota: r, requested: count/configmaps=1, used: x, limited: y", verify.Quota, strings.Replace(config, "name: c", "name: old", 1), "", true},
		"what a quota counts stays":       {config, "exceeded quota: r, requested: count/configmaps=1, used: x, limited: y", verify.Quota, strings.Replace(config, "name: c", "name: old", 1), strings.Replace(config, "name: c", "name: old", 1), false},
		"of another namespace":            {config, "exceeded quota: r, requested: count/configmaps=1, used: x, limited: y", verify.Quota, strings.Replace(config, "namespace: shop", "namespace: other", 1), "", false},
		"limit":                           {claim, "maximum storage usage per PersistentVolumeClaim is 1Gi", verify.Limit, "", "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}}", true},
		"StorageClass":                    {claim, "storageclass must support resize", verify.Class, "", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}", true},
		"another StorageClass":            {claim, "storageclass must support resize", verify.Class, "", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: slow}}", false},
		"PriorityClass":                   {pod, "no PriorityClass with name gold was found", verify.Missing, "", gold, true},
		"another PriorityClass":           {pod, "no PriorityClass with name gold was found", verify.Missing, "", strings.Replace(gold, "name: gold", "name: x", 1), false},
		"default PriorityClass is free":   {defaultOf("b"), "already marked as default", verify.Held, defaultOf("a"), strings.Replace(defaultOf("a"), "true", "false", 1), true},
		"default PriorityClass goes":      {defaultOf("b"), "already marked as default", verify.Held, defaultOf("a"), "", true},
		"default PriorityClass stays":     {defaultOf("b"), "already marked as default", verify.Held, defaultOf("a"), defaultOf("a"), false},
		"RuntimeClass":                    {pod, `RuntimeClass "vm" not found`, verify.Missing, "", vm, true},
		"another RuntimeClass":            {pod, `RuntimeClass "vm" not found`, verify.Missing, "", strings.Replace(vm, "name: vm", "name: x", 1), false},
		"IngressClass":                    {ingress, "2 default IngressClasses were found, only 1 allowed", verify.Class, "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: a}}", "", true},
		"host of an Ingress":              {ingress, `admission webhook "validate.nginx" denied the request: host "x.test" is already defined`, verify.WebhookSays, strings.Replace(ingress, "name: i", "name: j", 1), "", true},
		"another host":                    {ingress, `admission webhook "validate.nginx" denied the request: host "x.test" is already defined`, verify.WebhookSays, strings.NewReplacer("name: i", "name: j", "x.test", "y.test").Replace(ingress), "", false},
		"port":                            {service, "provided port is already allocated", verify.Held, strings.Replace(service, "name: s", "name: t", 1), "", true},
		"address":                         {service, "provided IP is already allocated", verify.Held, strings.NewReplacer("name: s", "name: t", "nodePort: 30001", "nodePort: 30002").Replace(service), "", true},
		"port that stays":                 {service, "provided port is already allocated", verify.Held, strings.Replace(service, "name: s", "name: t", 1), strings.Replace(service, "name: s", "name: t", 1), false},
		"port, and a workload's claim":    {service, "provided port is already allocated", verify.Held, "", database, false},
		"host, and a workload's claim":    {database, `admission webhook "w.example.org" denied the request`, verify.WebhookSays, ingress, "", false},
		"level of the namespace":          {pod, `violates PodSecurity "restricted"`, verify.Policy, "", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", true},
		"labels of the namespace":         {config, `admission webhook "w.example.com" denied the request`, verify.WebhookSays, "", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", true},
		"labels of another namespace":     {config, `admission webhook "w.example.com" denied the request`, verify.WebhookSays, "", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}", false},
		"policy":                          {config, "ValidatingAdmissionPolicy 'v' with binding 'b' denied request", verify.Policy, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: v}}", "", true},
		"binding":                         {config, "ValidatingAdmissionPolicy 'v' with binding 'b' denied request", verify.Policy, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}}", "", true},
		"what changes objects":            {config, `admission webhook "other" denied the request`, verify.WebhookSays, "", mutates, true},
		"what changes others":             {service, `admission webhook "other" denied the request`, verify.WebhookSays, "", mutates, false},
		"what doesn't change it any more": {config, `admission webhook "other" denied the request`, verify.WebhookSays, mutates, strings.Replace(mutates, "[configmaps]", "[secrets]", 1), true},
		"binding of what changes objects": {config, `admission webhook "other" denied the request`, verify.WebhookSays, strings.Replace(binds, "name: m", "name: n", 1), binds, true},
		"binding of what changes others":  {service, `admission webhook "other" denied the request`, verify.WebhookSays, binds, binds, false},
		"parameter chosen by label":       {config, policySays, verify.Policy, "", parameter, true},
		"parameter that loses its label":  {config, policySays, verify.Policy, parameter, strings.Replace(parameter, "yes", "no", 1), true},
		"parameter that isn't chosen":     {config, policySays, verify.Policy, "", strings.Replace(parameter, "yes", "no", 1), false},
		"webhook that denies":             {config, `admission webhook "w.example.com" denied the request`, verify.WebhookSays, hook, strings.Replace(hook, "w.example.com", "v.example.com", 1), true},
		"webhook that doesn't answer":     {config, `failed calling webhook "w.example.com"`, verify.WebhookDown, hook, "", true},
		"another webhook":                 {config, `failed calling webhook "v.example.com"`, verify.WebhookDown, hook, "", false},
		"Service behind it":               {config, `failed calling webhook "w.example.com"`, verify.WebhookDown, "", "{apiVersion: v1, kind: Service, metadata: {name: guard, namespace: shop}}", true},
		"workload behind it":              {config, `admission webhook "w.example.com" denied the request`, verify.WebhookSays, "", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: g, namespace: shop}, spec: {template: {metadata: {labels: {app: guard}}}}}", true},
		"workload that isn't behind it":   {config, `admission webhook "w.example.com" denied the request`, verify.WebhookSays, "", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: g, namespace: shop}, spec: {template: {metadata: {labels: {app: web}}}}}", false},
		"what nobody can explain by this": {config, "spec: Invalid value", verify.Schema, "", gold, false},
	} {
		t.Run(name, func(t *testing.T) {
			guard := parsed(t, "{apiVersion: v1, kind: Service, metadata: {name: guard, namespace: shop}, spec: {selector: {app: guard}}}")
			p := &planning{targetsByID: map[kube.ID]*target{kube.IDOf(guard): {id: kube.IDOf(guard), obj: guard}}}
			a := &admission{p: p, webhooks: []map[string]any{
				{"name": "w.example.com", "clientConfig": map[string]any{"service": map[string]any{"name": "guard", "namespace": "shop"}}},
			}, mutating: map[string][]*unstructured.Unstructured{"m": {parsed(t, mutates)}, "n": {parsed(t, strings.Replace(mutates, "configmaps", "secrets", 1))}},
				parameters: []parameters{{kind: schema.GroupKind{Kind: "Secret"}, selector: chosen}},
			}
			r := readByAdmission{old: parsed(t, c.old), new: parsed(t, c.next)}
			r.id = kube.IDOf(cmp.Or(r.new, r.old))
			a.changes = []readByAdmission{r}
			obj, refusal := parsed(t, c.refused), errors.New(c.text)
			plural := schema.GroupVersionResource{Resource: strings.ToLower(obj.GetKind()) + "s"}
			o := refusedObject{id: kube.IDOf(obj), obj: obj, gvr: plural, kind: c.kind, err: refusal, blames: verify.Read(refusal).Blames()}
			if got := len(a.readFor(o)) > 0; got != c.want {
				t.Errorf("explained: %v, want %v", got, c.want)
			}
		})
	}
}
