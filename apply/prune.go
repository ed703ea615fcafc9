package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// inDeletionOrder sorts deletions. Invalid annotations are ignored: they prevent no
// deletion.
func (p *pruner) inDeletionOrder(ctx context.Context, changes []Change) ([]Change, error) {
	nodes := make([]ordering.Node, len(changes))
	var first []ordering.Precedence
	for i, c := range changes {
		o := c.orphan
		nodes[i].ID = o.ID
		constraints := annotation.OrderOf(o.DeclaredAnnotations())
		nodes[i].Weight = constraints.Weight
		for _, r := range constraints.Dependencies {
			kinds, err := p.resolver.kindsNamedBy(ctx, r)
			if err != nil {
				return nil, err
			}
			for j, other := range changes {
				if i != j && ordering.Matches(r, other.ID, other.orphan.mapping.GVK, kinds, p.resolver.namespaceForReferences(o.ID)) {
					nodes[i].Edges = append(nodes[i].Edges, ordering.Edge{To: j, State: ordering.State(r.State)})
				}
			}
		}
		if !kube.IsAggregated(o.Declared) {
			continue // as almost all, of which there may be thousands
		}
		for j, part := range changes {
			if i != j && ordering.Aggregates(o.Declared, part.orphan.Declared, part.Live) {
				first = append(first, ordering.Precedence{First: i, Then: j})
			}
		}
	}
	var out []Change
	for _, d := range ordering.Deletions(nodes, first, func(i int) bool { return changes[i].Action == decide.Delete }) {
		c := changes[d.Node]
		c.Weight, c.orphan.order = nodes[d.Node].Weight, d
		c.DependsOn = append(c.DependsOn, d.Dependencies...)
		out = append(out, c)
	}
	holdForFinalizers(out)
	return out, nil
}

// Assurance is how far a deletion is followed.
type Assurance int

// The assurances, each with those before it.
const (
	UntilAccepted Assurance = iota // by the API server: of the permissions by which the run acts, as nothing can be looked at without them
	UntilNotBack                   // nobody has recreated the object as the release's
	UntilGone                      // it is gone: of what other objects wait for
)

// Prune carries out a list of deletions of a plan, one turn after the other, and follows them. onDone, ctx and the error are
// as for Run. A change in the slice is replaced where its object was kept or given back; Live of the others becomes the
// object that was deleted.
func (a *Applier) Prune(ctx context.Context, changes []Change, until Assurance, onDone func(*Change)) error {
	if err := permitted(changes); err != nil {
		return err
	}
	d := deletionRun{a: a, changes: map[kube.ID]*Change{}, outcomes: map[kube.ID]error{}}
	var errs []error
	var ended error // why not all were begun
	for rest := changes; len(rest) > 0 && ended == nil; {
		n := 1
		for n < len(rest) && rest[n].orphan.order.Turn == rest[0].orphan.order.Turn {
			n++
		}
		turn := rest[:n]
		rest = rest[n:]
		ready, blocked := d.deletable(ctx, turn)
		if ended = context.Cause(ctx); ended != nil {
			break // nobody knows whether what must be gone first is gone
		}
		var failed []error
		failed, ended = a.executeAll(ctx, ready, onDone)
		errs = slices.Concat(errs, blocked, failed)
		for i, err := range failed {
			done := ready[i]
			switch {
			case err != nil:
				d.outcomes[done.ID] = err
			case done.Action != decide.Delete:
				d.outcomes[done.ID] = nil // it stays, so there is nothing to wait for
				*d.changes[done.ID] = done
			default:
				planned := d.changes[done.ID]
				planned.Live, planned.IsDone = done.Live, done.IsDone // Live is another one if somebody has recreated it since the plan
			}
		}
	}
	if until == UntilGone && ended == nil {
		errs = append(errs, d.awaitAll(ctx, changes)...)
	}
	if ctx.Err() == nil && until != UntilAccepted {
		gone := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Action != decide.Delete || len(c.writes) == 0 })
		errs = append(errs, a.ensureGone(ctx, gone))
	}
	if err := errors.Join(append(errs, ended)...); err != nil || until != UntilGone || a.planning == nil {
		return err
	}
	return a.RedecideDeferred(ctx)
}

// leaveDenied makes of a deletion that admission denies one that stays until a later release: somebody protects what the chart
// dropped. It reports false for an uninstall, which is to delete everything, and where the chart needs the deletion.
func (p *pruner) leaveDenied(c *Change, err error) bool {
	kind := verify.Read(err).Kind
	isDenied := kind == verify.Policy || kind == verify.WebhookSays
	if !isDenied || c.Action != decide.Delete || p.req.Uninstall || c.orphan.makesRoom || decide.WhyBefore(c.ID.GroupKind()) != "" {
		return false
	}
	c.keep("the server denies its deletion")
	c.RevisitNextRelease = true
	c.Warning = "it stays, and the next release tries again: " + withoutObject(err).Error()
	return true
}

// A deletionRun tracks objects that are being deleted.
type deletionRun struct {
	a        *Applier
	changes  map[kube.ID]*Change // those whose turn has come, in the slice of Prune
	outcomes map[kube.ID]error   // how each deletion ended; nil when there is nothing to wait for any more
}

// deletable waits until the objects that must be gone first are gone. It returns the changes that
// may be carried out, and an error for each of the others, which stay.
func (d *deletionRun) deletable(ctx context.Context, turn []Change) (ready []Change, blocked []error) {
	d.await(ctx, turn)
	for i, c := range turn {
		d.changes[c.ID] = &turn[i]
		first := slices.IndexFunc(c.orphan.order.WaitsForGone, func(id kube.ID) bool { return d.outcomes[id] != nil })
		if first < 0 {
			ready = append(ready, c)
			continue
		}
		id := c.orphan.order.WaitsForGone[first]
		why := fmt.Errorf("%s must be deleted first and still exists: %w", id, d.outcomes[id])
		d.outcomes[c.ID] = why
		blocked = append(blocked, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing[decide.Delete], Err: why})
	}
	return ready, blocked
}

func (d *deletionRun) await(ctx context.Context, turn []Change) {
	var ids []kube.ID
	for _, c := range turn {
		for _, id := range c.orphan.order.WaitsForGone {
			if _, known := d.outcomes[id]; !known && d.changes[id] != nil && !slices.Contains(ids, id) { // or it went earlier
				ids = append(ids, id)
			}
		}
	}
	d.awaitGone(ctx, ids)
}

// finalizerPatience is how long changes wait for an object that should go first and that a finalizer of others holds: who
// removed it may be gone.
const finalizerPatience = 15 * time.Second

// awaitAll waits until everything that was deleted is gone. It returns an error for each object that stays although
// others need what it holds.
func (d *deletionRun) awaitAll(ctx context.Context, changes []Change) []error {
	var ids, actors []kube.ID
	for _, c := range changes {
		switch _, known := d.outcomes[c.ID]; {
		case known || d.changes[c.ID] == nil:
		case c.orphan.makesRoom:
			ids = append(ids, c.ID)
		default:
			actors = append(actors, c.ID)
		}
	}
	d.awaitGone(ctx, ids)
	limited, cancel := context.WithTimeoutCause(ctx, finalizerPatience, fmt.Errorf("it still exists after %s", finalizerPatience))
	defer cancel()
	d.awaitGone(limited, actors)
	var errs []error
	for _, c := range changes {
		switch err := d.outcomes[c.ID]; {
		case slices.Contains(actors, c.ID) && err != nil && ctx.Err() == nil:
			d.markPresent(c.ID)
			if d.a.opts.Warn != nil {
				d.a.opts.Warn(fmt.Sprintf("%s: it may act on what changes now: %s", c.ID, err))
			}
		case (slices.Contains(ids, c.ID) || slices.Contains(actors, c.ID)) && err != nil:
			errs = append(errs, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing[decide.Delete], Err: err})
		case err == nil && c.Action == decide.Delete && len(c.writes) > 0:
			d.markPresent(c.ID)
		}
	}
	return errs
}

// markPresent notes that what waits for a deletion needn't wait any more.
func (d *deletionRun) markPresent(id kube.ID) {
	if d.a.planning != nil { // else nothing does
		d.a.planning.prerequisites.markPresent(id)
	}
}

// awaitGone waits until objects are gone, and notes the outcome of each.
func (d *deletionRun) awaitGone(ctx context.Context, ids []kube.ID) {
	errs := make([]error, len(ids))
	end := d.a.forEach(ctx, len(ids), func(i int) error {
		live := d.changes[ids[i]].Live
		mapping, isServed, err := d.a.stillServed(ctx, live.GroupVersionKind())
		if errs[i] = err; isServed {
			errs[i] = d.a.awaitGone(ctx, mapping, ids[i], live.GetUID())
		}
		return nil
	})
	for i, id := range ids {
		d.outcomes[id] = errors.Join(errs[i], end)
	}
}

// maxReturns is how often an object that keeps coming back is deleted again.
const maxReturns = 5

// ensureGone repeats deletions of objects that were recreated as this release's own while others
// were deleted. Objects that others created under the same names stay. The error names
// the objects that keep coming back.
func (a *Applier) ensureGone(ctx context.Context, gone []Change) error {
	for try := 0; len(gone) > 0; try++ {
		back, err := a.recreatedObjects(ctx, gone)
		if err != nil || len(back) == 0 {
			return err
		}
		if try == maxReturns {
			var errs []error
			for _, c := range back {
				errs = append(errs, &ObjectError{ID: c.ID, Source: c.Source, Doing: doing[decide.Delete],
					Err: fmt.Errorf("another client recreates it each time, %d times so far", try)})
			}
			return errors.Join(errs...)
		}
		pauseAfterRace(ctx, try)
		gone = slices.Clone(back)
		failed, ended := a.executeAll(ctx, back, func(*Change) {})
		if err := errors.Join(append(failed, ended)...); err != nil {
			return err
		}
	}
	return nil
}

// recreatedObjects returns deletions of the objects that exist again and may be deleted.
func (a *Applier) recreatedObjects(ctx context.Context, gone []Change) ([]Change, error) {
	list := make([]sought, len(gone))
	for i, c := range gone {
		// What is ours has Helm's label, but for a ClusterRole that its controller recreates.
		list[i] = sought{id: c.ID, source: c.Source, mapping: a.planning.mappingOf(ctx, c), alone: kube.IsAggregated(c.orphan.Declared)}
	}
	observed, err := a.planning.finder.find(ctx, list, true)
	var out []Change
	for i, s := range observed {
		if s.meta == nil || s.meta.UID == gone[i].Live.GetUID() {
			continue // gone, or still being deleted
		}
		if c := a.planning.pruner.decideOrphanNow(ctx, gone[i], s.meta); c.Action == decide.Delete && len(c.writes) > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, err
}

// stillServed returns how the kind of an object that was there is served. If it isn't, the kind is gone, and its objects with it.
func (a *Applier) stillServed(ctx context.Context, gvk schema.GroupVersionKind) (m kube.Mapping, isServed bool, err error) {
	m, err = a.cluster.Mapping(ctx, gvk, true)
	if errors.As(err, new(*kube.NoKindMatchError)) {
		return m, false, nil
	}
	return m, err == nil, err
}

// awaitGone waits until an object is gone or was replaced by another one. It polls: the
// wait takes from milliseconds to minutes, and a watch needs a permission that the
// account often lacks.
func (a *Applier) awaitGone(ctx context.Context, m kube.Mapping, id kube.ID, uid types.UID) error {
	if limit := a.opts.GoneTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it still exists after %s", limit))
		defer cancel()
	}
	var finalizers []string
	var failure error
	for pause := 50 * time.Millisecond; failure == nil; pause = min(2*pause, 2*time.Second) {
		obj, err := a.get(ctx, m, id)
		// An account that may delete but not read can't wait. The next deletion doesn't either; a
		// creation fails while the name is taken.
		if apierrors.IsForbidden(err) || err == nil && (obj == nil || obj.GetUID() != uid) {
			return nil
		}
		if failure = err; err == nil {
			finalizers, failure = obj.GetFinalizers(), kube.Sleep(ctx, pause)
		}
	}
	if ctx.Err() != nil {
		failure = context.Cause(ctx) // also when the end of ctx has cancelled the request
	} else {
		finalizers = nil
	}
	return &notGoneError{id: id, finalizers: finalizers, err: failure}
}

// A notGoneError says that an object that was deleted is there still.
type notGoneError struct {
	id         kube.ID
	finalizers []string
	err        error
}

func (e *notGoneError) Error() string {
	why := ""
	if len(e.finalizers) > 0 {
		why = " (it has finalizers " + strings.Join(e.finalizers, ", ") + ")"
	}
	return fmt.Sprintf("waiting for the deletion of the old object%s: %v", why, e.err)
}

// Unwrap gives why the wait ended.
func (e *notGoneError) Unwrap() error { return e.err }

// Hint says what to do about the finalizers.
func (e *notGoneError) Hint() string {
	if len(ForeignFinalizers(e.finalizers)) > 0 {
		return HowToLetGo(e.id)
	}
	return ""
}

// HowToLetGo says what can be done about the finalizers of an object that is being deleted.
func HowToLetGo(id kube.ID) string {
	if id.IsCRD() {
		return "objects of its kind are there still: their finalizers have to go first. Without its own, they would stay in the storage of the API server"
	}
	namespace, kind := "", strings.ToLower(id.Kind)
	if id.Namespace != "" {
		namespace = "-n " + id.Namespace + " "
	}
	if id.Group != "" {
		kind += "." + id.Group // other groups may have a kind of that name
	}
	return fmt.Sprintf("whoever set a finalizer removes it; if that is gone for good: kubectl %spatch %s %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
		namespace, kind, id.Name)
}

// ForeignFinalizers are those of an object's finalizers for which somebody else has to act than the garbage collector.
func ForeignFinalizers(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}
