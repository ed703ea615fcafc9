package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/release"
)

// Held is the right to change a release.
type Held struct {
	*release.Lock

	// Stale says that the operation has to be decided anew: the release or its
	// namespace is not what it was when the operation was decided.
	Stale bool

	// Settled is what dead runs had left unfinished, and is recorded as failed now.
	Settled []release.Settled

	created *corev1.Namespace // that we made for the release; nil when it was there
}

// grace is the least age at which what another tool left pending counts as dead:
// its --timeout isn't known, and applies to each of its waits.
const grace = time.Hour

// Lock takes the right to change op's release, waiting at most timeout for
// another run, and settles what a dead one has left. It creates the namespace
// if op needs it.
func (d *Deployer) Lock(ctx context.Context, op *Operation, timeout time.Duration, warn func(string)) (*Held, error) {
	if op.Plan != nil {
		// Whoever may not carry it out shall not leave a lock or a namespace.
		if err := op.Plan.Permitted(); err != nil {
			return nil, err
		}
	}
	// A namespace or lock that a signal lets us forget while it is made would stay.
	ctx = kube.Guarded(ctx, func(context.Context) (func(), error) { return func() {}, nil })
	created, err := d.createNamespace(ctx, op)
	if err != nil {
		return nil, err
	}
	held := &Held{created: created, Stale: created != nil}
	held.Lock, err = d.Releases.Lock(ctx, op.Release, release.LockOptions{
		Operation: describe(op), Timeout: timeout, Grace: max(grace, d.Settings.Timeout), Warn: warn,
		TakeoverPending: d.Settings.TakeoverPending,
		Waiting:         func(h release.Holder) { warn(fmt.Sprintf("waiting for another run on release %s: %s", op.Release, h)) },
	})
	if err != nil {
		d.Abandon(ctx, held)
		return nil, err
	}
	history, settled, err := held.Settle(ctx)
	if err != nil {
		err = errors.Join(err, held.Unlock(ctx))
		d.Abandon(ctx, held)
		return nil, err
	}
	for _, s := range settled {
		warn(s.String() + "; it is recorded as failed now")
	}
	held.Settled = settled
	held.Stale = held.Stale || len(settled) > 0 || revisionOf(history.Latest()) != revisionOf(op.Base)
	return held, nil
}

func describe(op *Operation) string {
	if op.Verb == Uninstall || op.Next == nil {
		return string(op.Verb)
	}
	if op.Verb == Test {
		return fmt.Sprintf("test of revision %d", op.Next.Version)
	}
	return fmt.Sprintf("%s to revision %d", op.Verb, op.Next.Version)
}

// revisionOf is the number of a revision; 0 for none.
func revisionOf(s *release.Summary) int {
	if s == nil {
		return 0
	}
	return s.Revision
}

// createNamespace makes the release's namespace when the operation needs it.
// It returns nil when it was there, made by somebody else by now included.
func (d *Deployer) createNamespace(ctx context.Context, op *Operation) (*corev1.Namespace, error) {
	if !op.NewNamespace {
		return nil, nil
	}
	typed, err := d.Cluster.Typed()
	if err != nil {
		return nil, err
	}
	// The label is Helm's. (helm.sh/helm/v3/pkg/action/install.go)
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: op.Namespace, Labels: map[string]string{"name": op.Namespace}}}
	created, err := typed.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{FieldManager: apply.Manager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("creating Namespace/%s: %w", op.Namespace, err)
	}
	return created, nil
}

// Abandon undoes what Lock did for an operation that then was rejected before
// its first change: a namespace made for it goes again. It does what it can.
func (d *Deployer) Abandon(ctx context.Context, held *Held) {
	if held.created == nil {
		return
	}
	typed, err := d.Cluster.Typed()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	// Only the very object we made, and only as we made it.
	uid, version := held.created.UID, held.created.ResourceVersion
	_ = typed.CoreV1().Namespaces().Delete(ctx, held.created.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}

// Recover settles what dead runs have left of a release and changes nothing
// else. The error is a *release.NotFoundError when there is no such release.
func (d *Deployer) Recover(ctx context.Context, name string, timeout time.Duration, warn func(string)) ([]release.Settled, error) {
	history, err := d.existing(ctx, name)
	if errors.As(err, new(*release.NotFoundError)) {
		err = errors.Join(err, d.Releases.ClearLock(ctx, name))
	}
	if err != nil {
		return nil, err
	}
	op := &Operation{Release: name, Namespace: d.Namespace, Verb: "recover", Base: history.Latest()}
	held, err := d.Lock(ctx, op, timeout, func(string) {})
	if err != nil {
		return nil, err
	}
	if err := held.Unlock(ctx); err != nil {
		warn(err.Error())
	}
	return held.Settled, nil
}
