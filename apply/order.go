package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/ordering"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// A Wave is a list of changes that need no order among themselves, and what the wave
// waits for.
type Wave struct {
	PruneFirst []Change // orphans that hold what objects of the wave need for themselves: see placeOrphans
	Changes    []Change
	// Await lists the objects that tracking has to find ready or present before the wave
	// begins. Objects that only have to be applied first aren't in it. No object is
	// listed twice, not even in different waves.
	Await []ordering.Dependency
	// Last says that the wave comes when all else is done and recorded: it takes permissions by which the run acts.
	Last bool
}

// releaseOrder is the order of a release's objects.
type releaseOrder struct {
	p       *planning
	targets []*target
	nodes   []ordering.Node // of the same index
	index   map[kube.ID]int // of the targets
}

// order computes which objects wait for which. Those with invalid dependencies are rejected.
func (p *planning) order(ctx context.Context) (*releaseOrder, error) {
	mains := p.mains
	o := &releaseOrder{p: p, targets: mains, nodes: make([]ordering.Node, len(mains)), index: map[kube.ID]int{}}
	for i, t := range mains {
		o.nodes[i].ID, o.index[t.id] = t.id, i
	}
	for i := range mains {
		if err := o.readConstraints(ctx, i); err != nil {
			return nil, err
		}
	}
	o.addImplied()
	o.addConversions()
	o.addParameters()
	for _, t := range p.hooks {
		o.rejectHook(t)
	}
	for i, t := range mains {
		t.ordering.dependencies, t.ordering.weight = ordering.Dependencies(o.nodes, i), o.nodes[i].Weight
	}
	for _, c := range ordering.Cycles(o.nodes) {
		o.reject(mains[o.index[c.ID]], c.Text, "remove one of these dependencies, or give one of the objects another "+annotation.Weight.Name)
	}
	return o, nil
}

func (o *releaseOrder) reject(t *target, text, what string) {
	o.p.rejected = append(o.p.rejected, *t.reject(&InvalidError{Text: text, Advice: what}))
}

// readConstraints reads the order annotations of one object.
func (o *releaseOrder) readConstraints(ctx context.Context, i int) error {
	t := o.targets[i]
	constraints := annotation.OrderOf(t.obj.GetAnnotations())
	for _, problem := range constraints.Problems {
		o.reject(t, problem, "")
	}
	o.nodes[i].Weight = constraints.Weight
	for _, r := range constraints.Dependencies {
		kinds, err := o.p.resolver.kindsNamedBy(ctx, r)
		if err != nil {
			return &ObjectError{ID: t.id, Source: t.source, Doing: "looking for what is named by " + r.Annotation + " of", Err: err}
		}
		isNamed := func(other *target) bool {
			return ordering.Matches(r, other.id, other.mapping.GVK, kinds, o.p.resolver.namespaceForReferences(t.id))
		}
		var found []int // of the release
		for j, other := range o.targets {
			if isNamed(other) && !(r.IsPattern && other == t) {
				found = append(found, j)
			}
		}
		switch {
		case len(found) > 1 && !r.IsPattern:
			o.reject(t, r.String()+" may be "+o.names(found), "write the group before the kind, or the namespace before the name")
		case len(found) > 0:
			for _, j := range found {
				o.nodes[i].Edges = append(o.nodes[i].Edges, ordering.Edge{To: j, State: ordering.State(r.State), Reason: r.String()})
			}
		case slices.ContainsFunc(o.p.crds, isNamed):
			// Objects of crds/ are applied before everything else.
		case slices.ContainsFunc(o.p.hooks, isNamed):
			if !r.IsPattern {
				o.reject(t, r.String()+" is a hook, and hooks run before or after all objects", "remove it")
			}
		default:
			if err := o.readOutsideReference(ctx, i, r, kinds); err != nil {
				return err
			}
		}
	}
	return nil
}

// addImplied adds the implied dependencies: an object waits for its namespace and its CRD, and for what controllers look up
// when they see it.
func (o *releaseOrder) addImplied() {
	storage := slices.DeleteFunc(slices.Clone(o.targets), func(t *target) bool { return t.id.Kind != "StorageClass" && t.id.Kind != "PersistentVolume" })
	for i, t := range o.targets {
		add := func(id kube.ID, why string) {
			if j, ok := o.index[id]; ok && j != i {
				o.nodes[i].Edges = append(o.nodes[i].Edges, ordering.Edge{To: j, State: ordering.Present, Implied: true, Reason: why})
			}
		}
		add(namespaceID(t.id.Namespace), "which is its namespace")
		add(t.definition(), "which defines its kind")
		if holdsToken(t.obj) {
			// Without its account, it is deleted. k8s.io/kubernetes/pkg/controller/serviceaccount/tokens_controller.go
			add(kube.ID{Kind: "ServiceAccount", Namespace: t.id.Namespace, Name: t.obj.GetAnnotations()[corev1.ServiceAccountNameKey]}, "whose token it holds")
		}
		for _, owner := range t.obj.GetOwnerReferences() { // without its owners, the garbage collector deletes it
			gv, _ := schema.ParseGroupVersion(owner.APIVersion)
			add(kube.ID{Group: gv.Group, Kind: owner.Kind, Namespace: t.id.Namespace, Name: owner.Name}, "which owns it")
			add(kube.ID{Group: gv.Group, Kind: owner.Kind, Name: owner.Name}, "which owns it")
		}
		if t.id.GroupKind() != kube.PersistentVolumeClaimKind || o.nodes[i].Weight != nil {
			continue
		}
		class, stated, _ := unstructured.NestedString(t.obj.Object, "spec", "storageClassName")
		for _, s := range storage { // a claim without its volume gets another one
			if ofVolume, _, _ := unstructured.NestedString(s.obj.Object, "spec", "storageClassName"); o.nodes[o.index[s.id]].Weight == nil &&
				(!stated || class == s.id.Name || class == ofVolume && s.id.Kind == "PersistentVolume") {
				add(s.id, "of which its volume is")
			}
		}
	}
}

// addParameters lets bindings of policies wait for the parameters of these, without which a policy may deny everything, unless
// the chart wants it otherwise.
func (o *releaseOrder) addParameters() {
	for i, t := range o.targets {
		policy, isBinding := strings.CutSuffix(t.id.Kind, "Binding")
		if !isBinding || t.id.Group != admissionGroup || o.nodes[i].Weight != nil {
			continue
		}
		for _, parameters := range parametersOf(t.obj, o.p.released(policy, policyOf(t.obj))) {
			for j, other := range o.targets {
				if j == i || o.nodes[j].Weight != nil || !parameters.include(other.obj) {
					continue
				}
				o.addUnlessCyclic(i, ordering.Edge{To: j, State: ordering.Present, Implied: true, Reason: "by which its policy goes"})
			}
		}
	}
}

// addConversions finds custom resources whose kind is converted between versions by a
// webhook of the release. They wait for the workloads behind it, unless they have a
// weight. An exception is a new object of the storage version: it needs no conversion,
// and the workload may need the object.
func (o *releaseOrder) addConversions() {
	for _, crd := range o.p.definitions.released {
		id, stored := definition.ConversionService(crd)
		service, ok := o.index[id]
		if !ok {
			continue
		}
		workloads := o.selectedWorkloads(o.targets[service])
		converter := []kube.ID{id}
		for _, j := range workloads {
			converter = append(converter, o.targets[j].id)
		}
		isReady := !slices.ContainsFunc(converter, func(id kube.ID) bool { return o.p.settled[id] == nil })
		if !isReady {
			o.p.prerequisites.expect(converter...)
		}
		for i, t := range o.targets {
			if t.id.GroupKind() != definition.Kind(crd) {
				continue
			}
			if !isReady {
				t.waits.converter = converter
			}
			if o.nodes[i].Weight != nil || t.waits.deferral.waitsFor(t.definition()) && t.mapping.GVK.Version == stored {
				continue
			}
			for _, j := range workloads {
				o.nodes[i].Edges = append(o.nodes[i].Edges, ordering.Edge{To: j, State: ordering.Ready, Implied: true, Reason: "which converts its kind"})
			}
		}
	}
}

// selectedWorkloads returns the workloads of the release whose pods a Service selects.
func (o *releaseOrder) selectedWorkloads(service *target) []int {
	var out []int
	for i, t := range o.targets {
		if isSelected(service, t.id, t.obj) {
			out = append(out, i)
		}
	}
	return out
}

// putAfter puts a target after objects of the release, which come before everything that doesn't have to be there for
// them. It reports whether that is possible. Objects that are deleted have their own order.
func (o *releaseOrder) putAfter(t *target, until []kube.ID) bool {
	if t.isHook || t.fromCRDs {
		return t.isPostHook || slices.ContainsFunc(until, func(id kube.ID) bool { return o.runsBefore(id, t) })
	}
	before := slices.Clone(o.nodes)
	var edges []ordering.Edge
	for _, id := range until {
		i, ok := o.index[id]
		if !ok {
			continue // it is deleted, or a hook
		}
		e := ordering.Edge{To: i, State: ordering.Present, Implied: true, Reason: "by which it is admitted"}
		if id.Group == "apps" {
			e.State = ordering.Ready // the webhook has to answer
		}
		edges = append(edges, e)
		o.nodes[i].ComesFirst = o.nodes[i].ComesFirst || comesFirst(id)
	}
	if !o.addUnlessCyclic(o.index[t.id], edges...) {
		o.nodes = before
		return false
	}
	return true
}

// addUnlessCyclic lets a node also wait for others, and reports false where that makes a cycle: then nothing changes.
func (o *releaseOrder) addUnlessCyclic(i int, edges ...ordering.Edge) bool {
	before := o.nodes[i].Edges
	o.nodes[i].Edges = slices.Concat(before, edges)
	isCyclic := len(ordering.Cycles(o.nodes)) > 0
	if isCyclic {
		o.nodes[i].Edges = before
	}
	return !isCyclic
}

// tightenLater puts a ResourceQuota that leaves less room after what is created in its namespace: until what the chart drops is
// gone, the quota counts both.
func (o *releaseOrder) tightenLater(orphans []Change) {
	for i, t := range o.targets {
		drops := func(c Change) bool {
			return c.Action == decide.Delete && len(c.writes) > 0 && c.ID.Namespace == t.id.Namespace && decide.WhyBefore(c.ID.GroupKind()) == ""
		}
		if t.id.Group != "" || t.id.Kind != "ResourceQuota" || o.nodes[i].Weight != nil || !leavesLess(t.decided) || !slices.ContainsFunc(orphans, drops) {
			continue
		}
		var edges []ordering.Edge
		for j, other := range o.targets {
			if c := other.decided; j != i && c != nil && c.Action == decide.Create && c.ID.Namespace == t.id.Namespace && !other.waits.deferral.waitsFor(t.id) {
				edges = append(edges, ordering.Edge{To: j, State: ordering.Present, Implied: true, Reason: "which is created while it leaves more room"})
			}
		}
		o.addUnlessCyclic(i, edges...)
	}
}

// leavesLess reports whether a ResourceQuota is new or gets a lower limit.
func leavesLess(c *Change) bool {
	if c == nil || c.Action != decide.Create && c.Action != decide.Update {
		return false
	}
	was, _, _ := unstructured.NestedStringMap(objectOf(c.Live), "spec", "hard")
	willBe, _, _ := unstructured.NestedStringMap(objectOf(c.willBe()), "spec", "hard")
	for name, text := range willBe {
		old, errOfOld := resource.ParseQuantity(was[name])
		limit, err := resource.ParseQuantity(text)
		if err == nil && (errOfOld != nil || limit.Cmp(old) < 0) {
			return true
		}
	}
	return false
}

// runsBefore reports whether a hook that makes an object runs before another one.
func (o *releaseOrder) runsBefore(id kube.ID, hook *target) bool {
	return slices.ContainsFunc(o.p.hooks[:max(0, slices.Index(o.p.hooks, hook))], func(t *target) bool { return t.id == id })
}

// comesFirst reports whether an object may be written before all others when one of them waits for it. Workloads need
// others, and what routes traffic comes when what it leads to is there.
func comesFirst(id kube.ID) bool {
	return id.Group != "apps" && id.Kind != "Ingress" && !ordering.IsCustom(id)
}

func (o *releaseOrder) names(list []int) string {
	names := make([]string, len(list))
	for n, i := range list {
		names[n] = o.targets[i].id.String()
		if group := o.targets[i].id.Group; group != "" {
			names[n] += " of " + group
		}
	}
	return strings.Join(names, " or ")
}

// readOutsideReference reads a reference to an object outside of the release.
func (o *releaseOrder) readOutsideReference(ctx context.Context, i int, r annotation.Dependency, kinds []kube.Mapping) error {
	t := o.targets[i]
	if r.IsPattern && !r.External {
		// Charts say so about parts that are switched off, and Nelm lets them.
		o.p.warnings.add(t.id, t.source, "%s names no object of the release and has no effect", r)
		return nil
	}
	mapping, problem := o.onlyKind(kinds)
	if problem != "" {
		o.reject(t, r.String()+problem, "")
		return nil
	}
	if !mapping.Namespaced && r.Namespace != "" {
		o.reject(t, fmt.Sprintf("%s: a %s is in no namespace", r, mapping.GVK.Kind), "")
		return nil
	}
	id := kube.ID{Group: mapping.GVK.Group, Kind: mapping.GVK.Kind, Name: r.Name}
	if mapping.Namespaced {
		id.Namespace = cmp.Or(r.Namespace, o.p.resolver.namespaceForReferences(t.id))
	}
	rejected, err := o.rejectMissing(ctx, t, r, id, mapping)
	if err == nil && !rejected {
		o.nodes[i].Outside = append(o.nodes[i].Outside, ordering.Dependency{ID: id, State: ordering.State(r.State), Outside: true, GVK: mapping.GVK})
	}
	return err
}

// onlyKind returns the kind of a reference to an object outside of the release, or why it
// is ambiguous or unknown.
func (o *releaseOrder) onlyKind(kinds []kube.Mapping) (kube.Mapping, string) {
	if len(kinds) > 1 {
		own := slices.DeleteFunc(slices.Clone(kinds), func(m kube.Mapping) bool {
			return !kube.IsBuiltinGroup(m.GVK.Group) && !strings.HasSuffix(m.GVK.Group, ".k8s.io")
		})
		if len(own) != 1 {
			return kube.Mapping{}, " may be of several groups: write the group before the kind"
		}
		kinds = own
	}
	switch {
	case len(kinds) == 1:
		return kinds[0], ""
	case len(o.p.resolver.unlistedGroupVersions) > 0:
		return kube.Mapping{}, ": the API server can't list " + strings.Join(o.p.resolver.unlistedGroupVersions, ", ") + ", and no other group has the kind"
	}
	return kube.Mapping{}, ": the cluster has no such kind, and none comes with the release"
}

// rejectMissing rejects a reference to an object outside of the release that doesn't exist,
// unless the chart says that somebody else will create it.
func (o *releaseOrder) rejectMissing(ctx context.Context, t *target, r annotation.Dependency, id kube.ID, mapping kube.Mapping) (rejected bool, err error) {
	if _, isReleased := o.p.definitions.kinds[mapping.GVK]; isReleased && r.External {
		return false, nil // its kind may not be served yet
	}
	meta, err := o.p.a.getMeta(ctx, mapping, id)
	switch {
	case apierrors.IsForbidden(err):
		o.reject(t, fmt.Sprintf("%s: %s is not part of this release, and there is no permission to read it and see when it is %s", r, id, r.State),
			"allow the account that deployer runs as to get and watch "+mapping.Resource.GroupResource().String())
		return true, nil
	case err != nil:
		return false, &ObjectError{ID: id, Source: t.source, Doing: "reading", Err: err}
	case meta == nil && !r.External:
		o.reject(t, fmt.Sprintf("%s: %s is neither in the release nor in the cluster", r, id),
			fmt.Sprintf("correct the name; or, if something else creates it, list it in %s to wait for it", annotation.ExternalDependencies.Name))
		return true, nil
	}
	return false, nil
}

// rejectHook rejects dependencies of hooks, which have their own order.
func (o *releaseOrder) rejectHook(t *target) {
	constraints := annotation.OrderOf(t.obj.GetAnnotations())
	for _, problem := range constraints.Problems {
		o.reject(t, problem, "")
	}
	for _, r := range constraints.Dependencies {
		if r.IsPattern {
			o.p.warnings.add(t.id, t.source, "%s has no effect: hooks run one after the other, by weight", r)
			continue
		}
		o.reject(t, r.String()+": hooks run one after the other, by weight, before or after all objects", "remove it, and use helm.sh/hook-weight")
	}
}

// waves returns the waves of the decided changes that aren't settled.
func (o *releaseOrder) waves() []Wave {
	changes := func(i int) bool {
		c := o.targets[i].decided
		return c != nil && c.Action != decide.Unchanged && !c.takesAccess
	}
	var out []Wave
	last := Wave{Last: true}
	for _, wave := range ordering.Waves(o.nodes, changes) {
		targets := make([]*target, len(wave.Nodes))
		for n, i := range wave.Nodes {
			targets[n] = o.targets[i]
		}
		decided := slices.DeleteFunc(changesOf(o.p.unsettled(targets)), func(c Change) bool {
			if c.takesAccess {
				last.Changes = append(last.Changes, c)
			}
			return c.takesAccess
		})
		if len(decided) > 0 {
			out = append(out, Wave{Changes: decided, Await: wave.Await})
		}
	}
	if len(last.Changes) > 0 {
		out = append(out, last)
	}
	return out
}
