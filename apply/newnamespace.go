package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// checkedBefore is the verdict of a deferred creation, of which is checked what can be now: its permissions, and what the
// server says about it in another namespace.
func (p *planning) checkedBefore(t *target, c Change) verdict {
	return ask(func(ctx context.Context) (Change, error) {
		if err := p.permissions.denyUnlessAllowedInNewNamespace(ctx, &c, t); err != nil || c.denied != nil {
			return c, err
		}
		valid, err := p.a.validateElsewhere(ctx, t, c.Desired, c.Deferral)
		if valid {
			c.Unverified = c.Deferral.Reason + "; validated in namespace " + metav1.NamespaceDefault + " instead"
		}
		return c, err
	}, decided)
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
	client, err := r.cluster.ResourceClient(t.mapping, metav1.NamespaceDefault)
	if err != nil {
		return false, err
	}
	ctx = kube.WithWarnings(ctx, func(string) bool { return true }) // they may be about that namespace
	elsewhere := kube.ShallowCopy(desired)
	elsewhere.SetNamespace(metav1.NamespaceDefault)
	_, err = client.Create(ctx, elsewhere, metav1.CreateOptions{
		FieldManager: Manager, FieldValidation: metav1.FieldValidationIgnore, DryRun: asDryRun.dryRun(),
	})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case verify.FailsValidation(err):
		return false, t.reject(verify.AsServerError(t.obj, err))
	}
	return err == nil || kube.IsAlreadyExists(err), nil // the name is compared after the validation
}
