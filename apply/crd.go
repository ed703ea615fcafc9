package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"deployer/apply/verify"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
)

// crdMapping is the mapping of CustomResourceDefinitions, the same on every server.
var crdMapping = kube.Mapping{
	GVK:       kube.CRDKind.WithVersion("v1"),
	Resource:  schema.GroupVersionResource{Group: kube.CRDKind.Group, Version: "v1", Resource: "customresourcedefinitions"},
	HasStatus: true,
}

// definitionOf is the CustomResourceDefinition of a resource.
func definitionOf(gr schema.GroupResource) kube.ID {
	return kube.ID{Group: kube.CRDKind.Group, Kind: kube.CRDKind.Kind, Name: gr.String()}
}

// definedKind returns the kind that a CustomResourceDefinition defines.
func definedKind(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// versionsOf returns the versions of a CustomResourceDefinition. They are part of it:
// don't change them.
func versionsOf(crd *unstructured.Unstructured) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	list, _ := value.([]any)
	var out []map[string]any
	for _, v := range list {
		if version, ok := v.(map[string]any); ok {
			out = append(out, version)
		}
	}
	return out
}

// converter returns the Service of the webhook that converts a kind between its versions,
// and the storage version.
func converter(crd *unstructured.Unstructured) (service kube.ID, stored string) {
	service.Kind = "Service"
	service.Namespace, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
	service.Name, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	for _, version := range versionsOf(crd) {
		if version["storage"] == true {
			stored, _ = version["name"].(string)
		}
	}
	return service, stored
}

// definitions are the CustomResourceDefinitions that concern a release: those
// that it brings, and those that are in the cluster.
type definitions struct {
	a             *Applier
	prerequisites *prerequisites
	released      []*unstructured.Unstructured             // of the release, without those that stay as they are
	kinds         map[schema.GroupVersionKind]kube.Mapping // that released define
	kept          map[schema.GroupVersionKind]*Change      // kinds of the definitions that stay as they are, with the decision
	live          memo[kube.ID, *unstructured.Unstructured]

	mu          sync.Mutex
	generations map[schema.GroupResource]generation
}

func newDefinitions(a *Applier, prerequisites *prerequisites, req Request) *definitions {
	d := &definitions{
		a: a, prerequisites: prerequisites,
		kept:        map[schema.GroupVersionKind]*Change{},
		generations: map[schema.GroupResource]generation{},
	}
	for _, m := range slices.Concat(req.CRDs, req.Objects) {
		if m.Object != nil && kube.IDOf(m.Object).IsCRD() {
			d.released = append(d.released, m.Object)
		}
	}
	d.kinds = kindsDefinedBy(d.released...)
	return d
}

// dropUnused ignores the definitions of crds/ that stay as they are in the cluster: the
// kind is then as the cluster's definition says.
func (d *definitions) dropUnused(crds []*target) {
	kept := map[string]bool{}
	for _, t := range crds {
		if c := t.decided; c != nil && (c.Action == Keep || c.Action == Unchanged && d.a.opts.CRDs == CreateCRDs) {
			kept[t.id.Name] = true
			for gvk := range kindsDefinedBy(t.obj) {
				d.kept[gvk] = c
			}
		}
	}
	d.released = slices.DeleteFunc(d.released, func(crd *unstructured.Unstructured) bool { return kept[crd.GetName()] })
	d.kinds = kindsDefinedBy(d.released...)
}

// whyUnused returns the error for a kind that the cluster lacks. If a definition of the
// chart has the kind but isn't used, the error says why.
func (d *definitions) whyUnused(gvk schema.GroupVersionKind, unknown *kube.NoKindMatchError) error {
	c, ok := d.kept[gvk]
	if !ok {
		return unknown
	}
	return fmt.Errorf("%w; %s of %s has it, and is not used: %s", unknown, c.ID, c.Source, c.Reason)
}

// version returns the entry of a target's version in the CustomResourceDefinition of its
// kind, the release's or the cluster's. It is nil for kinds that have none, and when the
// account may not read them.
func (d *definitions) version(ctx context.Context, t *target) (map[string]any, error) {
	gvk := t.mapping.GVK
	id := definitionOf(t.mapping.Resource.GroupResource())
	for _, crd := range d.released {
		if crd.GetName() == id.Name {
			return versionOf(crd, gvk.Version), nil
		}
	}
	crd, err := d.inCluster(ctx, id)
	if err != nil || crd == nil {
		return nil, err
	}
	return versionOf(crd, gvk.Version), nil
}

// inCluster reads a CustomResourceDefinition of the cluster, once. It is nil
// where there is none, and when the account may not read it.
func (d *definitions) inCluster(ctx context.Context, id kube.ID) (*unstructured.Unstructured, error) {
	return d.live.get(id, func() (*unstructured.Unstructured, error) {
		crd, err := d.a.get(ctx, crdMapping, id)
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", id, err)
		}
		return crd, nil
	})
}

func versionOf(crd *unstructured.Unstructured, name string) map[string]any {
	for _, version := range versionsOf(crd) {
		if version["name"] == name {
			return version
		}
	}
	return nil
}

// immutableFields returns the fields that a refusal says are immutable. It returns none if
// any cause of the refusal is something else: that would be wrong in a new object too. A
// violated rule of a CRD counts as immutability if the rule looks at the old value,
// whatever its message says.
func (p *planning) immutableFields(ctx context.Context, t *target, refusal error) ([]string, error) {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) {
		return nil, nil
	}
	s := status.Status()
	if s.Reason != metav1.StatusReasonInvalid && s.Reason != metav1.StatusReasonForbidden || s.Details == nil {
		return nil, nil
	}
	var version map[string]any
	if len(s.Details.Causes) > 0 && s.Reason == metav1.StatusReasonInvalid && !scheme.Scheme.IsGroupRegistered(t.id.Group) {
		var err error
		if version, err = p.definitions.version(ctx, t); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, c := range s.Details.Causes {
		transition, found := ruleOf(version, c)
		if found && !transition || !found && !verify.SaysImmutable(c.Message) {
			return nil, nil
		}
		out = append(out, c.Field)
	}
	return out, nil
}

// steps matches the steps of a field's path: spec, things, [0], [key].
var steps = lazyregexp.New(`\[[^\]]*\]|[^.\[]+`)

// ruleOf finds the rule that a cause comes from, and says whether it looks at
// the old value. https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#transition-rules
func ruleOf(version map[string]any, cause metav1.StatusCause) (transition, found bool) {
	node := schemaOf(version)
	for _, step := range steps().FindAllString(strings.TrimPrefix(cause.Field, "<nil>"), -1) {
		if strings.HasPrefix(step, "[") {
			items, isList := node["items"].(map[string]any)
			if node, _ = node["additionalProperties"].(map[string]any); isList {
				node = items
			}
			continue
		}
		properties, _ := node["properties"].(map[string]any)
		node, _ = properties[step].(map[string]any)
	}
	rules, _ := node["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		m, _ := r.(map[string]any)
		rule, _ := m["rule"].(string)
		message, _ := m["message"].(string)
		if message == "" {
			message = "failed rule: " + rule
		}
		if m["messageExpression"] != nil || strings.Contains(cause.Message, strings.TrimSpace(message)) {
			transition, found = transition || strings.Contains(rule, "oldSelf"), true
		}
	}
	return transition, found
}
