package apply

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A readByAdmission is an object that the release changes or drops, of a kind that the API server reads when it admits
// others: a refusal may come from how it is now.
type readByAdmission struct {
	id  kube.ID
	old *unstructured.Unstructured // as it is now; nil when that isn't known, and when it isn't there
	new *unstructured.Unstructured // as the release has it; nil when it is dropped
}

// is reports whether something holds of the object as it is now or as the release has it.
func (r readByAdmission) is(so func(*unstructured.Unstructured) bool) bool {
	return r.old != nil && so(r.old) || r.new != nil && so(r.new)
}

// A refusedObject is an object that the API server refuses at the moment.
type refusedObject struct {
	id     kube.ID
	obj    *unstructured.Unstructured
	gvr    schema.GroupVersionResource
	kind   verify.Kind
	err    error    // nil: any refusal of the kind
	blames []string // names that the refusal has
}

func (o refusedObject) names(id kube.ID) bool {
	return o.err == nil || slices.Contains(o.blames, id.Name)
}

// An admissionRule says which objects a refusal of certain kinds can come from.
type admissionRule struct {
	of       []verify.Kind
	reads    []schema.GroupKind
	explains func(a *admission, o refusedObject, r readByAdmission) bool
}

const (
	admissionGroup = "admissionregistration.k8s.io"
	rbacGroup      = "rbac.authorization.k8s.io"
)

func kindsOf(group string, kinds ...string) []schema.GroupKind {
	out := make([]schema.GroupKind, len(kinds))
	for i, kind := range kinds {
		out[i] = schema.GroupKind{Group: group, Kind: kind}
	}
	return out
}

// admissionRules is what admission and allocation read besides the object itself.
var admissionRules = []admissionRule{
	{[]verify.Kind{verify.Quota}, kindsOf("", "ResourceQuota"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		return r.id.Namespace == o.id.Namespace && (len(o.blames) == 0 || o.names(r.id))
	}},
	{[]verify.Kind{verify.Quota}, nil, func(_ *admission, o refusedObject, r readByAdmission) bool {
		return r.new == nil && o.err != nil && decide.Shortage{Namespace: o.id.Namespace, Message: o.err.Error()}.MayEndWithout(r.old)
	}},
	{[]verify.Kind{verify.Quota, verify.Limit}, kindsOf("", "LimitRange"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		// A quota asks for what the defaults of a LimitRange give.
		return r.id.Namespace == o.id.Namespace && (o.kind == verify.Limit && isLimited(o.id) || o.err != nil && strings.Contains(o.err.Error(), "must specify"))
	}},
	{[]verify.Kind{verify.Class, verify.Missing}, kindsOf("storage.k8s.io", "StorageClass", "VolumeAttributesClass"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		stated, _, _ := unstructured.NestedString(o.obj.Object, "spec", "storageClassName")
		return o.id.Kind == "PersistentVolumeClaim" && (stated == "" || stated == r.id.Name || r.id.Kind != "StorageClass")
	}},
	{[]verify.Kind{verify.Class, verify.Missing}, kindsOf("scheduling.k8s.io", "PriorityClass"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		return namesClass(o, r, "priorityClassName")
	}},
	{[]verify.Kind{verify.Class, verify.Missing}, kindsOf("node.k8s.io", "RuntimeClass"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		return namesClass(o, r, "runtimeClassName")
	}},
	{[]verify.Kind{verify.Class}, kindsOf("networking.k8s.io", "IngressClass"), func(_ *admission, o refusedObject, _ readByAdmission) bool {
		return o.id.Kind == "Ingress"
	}},
	{[]verify.Kind{verify.Held}, nil, func(_ *admission, o refusedObject, r readByAdmission) bool {
		return o.id.GroupKind() == r.id.GroupKind() &&
			holdTheSame(decide.HoldingsOf(o.obj), decide.WithoutHoldings(decide.HoldingsOf(r.old), decide.HoldingsOf(r.new)))
	}},
	// Its labels are the pod security level, and what policies and webhooks select namespaces by.
	{[]verify.Kind{verify.Policy, verify.WebhookDown, verify.WebhookSays}, []schema.GroupKind{kube.NamespaceKind}, func(a *admission, o refusedObject, r readByAdmission) bool {
		return r.id.Name == o.id.Namespace && a.changesLabels(r)
	}},
	{[]verify.Kind{verify.Policy}, kindsOf(admissionGroup, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		return o.names(r.id)
	}},
	{[]verify.Kind{verify.Policy}, nil, func(a *admission, o refusedObject, r readByAdmission) bool {
		return o.err != nil && slices.ContainsFunc(a.parameters, func(b parameters) bool { return r.is(b.include) })
	}},
	// What a mutating one makes of an object may be what is refused.
	{[]verify.Kind{verify.Policy, verify.Schema, verify.Limit, verify.Quota, verify.WebhookSays, verify.Class}, kindsOf(admissionGroup, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
		func(a *admission, o refusedObject, r readByAdmission) bool {
			return r.is(func(obj *unstructured.Unstructured) bool {
				policies := []*unstructured.Unstructured{obj}
				if r.id.Kind == "MutatingAdmissionPolicyBinding" {
					policies = a.mutating[policyOf(obj)]
				}
				return len(policies) == 0 || slices.ContainsFunc(policies, func(policy *unstructured.Unstructured) bool {
					return covers(kube.Items(policy.Object, "spec", "matchConstraints", "resourceRules"), o)
				})
			})
		}},
	{[]verify.Kind{verify.Policy, verify.Schema, verify.Limit, verify.Quota}, kindsOf(admissionGroup, "MutatingWebhookConfiguration"),
		func(_ *admission, o refusedObject, r readByAdmission) bool {
			return slices.ContainsFunc(webhooksOf(r.old), func(w map[string]any) bool {
				return covers(kube.Items(w, "rules"), o)
			})
		}},
	{[]verify.Kind{verify.WebhookDown, verify.WebhookSays}, kindsOf(admissionGroup, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
		func(_ *admission, o refusedObject, r readByAdmission) bool {
			return len(namedWebhooks(r.old, o)) > 0
		}},
	{[]verify.Kind{verify.WebhookDown, verify.WebhookSays}, nil, func(a *admission, o refusedObject, r readByAdmission) bool {
		return r.id != o.id && a.isBehindWebhook(o, r)
	}},
	{[]verify.Kind{verify.WebhookSays}, kindsOf("networking.k8s.io", "Ingress"), func(_ *admission, o refusedObject, r readByAdmission) bool {
		return o.id.GroupKind() == r.id.GroupKind() && holdTheSame(decide.HoldingsOf(o.obj), decide.HoldingsOf(r.old))
	}},
	{[]verify.Kind{verify.Permission}, bindingKinds, func(a *admission, o refusedObject, r readByAdmission) bool {
		return r.new != nil && (r.id.Namespace == "" || r.id.Namespace == o.id.Namespace) && bindsAccount(a.us, r.new)
	}},
	{[]verify.Kind{verify.Permission}, kindsOf(rbacGroup, "Role", "ClusterRole"), func(a *admission, o refusedObject, r readByAdmission) bool {
		return r.new != nil && (r.id.Namespace == "" || r.id.Namespace == o.id.Namespace) && grants(r.new, o) && a.isBoundToUs(r.id)
	}},
}

func holdTheSame(a, b []decide.Holding) bool { return len(decide.SharedHoldings(a, b)) > 0 }

// An admission explains the refusals of one plan, by the rules: what these want to know of the cluster is read before.
type admission struct {
	p       *planning
	changes []readByAdmission // what the release changes and drops

	// What was read for the rules; zero where the account may not, or they don't need it.
	parameters []parameters                            // of the policies that the refusal names which is explained
	webhooks   []map[string]any                        // of the cluster; nil before they are asked for
	mutating   map[string][]*unstructured.Unstructured // policies that bindings of the release name, see policies
	us         authenticationv1.UserInfo               // the account that deployer runs as
	found      memo[kube.ID, *unstructured.Unstructured]
}

// newAdmission collects what the release changes and drops.
func (p *planning) newAdmission(orphans []Change) *admission {
	a := &admission{p: p}
	for id, t := range p.targetsByID {
		if c := t.decided; p.settled[id] == nil && (c == nil || c.Action != decide.Unchanged && c.Action != decide.Keep) {
			a.changes = append(a.changes, readByAdmission{id: id, old: p.asItIs(id, c), new: t.obj})
		}
	}
	for _, t := range p.hooks {
		if !t.isPostHook { // it is made anew before the first object is changed
			a.changes = append(a.changes, readByAdmission{id: t.id, old: p.asItIs(t.id, t.decided), new: t.obj})
		}
	}
	for _, c := range orphans {
		if c.Action == decide.Delete && len(c.writes) > 0 {
			a.changes = append(a.changes, readByAdmission{id: c.ID, old: c.orphan.Declared})
		}
	}
	slices.SortFunc(a.changes, func(x, y readByAdmission) int { return strings.Compare(x.id.String(), y.id.String()) })
	return a
}

// asItIs returns an object as it was read, or else as it was last declared.
func (p *planning) asItIs(id kube.ID, c *Change) *unstructured.Unstructured {
	if c != nil && c.Live != nil {
		return c.Live
	}
	return p.history.latestDeclared(id).Object
}

// explain returns the objects of the release that a refusal of a target can come from. If there are some, these are all that
// may refuse it next: an answer has one reason, and there may be several.
func (a *admission) explain(ctx context.Context, t *target, refusal error) []kube.ID {
	said := verify.Read(refusal)
	o := refusedObject{id: t.id, obj: t.obj, gvr: t.mapping.Resource, kind: said.Kind, err: refusal, blames: said.Blames()}
	a.look(ctx, o)
	out := a.readFor(o)
	if len(out) == 0 {
		return nil
	}
	o.err, o.blames = nil, nil
	for _, o.kind = range []verify.Kind{verify.Quota, verify.Limit, verify.Class, verify.Policy, verify.Held} {
		for _, id := range a.readFor(o) {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// readFor returns the objects of the release that a refusal can come from.
func (a *admission) readFor(o refusedObject) []kube.ID {
	var out []kube.ID
	for _, r := range a.changes {
		reads := func(rule admissionRule) bool {
			return slices.Contains(rule.of, o.kind) && (rule.reads == nil || slices.Contains(rule.reads, r.id.GroupKind())) && rule.explains(a, o, r)
		}
		if r.id != o.id && slices.ContainsFunc(admissionRules, reads) {
			out = append(out, r.id)
		}
	}
	return out
}

// changesLabels reports whether the release changes a label of an object, other than those that tell the chart's version.
func (a *admission) changesLabels(r readByAdmission) bool {
	if r.old == nil || r.new == nil {
		return true
	}
	old, next := r.old.GetLabels(), r.new.GetLabels()
	if declared := a.p.history.latestDeclared(r.id).Object; declared != nil {
		for name := range declared.GetLabels() {
			if _, stays := next[name]; !stays {
				return true
			}
		}
	}
	for name, value := range next {
		if was, ok := old[name]; (!ok || was != value) && name != "helm.sh/chart" && name != "app.kubernetes.io/version" {
			return true
		}
	}
	return false
}

// isLimited reports whether a LimitRange is about objects of a kind.
func isLimited(id kube.ID) bool {
	return id.GroupKind() == kube.PodKind || id.Group == "" && id.Kind == "PersistentVolumeClaim"
}

func objectOf(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	return obj.Object
}

// namesClass reports whether a Pod names a class, or names none, so that the default one counts.
func namesClass(o refusedObject, r readByAdmission, field string) bool {
	stated, _, _ := unstructured.NestedString(o.obj.Object, "spec", field)
	return o.id.GroupKind() == kube.PodKind && (stated == r.id.Name || stated == "" && o.kind == verify.Class)
}

// covers reports whether rules of a webhook or policy are about an object.
func covers(rules []map[string]any, o refusedObject) bool {
	has := func(rule map[string]any, field, value string) bool {
		list, _, _ := unstructured.NestedStringSlice(rule, field)
		return hasOrAll(list, value)
	}
	return slices.ContainsFunc(rules, func(rule map[string]any) bool {
		return has(rule, "apiGroups", o.gvr.Group) && (has(rule, "resources", o.gvr.Resource) || has(rule, "resources", "*/*"))
	})
}

func webhooksOf(configuration *unstructured.Unstructured) []map[string]any {
	return kube.Items(objectOf(configuration), "webhooks")
}

// namedWebhooks returns the webhooks of a configuration that a refusal names.
func namedWebhooks(configuration *unstructured.Unstructured, o refusedObject) []map[string]any {
	return slices.DeleteFunc(webhooksOf(configuration), func(w map[string]any) bool { return !slices.Contains(o.blames, fields.AsString(w["name"])) })
}

// Refused reports whether a change makes, changes or deletes what has refused a request: the policy, its binding or the webhook that the
// refusal names.
func (c Change) Refused(refusal error) bool {
	if !c.isAdmission() || c.Action == decide.Unchanged || c.Action == decide.Keep {
		return false
	}
	obj := c.object()
	if c.orphan != nil {
		obj = c.orphan.Declared
	}
	o := refusedObject{err: refusal, blames: verify.Read(refusal).Blames()}
	return o.names(c.ID) || len(namedWebhooks(obj, o)) > 0
}

// mayBeBehindWebhook reports whether an object is of a kind that a webhook can be served by.
func (r readByAdmission) mayBeBehindWebhook() bool {
	return r.new != nil && (r.id.GroupKind() == kube.ServiceKind || r.id.Group == "apps")
}

// isBehindWebhook reports whether an object is the Service behind a webhook that a refusal names, or a workload behind that Service.
func (a *admission) isBehindWebhook(o refusedObject, r readByAdmission) bool {
	if !r.mayBeBehindWebhook() {
		return false
	}
	for _, w := range a.webhooks {
		if !slices.Contains(o.blames, fields.AsString(w["name"])) {
			continue
		}
		service, _, _ := unstructured.NestedMap(w, "clientConfig", "service")
		id := kube.ID{Kind: kube.ServiceKind.Kind, Namespace: fields.AsString(service["namespace"]), Name: fields.AsString(service["name"])}
		if id == r.id {
			return true
		}
		if t := a.p.targetsByID[id]; t != nil && isSelected(t, r.id, r.new) {
			return true
		}
	}
	return false
}

// isSelected reports whether a Service selects the pods of an object, which is a workload then.
func isSelected(service *target, id kube.ID, obj *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedStringMap(service.obj.Object, "spec", "selector")
	pods, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "labels")
	return id.Group == "apps" && id.Namespace == service.id.Namespace && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pods))
}

// look reads what the rules want to know about a refusal. What isn't known explains nothing.
func (a *admission) look(ctx context.Context, o refusedObject) {
	a.parameters = nil
	switch o.kind {
	case verify.Policy:
		const policy = "ValidatingAdmissionPolicy"
		for _, name := range o.blames {
			for _, binding := range a.policies(ctx, policy+"Binding", name) {
				for _, bound := range a.policies(ctx, policy, policyOf(binding)) {
					a.parameters = append(a.parameters, parametersOf(binding, bound)...)
				}
			}
		}
	case verify.WebhookDown, verify.WebhookSays:
		if a.webhooks == nil && slices.ContainsFunc(a.changes, readByAdmission.mayBeBehindWebhook) {
			a.webhooks = a.webhooksInCluster(ctx)
		}
	case verify.Permission:
		if slices.ContainsFunc(a.changes, func(r readByAdmission) bool { return r.id.Group == rbacGroup && r.new != nil }) {
			a.us, _ = a.p.permissions.account(ctx)
		}
	}
	if a.mutating != nil {
		return
	}
	a.mutating = map[string][]*unstructured.Unstructured{}
	for _, r := range a.changes {
		if r.id.Group != admissionGroup || r.id.Kind != "MutatingAdmissionPolicyBinding" {
			continue
		}
		for _, name := range []string{policyOf(r.old), policyOf(r.new)} {
			a.mutating[name] = a.policies(ctx, "MutatingAdmissionPolicy", name)
		}
	}
}

// webhooksInCluster lists the webhooks of the cluster; none if the account may not.
func (a *admission) webhooksInCluster(ctx context.Context) []map[string]any {
	out := []map[string]any{}
	for _, gk := range kindsOf(admissionGroup, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		if mapping, err := a.p.a.cluster.Mapping(ctx, gk.WithVersion(""), true); err == nil {
			list, _ := a.p.a.list(ctx, collection{mapping: mapping})
			for i := range list {
				out = append(out, webhooksOf(&list[i])...)
			}
		}
	}
	return out
}

// policyOf is the name of the policy that a binding binds.
func policyOf(binding *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(objectOf(binding), "spec", "policyName")
	return name
}

// released returns a policy or binding as the release has it; nil if it has none.
func (p *planning) released(kind, name string) *unstructured.Unstructured {
	if t := p.targetsByID[kube.ID{Group: admissionGroup, Kind: kind, Name: name}]; t != nil {
		return t.obj
	}
	return nil
}

// policies returns a policy or binding as it is now and as the release has it, if it is there.
func (a *admission) policies(ctx context.Context, kind, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc([]*unstructured.Unstructured{a.read(ctx, kind, name), a.p.released(kind, name)}, func(obj *unstructured.Unstructured) bool { return obj == nil })
}

// read reads a policy or its binding; nil if there is none, or if the account may not.
func (a *admission) read(ctx context.Context, kind, name string) *unstructured.Unstructured {
	id := kube.ID{Group: admissionGroup, Kind: kind, Name: name}
	mapping, err := a.p.a.cluster.Mapping(ctx, id.GroupKind().WithVersion(""), true)
	if err != nil || name == "" {
		return nil
	}
	obj, _ := a.found.get(id, func() (*unstructured.Unstructured, error) {
		obj, _ := a.p.a.get(ctx, mapping, id)
		return obj, nil
	})
	return obj
}

// parameters are the objects that a binding of an admission policy names.
type parameters struct {
	kind            schema.GroupKind
	name, namespace string // empty: any
	selector        labels.Selector
	required        bool // without them, the policy denies everything
}

// parametersOf returns the parameters that a binding has for its policy; none if the policy goes by none.
func parametersOf(binding, policy *unstructured.Unstructured) []parameters {
	apiVersion, _, _ := unstructured.NestedString(objectOf(policy), "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(objectOf(policy), "spec", "paramKind", "kind")
	ref, found, _ := unstructured.NestedMap(objectOf(binding), "spec", "paramRef")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || !found || kind == "" {
		return nil
	}
	stated, _ := ref["selector"].(map[string]any)
	selector, err := kube.Selector(stated)
	if err != nil {
		selector = labels.Everything()
	}
	return []parameters{{
		kind: gv.WithKind(kind).GroupKind(), name: fields.AsString(ref["name"]), namespace: fields.AsString(ref["namespace"]),
		selector: selector, required: ref["parameterNotFoundAction"] == "Deny",
	}}
}

// isParameter reports whether a policy of the release, which stays, goes by an object until that is gone.
func (a *admission) isParameter(ctx context.Context, obj *unstructured.Unstructured) bool {
	for id := range a.p.targetsByID {
		kind, isBinding := strings.CutSuffix(id.Kind, "Binding")
		if id.Group != admissionGroup || !isBinding || obj == nil {
			continue
		}
		binding := a.p.history.latestDeclared(id).Object
		name := policyOf(binding)
		policy := a.p.history.latestDeclared(kube.ID{Group: id.Group, Kind: kind, Name: name}).Object
		if policy == nil {
			policy = a.read(ctx, kind, name)
		}
		for _, p := range parametersOf(binding, policy) {
			if !p.required && p.include(obj) {
				return true
			}
		}
	}
	return false
}

func (p parameters) include(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == p.kind && (p.name == "" || p.name == obj.GetName()) && (p.namespace == "" || p.namespace == obj.GetNamespace()) &&
		p.selector.Matches(labels.Set(obj.GetLabels()))
}

// isBoundToUs reports whether the release binds a role to the account that deployer runs as.
func (a *admission) isBoundToUs(role kube.ID) bool {
	for id, t := range a.p.targetsByID {
		if isBinding(id) && roleOf(t.obj) == role && bindsAccount(a.us, t.obj) {
			return true
		}
	}
	return false
}

// grants reports whether a role has a permission for the objects of a kind. The verb doesn't matter: an apply needs several.
func grants(role *unstructured.Unstructured, o refusedObject) bool {
	return kube.IsAggregated(role) || slices.ContainsFunc(rulesOf(role), func(r rbacv1.PolicyRule) bool {
		return hasOrAll(r.APIGroups, o.gvr.Group) && hasOrAll(r.Resources, o.gvr.Resource)
	})
}

// hasOrAll reports whether a list of a rule has a value, or stands for all.
func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}
