package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// definitionsIn are the CRDs among changes that were written.
func definitionsIn(changes []Change, errs []error) []Change {
	var crds []Change
	for i, c := range changes {
		if isCRD(c.ID) && errs[i] == nil && (c.Action == Create || c.Action == Update) {
			crds = append(crds, c)
		}
	}
	return crds
}

// awaitKinds waits until the kinds of CRDs just written are served: accepted
// and established, listed by discovery, and answering.
func (a *Applier) awaitKinds(ctx context.Context, crds []Change) error {
	if len(crds) == 0 {
		return nil
	}
	defer a.cluster.ForgetKinds()
	ctx, cancel := context.WithTimeout(ctx, a.opts.RetryTimeout)
	defer cancel()
	return a.each(ctx, len(crds), func(i int) error {
		if err := a.awaitKind(ctx, crds[i]); err != nil {
			return &ObjectError{ID: crds[i].ID, Source: crds[i].Source, Doing: "waiting for the kind of", Err: err}
		}
		return nil
	})
}

func (a *Applier) awaitKind(ctx context.Context, c Change) error {
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		crd, err := a.get(ctx, crdMapping, c.ID)
		switch {
		case err != nil:
			return err
		case crd == nil:
			return errors.New("it has been deleted")
		}
		missing := notServed(crd)
		if missing == "" && a.answers(ctx, crd) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", cmp.Or(missing, "the API server doesn't answer for it yet"), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// notServed says what a CRD lacks to be served; nothing when it is.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func notServed(crd *unstructured.Unstructured) string {
	for _, want := range []string{"NamesAccepted", "Established"} {
		if ok, why := condition(crd, want); !ok {
			return strings.TrimSpace(fmt.Sprintf("condition %s is not true %s", want, why))
		}
	}
	return ""
}

func condition(obj *unstructured.Unstructured, kind string) (bool, string) {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if ok && c["type"] == kind {
			message, _ := c["message"].(string)
			return c["status"] == "True", message
		}
	}
	return false, ""
}

// answers asks for the kind's objects. Until every handler is installed the
// server says 404.
func (a *Applier) answers(ctx context.Context, crd *unstructured.Unstructured) bool {
	for gvk, m := range kindsDefinedBy([]*unstructured.Unstructured{crd}) {
		client, err := a.cluster.Metadata()
		if err != nil {
			return true // the next request will say so
		}
		_, err = client.Resource(m.Resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false
		}
		a.cluster.ForgetKinds()
		_, err = a.cluster.Mapping(ctx, gvk, false)
		var unknown *kube.NoKindMatchError
		if errors.As(err, &unknown) {
			return false
		}
	}
	return true
}
