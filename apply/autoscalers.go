package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// autoscalers know which workloads are scaled by a HorizontalPodAutoscaler or a
// KEDA ScaledObject, live or of this release.
type autoscalers struct {
	p      *planning
	found  memo[string, scaledWorkloads] // by namespace
	others memo[string, scaledWorkloads] // by custom resources of other kinds, by namespace
}

// scaledWorkloads are the workloads of a namespace that are scaled by something.
type scaledWorkloads struct {
	names      map[kube.ID]string // who scales it
	comes      map[kube.ID]bool   // whether that is a HorizontalPodAutoscaler of the release, and nothing had scaled it before this run
	incomplete bool               // some autoscalers couldn't be listed
}

// autoscalerKinds are the kinds that scale workloads.
var autoscalerKinds = []schema.GroupKind{
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Kind: "ScaledObject"},
}

// replicasPath is where a kind with a scale subresource has its number. For custom
// resources their definition says it: the release's, or the cluster's.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource
func (s *autoscalers) replicasPath(ctx context.Context, t *target) (fieldpath.Path, error) {
	usual := fieldpath.MakePathOrDie("spec", "replicas")
	if kube.IsBuiltinGroup(t.mapping.GVK.Group) {
		return usual, nil
	}
	version, err := s.p.definitions.version(ctx, t)
	stated, _, _ := unstructured.NestedString(version, "subresources", "scale", "specReplicasPath")
	if err != nil || stated == "" {
		return usual, err
	}
	var path fieldpath.Path
	for name := range strings.SplitSeq(strings.TrimPrefix(stated, "."), ".") { // of names only
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return path, nil
}

// scaledBy returns what scales a target, as the manager that has set the number by the scale subresource, if
// one has; zero when only people, charts and what doesn't exist any more have scaled it: then the number is a field as any other.
func (s *autoscalers) scaledBy(ctx context.Context, t *target, entries []ownership.Entry, path fieldpath.Path) (ownership.FieldManager, error) {
	known, err := s.in(ctx, t.id.Namespace)
	if err != nil {
		return ownership.FieldManager{}, err
	}
	by := ownership.FieldManager{Manager: known.names[t.id]}
	for _, e := range entries {
		switch {
		case e.Subresource != "scale" || !e.Set.Has(path):
		case by.Manager != "":
			e.Manager = by.Manager
			return e.FieldManager, nil
		case ownership.ClassOf(e.Manager) != ownership.Controller:
		case e.Manager == "kube-controller-manager" || strings.HasPrefix(e.Manager, "keda"):
			if known.incomplete {
				return e.FieldManager, nil
			}
		default:
			others, err := s.others.get(t.id.Namespace, func() (scaledWorkloads, error) { return s.findOthers(ctx, t.id.Namespace) })
			if err != nil {
				return ownership.FieldManager{}, err
			}
			if name := others.names[t.id]; name != "" || known.incomplete || others.incomplete {
				e.Manager = cmp.Or(name, e.Manager)
				return e.FieldManager, nil
			}
		}
	}
	return by, nil
}

// startsScaling reports whether a HorizontalPodAutoscaler comes with the release for a target that nothing had scaled before this run. It
// doesn't where that isn't known.
func (s *autoscalers) startsScaling(ctx context.Context, t *target) (bool, error) {
	known, err := s.in(ctx, t.id.Namespace)
	return known.comes[t.id] && !known.incomplete, err
}

// in returns the scaled workloads of a namespace.
func (s *autoscalers) in(ctx context.Context, namespace string) (scaledWorkloads, error) {
	return s.found.get(namespace, func() (scaledWorkloads, error) { return s.find(ctx, namespace) })
}

func (s *autoscalers) find(ctx context.Context, namespace string) (scaledWorkloads, error) {
	out, before := scaledWorkloads{names: map[kube.ID]string{}, comes: map[kube.ID]bool{}}, map[kube.ID]bool{}
	for _, gk := range autoscalerKinds {
		mapping, err := s.p.a.cluster.Mapping(ctx, gk.WithVersion(""), true)
		if err != nil {
			out.incomplete = out.incomplete || !errors.As(err, new(*kube.NoKindMatchError))
			continue // the owner of the field still tells
		}
		live, err := s.p.a.list(ctx, collection{mapping: mapping, namespace: namespace})
		if apierrors.IsForbidden(err) {
			out.incomplete = true
			s.p.warnings.add(kube.ID{}, "", "no permission to list %s in namespace %s: autoscaled workloads are recognised by the owner of spec.replicas only",
				mapping.Resource.Resource, namespace)
			continue
		}
		if err != nil {
			return out, err
		}
		for i := range live {
			if was := s.beforeRun(&live[i]); was != nil {
				before[scaleTarget(was)] = true
			}
			if !s.isReleased(&live[i]) {
				out.add(&live[i])
			}
		}
	}
	for id, t := range s.p.targetsByID {
		if slices.Contains(autoscalerKinds, id.GroupKind()) && id.Namespace == namespace {
			out.add(t.obj)
			out.comes[scaleTarget(t.obj)] = id.GroupKind() == autoscalerKinds[0] && !before[scaleTarget(t.obj)]
		}
	}
	return out, nil
}

// findOthers finds what custom resources scale whose kinds are called after it, such as a WatermarkPodAutoscaler or a CronHPA.
func (s *autoscalers) findOthers(ctx context.Context, namespace string) (scaledWorkloads, error) {
	out := scaledWorkloads{names: map[kube.ID]string{}}
	kinds, err := s.p.a.cluster.Kinds(ctx)
	if err != nil {
		return out, err
	}
	for _, m := range kinds {
		kind := strings.ToLower(m.GVK.Kind)
		scales := strings.Contains(kind, "scal") || strings.HasSuffix(kind, "hpa")
		if !scales || !m.Namespaced || kube.IsBuiltinGroup(m.GVK.Group) || slices.Contains(autoscalerKinds, m.GVK.GroupKind()) {
			continue
		}
		live, err := s.p.a.list(ctx, collection{mapping: m, namespace: namespace})
		switch {
		case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), apierrors.IsNotFound(err), verify.Read(err).Detail == verify.NotConverted:
			out.incomplete = true
		case err != nil:
			return out, err
		}
		for i := range live {
			out.add(&live[i])
		}
	}
	return out, nil
}

// beforeRun returns a live autoscaler as it was before this run; nil if it wasn't there.
func (s *autoscalers) beforeRun(scaler *unstructured.Unstructured) *unstructured.Unstructured {
	if c := s.p.settled[kube.IDOf(scaler)]; c != nil && c.Action != decide.Unchanged {
		return c.Live
	}
	return scaler
}

// isReleased reports whether this release takes away from an autoscaler what it scales: the chart no longer has the autoscaler, or
// the ScaledObject that it was made for, or has it for something else.
func (s *autoscalers) isReleased(scaler *unstructured.Unstructured) bool {
	id := kube.IDOf(scaler)
	if by := metav1.GetControllerOf(scaler); by != nil && by.Kind == "ScaledObject" {
		id = kube.ID{Group: "keda.sh", Kind: by.Kind, Namespace: id.Namespace, Name: by.Name}
	} else if provenance.OwnerOf(scaler) != s.p.a.owner {
		return false
	}
	declared := s.p.history.latestDeclared(id).Object
	if declared == nil {
		return false
	}
	if t := s.p.targetsByID[id]; t != nil { // it stays where somebody has moved it to and keeps it
		return scaleTarget(t.obj) != scaleTarget(scaler) && (s.p.a.opts.Conflicts != decide.YieldConflicts || scaleTarget(declared) == scaleTarget(scaler))
	}
	stays := func(annotations map[string]string) bool {
		return decide.IsKept(annotations) || decide.HasUnknownPolicy(annotations)
	}
	return !stays(scaler.GetAnnotations()) && !stays(declared.GetAnnotations())
}

// add notes what an autoscaler scales.
func (s scaledWorkloads) add(scaler *unstructured.Unstructured) {
	if id := scaleTarget(scaler); id != (kube.ID{}) {
		s.names[id] = scaler.GetKind() + "/" + scaler.GetName()
	}
}

// scaleTarget is what an autoscaler scales; zero where it doesn't say.
func scaleTarget(scaler *unstructured.Unstructured) kube.ID {
	ref, named, _ := unstructured.NestedMap(scaler.Object, "spec", "scaleTargetRef")
	if !named {
		ref, _, _ = unstructured.NestedMap(scaler.Object, "spec", "targetRef")
	}
	name := fields.AsString(ref["name"])
	gv, err := schema.ParseGroupVersion(cmp.Or(fields.AsString(ref["apiVersion"]), "apps/v1")) // KEDA's defaults
	if err != nil || name == "" {
		return kube.ID{}
	}
	gk := kube.Canonical(gv.WithKind(cmp.Or(fields.AsString(ref["kind"]), "Deployment")).GroupKind())
	return kube.ID{Group: gk.Group, Kind: gk.Kind, Namespace: scaler.GetNamespace(), Name: name}
}
