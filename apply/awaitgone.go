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

	"deployer/internal/kube"
)

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
