package apply

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A write is one request of a change, the requests that give an object back, or the wait until a deletion is done.
type write struct {
	verb         verb
	precondition precondition
	entries      []ownership.Entry          // that migrateOwnership writes
	operations   []patchOperation           // of patchObject
	object       *unstructured.Unstructured // that replaceObject writes; applyObject and createObject write Change.Desired
	propagation  metav1.DeletionPropagation // of deleteObject
	isFirst      bool                       // of migrateOwnership: the change is decided again afterwards
}

// A verb is what kind of request a write is.
type verb int

// The verbs, in the order in which the writes of one change may follow each other.
const (
	deleteObject     verb = iota
	awaitGone             // waits until the object that was deleted is gone
	createObject          // never changes an object that is there
	patchObject           // makes changes that no apply can; the change is decided again afterwards
	migrateOwnership      // writes managedFields, and nothing else of the object
	applyObject           // server-side apply
	replaceObject         // writes the whole object if an apply can't express it
	giveBackObject        // restores the object as it was before it was adopted
)

// A precondition is what must be true of the live object for a write to happen.
// The zero value is no condition.
type precondition struct {
	uid             types.UID
	resourceVersion string
}

// mustBeAbsent makes an apply only create: the server compares the version only if the object
// exists. Tested on 1.36 for built-in kinds and custom resources: 201 without an object,
// 409 with one.
func mustBeAbsent() precondition { return precondition{resourceVersion: "1"} }

// An execution says how a change is carried out: its writes in order, and what is needed
// to decide again. A deferred change has no writes yet.
type execution struct {
	writes []write

	p      *planning
	t      *target // nil for an orphan
	orphan *orphan // what is deleted or given back; nil for other changes
}

func (p *planning) executionOf(t *target, writes ...write) *execution {
	return &execution{p: p, t: t, writes: writes}
}

func (p *planning) executionOfOrphan(o orphan, writes ...write) *execution {
	return &execution{p: p, orphan: &o, writes: writes}
}

// requireVersionOf makes the writes fail if the object isn't of the version of live any more.
func (e *execution) requireVersionOf(live *unstructured.Unstructured) {
	if e == nil {
		return
	}
	for i := range e.writes {
		if w := &e.writes[i]; w.precondition.uid != "" {
			w.precondition.resourceVersion = live.GetResourceVersion()
		}
	}
}

// isRepair reports whether the execution only prepares the object, and the change is
// decided again afterwards.
func (e *execution) isRepair() bool { return len(e.writes) > 0 && e.writes[0].verb == patchObject }

// sendWrites makes the writes of a change. redecide asks for deciding about it again.
func (a *Applier) sendWrites(ctx context.Context, c Change) (done Change, redecide bool, err error) {
	if c.Deferral != nil {
		return c, true, nil
	}
	e := c.execution
	if e.t != nil {
		ctx, e.t.progress.refusalIsFinal = e.p.warnings.withServerWarnings(ctx, e.t), c.changesOnlyOwners()
	}
	version := "" // resourceVersion after our previous write
	for _, w := range e.writes {
		if version != "" {
			w.precondition.resourceVersion = version
		}
		switch w.verb {
		case deleteObject:
			err = a.delete(ctx, e.mapping(ctx), c.ID, w.precondition, w.propagation)
		case awaitGone:
			err = a.awaitGone(ctx, e.mapping(ctx), c.ID, w.precondition.uid)
			e.t.progress.oldDeleted = err == nil
		case createObject:
			c.Applied, err = a.create(ctx, e.t, c.Desired, asWrite)
		case patchObject:
			_, err = a.sendJSONPatch(ctx, e.t, w.precondition.resourceVersion, w.operations, asWrite)
			e.t.progress.written = e.t.progress.written || err == nil
			return c, true, err
		case migrateOwnership:
			c.Applied, err = a.sendMigration(ctx, c, w)
			switch {
			case err == nil && w.isFirst:
				e.t.progress.written = true
				return c, true, nil
			case err == nil:
				version, e.t.progress.written = c.Applied.GetResourceVersion(), true
			case !c.changesOnlyOwners() && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)):
				return a.applyWithoutMigration(ctx, c, err)
			}
		case applyObject:
			c.Applied, err = a.apply(ctx, e.t, c.Desired, w.precondition, asWrite)
		case replaceObject:
			c.Applied, err = a.put(ctx, e.t, w.object, asWrite)
		case giveBackObject:
			c, err = a.giveBack(ctx, c)
		}
		if verify.TooLarge(err) && (w.verb == createObject || w.verb == applyObject) {
			c, err = a.writeLarge(ctx, c, w, err)
		}
		switch {
		case err != nil && c.changesOnlyOwners() && verify.RefusesWrite(err):
			c.Applied, c.Reason = c.Live, fieldsStay(c, err)
			return c, false, nil
		case err != nil:
			return c, false, err
		}
	}
	return c, false, nil
}

// changesOnlyOwners reports whether the writes of a change leave the content of the object as it is. They are put off if the
// API server, or a webhook, doesn't let them happen: nothing that the chart says depends on them.
func (c Change) changesOnlyOwners() bool { return c.Action == Unchanged }

// fieldsStay says why the owners of fields stay who they are.
func fieldsStay(c Change, refusal error) string {
	return "its fields stay with their former managers: " + verify.AsServerError(c.object(), refusal).Error()
}

// mapping returns where the kind is served. For an orphan that is looked up, because a definition of this
// release may have dropped the version of the plan.
func (e *execution) mapping(ctx context.Context) kube.Mapping {
	if e.t != nil {
		return e.t.mapping
	}
	if now, err := e.p.a.cluster.Mapping(ctx, e.orphan.mapping.GVK, true); err == nil {
		return now
	}
	return e.orphan.mapping // gone or unknown: the request tells
}

// sendMigration writes managedFields, and nothing else of the object.
func (a *Applier) sendMigration(ctx context.Context, c Change, w write) (*unstructured.Unstructured, error) {
	list, err := ownership.Encode(w.entries)
	if err != nil {
		return nil, err
	}
	operations := []patchOperation{managedFieldsOperation(list)}
	if dropsLastApplied(c) {
		// If it stayed, a later kubectl apply would remove our fields.
		operations = append(operations, patchOperation{Op: "remove", Path: "/metadata/annotations/" + jsonPointerEscaper.Replace(kube.LastAppliedAnnotation)})
	}
	return a.sendJSONPatch(ctx, c.execution.t, w.precondition.resourceVersion, operations, asWrite)
}

// dropsLastApplied reports whether the last-applied annotation of kubectl is removed,
// because the migration takes kubectl's fields: see ownership.Migrate.
func dropsLastApplied(c Change) bool {
	_, noted := c.Live.GetAnnotations()[kube.LastAppliedAnnotation]
	return noted && slices.ContainsFunc(c.TakenFrom, func(label string) bool { return strings.HasPrefix(label, "kubectl-client-side-apply ") })
}

// applyWithoutMigration carries out a change without the migration of ownership, because a
// policy refuses that. The policy may object to the object as it is, so the migration is
// tried once more after the apply.
//
// An object of another release isn't applied: both releases use the same field manager,
// so our apply would remove the fields that only the other one states.
func (a *Applier) applyWithoutMigration(ctx context.Context, c Change, refusal error) (Change, bool, error) {
	t := c.execution.t
	if provenance.OwnerOf(c.Live) != a.owner && slices.ContainsFunc(c.Live.GetManagedFields(), ownership.IsOurApply) {
		return c, false, refusal
	}
	c.Applied, c.Reason = c.Live, fieldsStay(c, refusal)
	if t.progress.migrationRefusedAt == c.Live.GetResourceVersion() {
		return c, false, nil
	}
	var err error
	if c.Applied, err = a.apply(ctx, t, c.Desired, precondition{c.Live.GetUID(), c.Live.GetResourceVersion()}, asWrite); err != nil {
		return c, false, err
	}
	t.progress.migrationRefusedAt = c.Applied.GetResourceVersion()
	return c, true, nil
}
