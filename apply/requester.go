package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A requester makes the requests of one Applier and retries transient failures.
type requester struct {
	cluster  *kube.Cluster
	opts     Options
	interner *kube.Interner // what objects have in common
	// budget is how long all objects of a release together may still wait for transient failures, as a
	// time.Duration. Otherwise each of a thousand objects would wait for a failure that is in fact permanent.
	budget   atomic.Int64
	reported sync.Map // failures that were told of by Options.Warn
}

// A mode says how a request about an object is made, and when it is repeated.
type mode struct {
	isDryRun     bool
	isFinal      bool // a refusal isn't asked about again when a webhook doesn't answer
	quotaChanges bool // the run changes a ResourceQuota of the namespace, or has deleted what one counts: a controller has to notice
}

var asDryRun, asWrite = mode{isDryRun: true}, mode{}

func (m mode) dryRun() []string {
	if m.isDryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// get reads an object; nil when there is none.
func (r *requester) get(ctx context.Context, m kube.Mapping, id kube.ID) (*unstructured.Unstructured, error) {
	return r.getWhile(ctx, m, id, isTransient)
}

// getWhile is get that tries again while the error is worth repeating.
func (r *requester) getWhile(ctx context.Context, m kube.Mapping, id kube.ID, worthRepeating retriable) (*unstructured.Unstructured, error) {
	client := r.cluster.ResourceClient(m, id.Namespace)
	var out *unstructured.Unstructured
	err := r.tryUnlessAbsent(ctx, m, worthRepeating, func() (err error) {
		out, err = client.Get(ctx, id.Name, metav1.GetOptions{})
		return err
	})
	return r.interner.Intern(out), err
}

// tryUnlessAbsent is tryWhile for a request about one object. It is no error if the object certainly isn't there. An answer
// that leaves this open is repeated for discoveryLagWindow, unless the kind is served in another version:
// see kube.Cluster.ConfirmAbsent.
func (r *requester) tryUnlessAbsent(ctx context.Context, m kube.Mapping, worthRepeating retriable, f func() error) error {
	deadline := time.Now().Add(discoveryLagWindow)
	mayPass := func(said verify.Answer) bool {
		var unserved *kube.UnservedError
		return worthRepeating(said) || errors.As(said.Err, &unserved) && unserved.Mapping.Resource == m.Resource && time.Now().Before(deadline)
	}
	return r.tryWhile(ctx, mayPass, func() error {
		err := f()
		if apierrors.IsNotFound(err) {
			return r.cluster.ConfirmAbsent(ctx, m, err)
		}
		return err
	})
}

// apply sends obj by server-side apply with force: conflicts have been decided before.
func (r *requester) apply(ctx context.Context, t *target, obj *unstructured.Unstructured, condition precondition, m mode) (*unstructured.Unstructured, error) {
	body := kube.ShallowCopy(obj)
	if condition.uid != "" {
		body.SetUID(condition.uid)
	}
	if condition.resourceVersion != "" {
		body.SetResourceVersion(condition.resourceVersion)
	}
	data, err := applyBody(body.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	return r.patch(ctx, t, obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict, Force: new(true)}, m)
}

// sendJSONPatch sends a JSON patch that fails with a conflict unless the live object is
// of version rv. It replaces the version instead of testing it: a failed test
// would be an invalid request, a wrong version is a conflict. The server applies the patch before it
// compares versions, so a patch that doesn't fit another version, such as the removal of a field
// that is gone, is an invalid request too: then the version is read.
// k8s.io/apiserver/pkg/endpoints/handlers/patch.go, applyJSPatch
func (r *requester) sendJSONPatch(ctx context.Context, t *target, rv string, ops []patchOperation, m mode) (*unstructured.Unstructured, error) {
	ops = append(ops[:len(ops):len(ops)], patchOperation{"replace", "/metadata/resourceVersion", rv})
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	out, err := r.patch(ctx, t, t.id.Name, types.JSONPatchType, data, metav1.PatchOptions{}, m)
	if apierrors.IsInvalid(err) {
		live, readErr := r.get(ctx, t.mapping, t.id)
		if readErr == nil && (live == nil || live.GetResourceVersion() != rv) {
			return nil, apierrors.NewConflict(t.mapping.Resource.GroupResource(), t.id.Name, err)
		}
	}
	return out, err
}

func (r *requester) patch(ctx context.Context, t *target, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, m mode) (*unstructured.Unstructured, error) {
	opts.FieldManager, opts.DryRun = ownership.Manager, m.dryRun()
	tries := 0
	out, err := r.send(ctx, t, m, func(client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		tries++
		return client.Patch(ctx, name, kind, data, opts)
	})
	if tries > 1 && !m.isDryRun {
		t.progress.written = true // an earlier try may have been stored, and its answer lost
	}
	return r.interner.Intern(out), err
}

// send makes a request about the object of a target and retries transient failures.
func (r *requester) send(ctx context.Context, t *target, m mode, request func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	client := r.cluster.ResourceClient(t.mapping, t.id.Namespace)
	var out *unstructured.Unstructured
	err := r.tryFor(ctx, t, m, func() (err error) {
		out, err = request(client)
		return err
	})
	return out, err
}

// delete deletes an object if it fulfils the precondition.
func (r *requester) delete(ctx context.Context, m kube.Mapping, id kube.ID, condition precondition, how metav1.DeletionPropagation) error {
	client := r.cluster.ResourceClient(m, id.Namespace)
	conditions := &metav1.Preconditions{UID: &condition.uid}
	if condition.resourceVersion != "" {
		conditions.ResourceVersion = &condition.resourceVersion
	}
	return r.tryUnlessAbsent(ctx, m, isTransient, func() error {
		return client.Delete(ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: &how, Preconditions: conditions})
	})
}

// metaClient reads the metadata of objects of a kind.
func (r *requester) metaClient(m kube.Mapping, namespace string) metadata.ResourceInterface {
	client := r.cluster.Metadata().Resource(m.Resource)
	if !m.Namespaced {
		return client
	}
	return client.Namespace(namespace)
}

// getMeta reads an object's metadata; nil when there is none.
func (r *requester) getMeta(ctx context.Context, m kube.Mapping, id kube.ID) (*metav1.PartialObjectMetadata, error) {
	return r.getMetaWhile(ctx, m, id, isTransient)
}

func (r *requester) getMetaWhile(ctx context.Context, m kube.Mapping, id kube.ID, worthRepeating retriable) (*metav1.PartialObjectMetadata, error) {
	client := r.metaClient(m, id.Namespace)
	var out *metav1.PartialObjectMetadata
	err := r.tryUnlessAbsent(ctx, m, worthRepeating, func() (err error) {
		out, err = client.Get(ctx, id.Name, metav1.GetOptions{})
		return err
	})
	return out, err
}

// list reads all objects of a collection.
func (r *requester) list(ctx context.Context, at collection) ([]unstructured.Unstructured, error) {
	client := r.cluster.ResourceClient(at.mapping, at.namespace)
	list, err := answerTo(ctx, r, isTransient, func() (*unstructured.UnstructuredList, error) { return client.List(ctx, metav1.ListOptions{}) })
	if err != nil {
		return nil, listError(at, err)
	}
	return list.Items, nil
}

// put replaces a whole object. The body has the observed resourceVersion, so the answer
// is a conflict if the object has changed.
func (r *requester) put(ctx context.Context, t *target, obj *unstructured.Unstructured, m mode) (*unstructured.Unstructured, error) {
	opts := metav1.UpdateOptions{FieldManager: ownership.Manager, FieldValidation: metav1.FieldValidationIgnore, DryRun: m.dryRun()}
	return r.send(ctx, t, m, func(client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return client.Update(ctx, obj, opts)
	})
}

// post creates an object by a plain POST, which never updates one.
func (r *requester) post(ctx context.Context, t *target, obj *unstructured.Unstructured, m mode) (*unstructured.Unstructured, error) {
	opts := metav1.CreateOptions{FieldManager: ownership.Manager, FieldValidation: metav1.FieldValidationIgnore, DryRun: m.dryRun()}
	return r.send(ctx, t, m, func(client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return client.Create(ctx, obj, opts)
	})
}

func listError(at collection, err error) error {
	where := "the cluster"
	if at.mapping.Namespaced {
		where = "namespace " + at.namespace
	}
	return fmt.Errorf("listing %s in %s: %w", at.mapping.Resource.Resource, where, err)
}

// checkBefore checks of a deferred creation what can be checked now: its permissions, and what the server says about it in another
// namespace.
func (p *planning) checkBefore(t *target, f *facts, c Change) (Change, error) {
	c.needs = append(c.needs, neededInNewNamespace(t, c.Deferral)...)
	valid, err := f.isValid.get(func(ctx context.Context) (bool, error) { return p.a.validateElsewhere(ctx, t, c.Desired, c.Deferral) })
	if valid {
		c.Unverified = c.Deferral.Reason + "; validated in namespace " + metav1.NamespaceDefault + " instead"
	}
	return c, err
}

// validateElsewhere asks the server to validate an object whose namespace doesn't exist yet, as if
// it were one of the namespace default, which can't be deleted
// (k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle). The error is a *Rejection if the
// validation fails; valid is false if nothing was learnt. What webhooks, policies, quotas and
// permissions say about one namespace needn't be true of another one, so it is ignored. Pods aren't
// asked about, because admission completes them by what their namespace has.
func (r *requester) validateElsewhere(ctx context.Context, t *target, desired *unstructured.Unstructured, d *Deferral) (valid bool, err error) {
	if r.opts.Gate == GateOff || len(d.Until) != 1 || !d.waitsFor(namespaceID(t.id.Namespace)) || t.id.GroupKind() == kube.PodKind {
		return false, nil
	}
	ctx = kube.WithWarnings(ctx, func(string) bool { return true }) // they may be about that namespace
	elsewhere := kube.ShallowCopy(desired)
	elsewhere.SetNamespace(metav1.NamespaceDefault)
	_, err = r.cluster.ResourceClient(t.mapping, metav1.NamespaceDefault).Create(ctx, elsewhere, metav1.CreateOptions{
		FieldManager: ownership.Manager, FieldValidation: metav1.FieldValidationIgnore, DryRun: asDryRun.dryRun(),
	})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case verify.Read(err).FailsValidation():
		return false, t.reject(verify.AsServerError(t.obj, err))
	}
	return err == nil || kube.IsAlreadyExists(err), nil // the name is compared after the validation
}

// forEach is kube.ForEachUntil for as many requests at once as may be made.
func (r *requester) forEach(ctx context.Context, n int, f func(i int) error) error {
	return kube.ForEachUntil(ctx, n, r.cluster.RequestsAtOnce, f)
}

// A memo calls a function once per key and keeps its result. Different keys don't block
// each other. An error isn't kept: the next caller tries again. The zero value is ready
// to use.
type memo[K comparable, V any] struct {
	found sync.Map // of *finding[V] by K
}

type finding[V any] struct {
	mu    sync.Mutex
	known bool
	value V
}

func (m *memo[K, V]) get(key K, ask func() (V, error)) (V, error) {
	known, _ := m.found.LoadOrStore(key, &finding[V]{})
	f := known.(*finding[V])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.value, nil
	}
	value, err := ask()
	if err == nil {
		f.value, f.known = value, true
	}
	return value, err
}

// forget makes the memo call its function again.
func (m *memo[K, V]) forget() { m.found.Clear() }
