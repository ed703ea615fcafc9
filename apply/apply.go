// Package apply works out what has to change in the cluster, and changes it, by
// Kubernetes server-side apply.
//
// A [Request] says what the cluster should look like, and what earlier revisions
// of the release have declared. [Applier.Plan] reads, asks the server to dry-run,
// and answers with a [Plan]; it changes nothing. [Applier.Run] carries out the CRDs and
// then each of the plan's waves, [Applier.Prune] the deletions. A wave's Await lists what
// has to be ready before it; the caller waits for that. The caller also runs hooks, by
// [Applier.CreateHook] and [Applier.DeleteHook]. Nothing else in the package writes.
//
// On its way through a plan an object is
//
//   - resolved: which kind it is, in which namespace (resolver);
//   - put in order: what it waits for (package ordering);
//   - observed: read from the cluster, by as few requests as it takes (observer);
//   - normalised: what server-side apply takes (package manifest);
//   - predicted: who owns which field, and what an apply makes of the object (packages
//     predict and ownership);
//   - verified: what the server says to a dry run (package verify);
//   - decided: a [decide.Action] with its reason, and what becomes of each field (package decide), and the
//     writes that it takes in order.
//
// The rules decide by facts (facts.go), and say what else they want to know; one loop asks and goes on with the answers (ask.go).
// What can't be decided yet has a [Deferral]. That, and an object that has changed
// between the decision and the write, is decided again: see again.go.
package apply

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/managedfields"

	"deployer/apply/builtin"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// An Applier plans one operation on a release, and carries its plan out. Between calls it keeps what deciding
// again takes, the Cluster's caches, interned parts of objects and the remaining budget for retries.
// Its methods are called one after the other.
type Applier struct {
	*requester
	owner     provenance.Owner
	plan      *Plan     // the last one
	planning  *planning // of it; nil when it writes nothing
	builtin   func() (managedfields.TypeConverter, error)
	unawaited []Change // CRDs that Run has written; see AwaitKinds

	// OnAdoption is called, from any goroutine, before the first write to an object that may have to be given back. It has to
	// record Change.Provenance; if it fails, the object isn't written. Set it before Run; nil records nothing.
	OnAdoption func(context.Context, Change) error
}

// New returns an Applier; it does no network I/O.
func New(c *kube.Cluster, owner provenance.Owner, opts Options) *Applier {
	opts = opts.withDefaults()
	r := &requester{cluster: c, opts: opts, interner: kube.NewInterner()}
	r.budget.Store(32 * int64(opts.RetryTimeout))
	return &Applier{requester: r, owner: owner, builtin: sync.OnceValues(builtin.TypeConverter)}
}

// Check tells without a dry run whether the objects of a release can be applied: the cluster has their kinds, they fit the
// schemas of these, and with ownership none of them belongs to others. crds are of crds/, whose kinds count as served. It only
// reads the cluster, and needs no permission to write. The error is a *RejectedError that lists all that can't be applied.
func (a *Applier) Check(ctx context.Context, crds, objects []kube.Manifest, ownership bool) ([]Warning, error) {
	p, err := a.prepare(ctx, Request{CRDs: crds, Objects: objects})
	if err != nil {
		return nil, err
	}
	err = p.decideEach(ctx, p.mains, func(ctx context.Context, t *target) (Change, error) {
		if _, _, err := p.normalise(ctx, t); err != nil || !ownership || p.prerequisites.deferralOf(t) != nil {
			return Change{}, err
		}
		live, err := a.get(ctx, t.mapping, t.id)
		if err != nil || live == nil {
			return Change{}, objectError(t, "reading", err)
		}
		if p.claims.DecideExisting(p.existing(t, live)).Action == "" {
			err = p.notOurs(t, live)
		}
		return Change{}, err
	})
	if err != nil {
		return nil, err
	}
	for _, t := range p.mains {
		if t.rejected != nil {
			p.rejected = append(p.rejected, *t.rejected)
		}
	}
	if len(p.rejected) > 0 {
		return nil, &RejectedError{Rejections: sorted(p.rejected), When: WhenChecked}
	}
	return p.warnings.sorted(), nil
}
