package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/ordering"
	"deployer/internal/kube"
)

// protectContents keeps the namespaces and definitions with which something would be deleted that stays.
func (p *pruner) protectContents(ctx context.Context, changes []Change) error {
	for i := range changes {
		c := &changes[i]
		if c.Action != decide.Delete || c.Live == nil || c.Live.GetDeletionTimestamp() != nil || !c.ID.IsNamespace() && !c.ID.IsCRD() {
			continue
		}
		inside, err := p.keptInside(ctx, c.orphan, changes)
		if err != nil {
			return err
		}
		if inside != (kube.ID{}) {
			c.keep(fmt.Sprintf("%s stays, and would be deleted with it", inside))
			c.RevisitNextRelease = true
		}
	}
	return nil
}

// keptInside returns an object that stays, and that the deletion of a namespace or definition would delete; the zero ID
// when there is none.
func (p *pruner) keptInside(ctx context.Context, o *orphan, changes []Change) (kube.ID, error) {
	isInside := func(id kube.ID) bool { return id.Namespace == o.ID.Name }
	var collections []collection
	if o.ID.IsCRD() {
		crd := o.Declared
		if crd == nil {
			live, err := p.a.get(ctx, definition.Mapping, o.ID)
			if err != nil && !apierrors.IsForbidden(err) {
				return kube.ID{}, &ObjectError{ID: o.ID, Source: o.source, Doing: "reading", Err: err}
			}
			if crd = live; crd == nil {
				return kube.ID{}, nil
			}
		}
		kind := definition.Kind(crd)
		isInside = func(id kube.ID) bool { return id.GroupKind() == kind }
		if mapping, err := p.a.cluster.Mapping(ctx, kind.WithVersion(""), true); err == nil {
			collections = []collection{{mapping: mapping}}
		}
	} else {
		for _, kind := range []string{"PersistentVolumeClaim", "Secret", "ConfigMap"} { // what earlier revisions may have had
			if mapping, err := p.a.cluster.Mapping(ctx, kube.ID{Kind: kind}.GroupKind().WithVersion("v1"), true); err == nil {
				collections = append(collections, collection{mapping: mapping, namespace: o.ID.Name})
			}
		}
	}
	for _, c := range changes {
		if (c.Action == decide.Keep || c.Action == decide.GiveBack) && c.Live != nil && isInside(c.ID) && c.Live.GetDeletionTimestamp() == nil &&
			metav1.GetControllerOf(c.Live) == nil {
			return c.ID, nil
		}
	}
	for _, at := range collections {
		if id, err := p.annotatedToStay(ctx, at); err != nil || id != (kube.ID{}) {
			return id, err
		}
	}
	return kube.ID{}, nil
}

// annotatedToStay returns an object of a collection whose annotation keeps it; the zero ID when there is none, and when the
// account may not list them.
func (p *pruner) annotatedToStay(ctx context.Context, at collection) (kube.ID, error) {
	opts := metav1.ListOptions{Limit: 500}
	for {
		page, err := p.finder.listMetaPage(ctx, at, opts)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
			return kube.ID{}, nil
		case err != nil:
			return kube.ID{}, listError(at, err)
		}
		for _, item := range page.Items {
			if decide.IsKept(item.Annotations) && item.DeletionTimestamp == nil {
				gvk := at.mapping.GVK
				return kube.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: item.Namespace, Name: item.Name}, nil
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return kube.ID{}, nil
		}
	}
}

// holdForFinalizers lets what is deleted after a custom resource with finalizers wait until that is gone, if what removes
// them may be among it.
func holdForFinalizers(changes []Change) {
	lastTurn := -1 // of what may be needed to remove finalizers
	for _, c := range changes {
		if helpsFinalizers(c) {
			lastTurn = max(lastTurn, c.orphan.order.Turn)
		}
	}
	var held []Change
	for i := range changes {
		c := &changes[i]
		if c.Action != decide.Delete || c.Live == nil {
			continue
		}
		for _, h := range held {
			order, turn := &c.orphan.order, h.orphan.order.Turn
			if lastTurn > turn && turn < order.Turn && !slices.Contains(order.WaitsForGone, h.ID) {
				order.WaitsForGone = append(order.WaitsForGone, h.ID)
				if gone := (ordering.Dependency{ID: h.ID, State: ordering.Gone}); c.ID.Group == "apps" && !slices.Contains(c.DependsOn, gone) {
					c.DependsOn = append(c.DependsOn, gone)
				}
			}
		}
		if !kube.IsBuiltinGroup(c.ID.Group) && len(c.Live.GetFinalizers()) > 0 {
			held = append(held, *c)
		}
	}
}

// helpsFinalizers reports whether a deletion is of something that runs programs, may have others that do, or is what such a
// program, of the release or not, acts by: its account, its permissions, or the credentials that a custom resource names.
func helpsFinalizers(c Change) bool {
	return c.Action == decide.Delete && (c.ID.Group == "apps" || c.ID.Group == rbacGroup || kube.RunsToEnd(c.ID.GroupKind()) || !kube.IsBuiltinGroup(c.ID.Group) ||
		c.ID.Group == "" && (c.ID.Kind == "Secret" || c.ID.Kind == "ServiceAccount"))
}
