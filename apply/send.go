package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// mode is whether a request only asks or does.
type mode bool

const (
	ask mode = true
	do  mode = false
)

func (m mode) dryRun() []string {
	if m == ask {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (a *Applier) client(m kube.Mapping, namespace string) (dynamic.ResourceInterface, error) {
	return a.cluster.ResourceAt(m, namespace)
}

// get reads an object; nil when there is none.
func (a *Applier) get(ctx context.Context, m kube.Mapping, id kube.ID) (*unstructured.Unstructured, error) {
	return a.getWhile(ctx, m, id, verify.Transient)
}

func (a *Applier) getWhile(ctx context.Context, m kube.Mapping, id kube.ID, again func(error) bool) (*unstructured.Unstructured, error) {
	client, err := a.client(m, id.Namespace)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = a.tryWhile(ctx, a.opts.RetryTimeout, again, func() error {
		out, err = client.Get(ctx, id.Name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.shared.of(out), nil
}

// apply sends obj by server-side apply, forced: what to do about others'
// fields has been decided before.
func (a *Applier) apply(ctx context.Context, t *target, obj *unstructured.Unstructured, condition precondition, m mode) (*unstructured.Unstructured, error) {
	body := shallow(obj)
	if condition.uid != "" {
		body.SetUID(condition.uid)
	}
	if condition.resourceVersion != "" {
		body.SetResourceVersion(condition.resourceVersion)
	}
	data, err := json.Marshal(body.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	force := true
	return a.patch(ctx, t, obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager:    Manager,
		FieldValidation: metav1.FieldValidationStrict,
		Force:           &force,
		DryRun:          m.dryRun(),
	})
}

// operation is one of a JSON patch. https://www.rfc-editor.org/rfc/rfc6902
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // which a removal doesn't read
}

// edit sends a JSON patch that fails with a conflict unless the live object is
// of version rv. It replaces the version instead of testing it: a failed test
// would be an invalid request, a wrong version is a conflict.
func (a *Applier) edit(ctx context.Context, t *target, rv string, ops []operation, m mode) (*unstructured.Unstructured, error) {
	ops = append(ops[:len(ops):len(ops)], operation{"replace", "/metadata/resourceVersion", rv})
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	return a.patch(ctx, t, t.id.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: Manager, DryRun: m.dryRun()})
}

func (a *Applier) patch(ctx context.Context, t *target, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions) (*unstructured.Unstructured, error) {
	client, err := a.client(t.mapping, t.id.Namespace)
	if err != nil {
		return nil, err
	}
	var out *unstructured.Unstructured
	err = a.tryFor(ctx, t, func() error {
		out, err = client.Patch(ctx, name, kind, data, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.shared.of(out), nil
}

// remove deletes the object that g describes and no other.
func (a *Applier) remove(ctx context.Context, m kube.Mapping, id kube.ID, condition precondition, how metav1.DeletionPropagation) error {
	client, err := a.client(m, id.Namespace)
	if err != nil {
		return err
	}
	conditions := &metav1.Preconditions{UID: &condition.uid}
	if condition.resourceVersion != "" {
		conditions.ResourceVersion = &condition.resourceVersion
	}
	return a.try(ctx, func() error {
		err := client.Delete(ctx, id.Name, metav1.DeleteOptions{PropagationPolicy: &how, Preconditions: conditions})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
