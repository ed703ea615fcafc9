package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"deployer/apply"
	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// validateNamespace returns an error unless name can be a namespace's name.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names
func validateNamespace(name string) error {
	if problems := validation.ValidateNamespaceName(name, false); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", name, strings.Join(problems, ", "))
	}
	return nil
}

// createNamespace creates the release's namespace if the operation needs it.
func (l *lifecycle) createNamespace(ctx context.Context) error {
	if l.op == nil || !l.op.NewNamespace {
		return nil
	}
	// The label is Helm's. (helm.sh/helm/v3/pkg/action/install.go)
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace, Labels: map[string]string{"name": l.Namespace}}}
	var made *corev1.Namespace
	var err error
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		made, err = l.Cluster.Typed().CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{FieldManager: ownership.Manager})
		said := verify.Read(err)
		if mayPass := said.IsTransient || said.IsUnexplained; !mayPass || pause > 2*time.Second || kube.Sleep(ctx, pause) != nil {
			break
		}
	}
	switch {
	case kube.IsAlreadyExists(err):
		// Somebody else has created it: decide again, for an existing namespace.
		l.op = nil
	case err != nil:
		return fmt.Errorf("creating Namespace/%s: %w", l.Namespace, err)
	default:
		l.createdNamespace = made
	}
	return nil
}

// namespaceID identifies the release's namespace.
func (o *Operation) namespaceID() kube.ID {
	return kube.ID{Kind: kube.NamespaceKind.Kind, Name: o.Namespace}
}

// redecideInNewNamespace decides again about what had to wait for the namespace that was just
// created. The rest of the decision holds.
func (l *lifecycle) redecideInNewNamespace(ctx context.Context) (err error) {
	ctx, done := LimitStep(ctx, StepDecide, l.Settings.Timeout)
	defer func() { err = done(err) }()
	l.op.NewNamespace = false
	if err := l.awaitDefaultAccount(ctx, l.op); err != nil {
		return err
	}
	err = l.op.applier.RedecideDeferred(ctx)
	if rejected := (*apply.RejectedError)(nil); errors.As(err, &rejected) {
		rejected.When = apply.BeforeChanges // nothing was changed but the namespace, which is deleted again
	}
	if err != nil {
		return err
	}
	return l.op.CheckPermissions()
}

// removeCreatedNamespace deletes the namespace that was created for a release without any
// record, if it is empty: only the very object that was created, if it is unchanged. It
// warns if the namespace stays.
func (l *lifecycle) removeCreatedNamespace(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	// All kinds are listed, so the server's warnings about deprecated kinds are ignored.
	ctx = kube.WithWarnings(ctx, func(string) bool { return true })
	err := l.deleteNamespaceIfEmpty(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		l.warn(fmt.Sprintf("Namespace/%s was created for this release, and stays: %v", l.Namespace, err))
	}
}

func (l *lifecycle) deleteNamespaceIfEmpty(ctx context.Context) error {
	typed := l.Cluster.Typed()
	lists, err := discovery.ToDiscoveryInterfaceWithContext(typed.Discovery()).ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil {
		return err
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			// Events don't count: the cluster writes them. Kinds that can't be created
			// aren't stored.
			if r.Name != "events" && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "create") {
				all = append(all, gv.WithResource(r.Name))
			}
		}
	}
	if err := l.confirmEmpty(ctx, all); err != nil {
		return err
	}
	// At last list what another run creates first. A run that comes later has no record
	// yet, and can't create one.
	if err := l.confirmEmpty(ctx, []schema.GroupVersionResource{
		{Version: "v1", Resource: "secrets"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	}); err != nil {
		return err
	}
	uid, version := l.createdNamespace.UID, l.createdNamespace.ResourceVersion
	return typed.CoreV1().Namespaces().Delete(ctx, l.createdNamespace.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}

// confirmEmpty returns an error if the namespace has objects of these kinds, besides what the cluster puts
// into each namespace, or if they can't be listed.
func (l *lifecycle) confirmEmpty(ctx context.Context, kinds []schema.GroupVersionResource) error {
	return kube.ForEach(len(kinds), kube.ParallelRequests, func(i int) error {
		list, err := l.Cluster.Metadata().Resource(kinds[i]).Namespace(l.Namespace).List(ctx, metav1.ListOptions{Limit: 10})
		if apierrors.IsNotFound(err) {
			return nil // the definition of the kind was deleted meanwhile, and its objects with it
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", kinds[i].GroupResource(), err)
		}
		for _, item := range list.Items {
			if !slices.Contains(inEveryNamespace, kinds[i].Resource+"/"+item.Name) {
				return fmt.Errorf("another client created %s/%s in it", kinds[i].GroupResource(), item.Name)
			}
		}
		return nil
	})
}

// inEveryNamespace is what controllers of the cluster put into each namespace.
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#cluster-trust-bundles
var inEveryNamespace = []string{"serviceaccounts/" + defaultAccount, "configmaps/kube-root-ca.crt"}

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// defaultAccountTimeout limits the wait for that account. It takes milliseconds normally,
// and seconds if thirty namespaces are new. If a cluster creates none, the API server
// says so when pods are created.
const defaultAccountTimeout = 10 * time.Second

// awaitDefaultAccount waits until the default service account exists, because the
// namespace of an install may be new, whoever has created it. The cluster creates the
// account soon after a namespace, and admits no pods before
// (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount). Without permission to read it,
// nothing is waited for.
func (d *Deployer) awaitDefaultAccount(ctx context.Context, op *Operation) error {
	if op.Verb != Install || op.NewNamespace {
		return nil
	}
	accounts := d.Cluster.Typed().CoreV1().ServiceAccounts(d.Namespace)
	if _, err := accounts.Get(ctx, defaultAccount, metav1.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
		return ctx.Err() // other problems show when pods are created
	}
	within, cancel := context.WithTimeout(ctx, defaultAccountTimeout)
	defer cancel()
	// A watch without a resourceVersion begins with the existing objects.
	watch, err := accounts.Watch(within, metav1.ListOptions{FieldSelector: "metadata.name=" + defaultAccount})
	if err != nil {
		return ctx.Err()
	}
	defer watch.Stop()
	select {
	case <-watch.ResultChan(): // it is there, or nothing more will be told
	case <-within.Done():
	}
	return ctx.Err()
}

func (d *Deployer) isNamespaceMissing(ctx context.Context, create bool) (bool, error) {
	_, err := d.Cluster.Typed().CoreV1().Namespaces().Get(ctx, d.Namespace, metav1.GetOptions{})
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return false, nil // the account may deploy into it without permission to read it
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading Namespace/%s: %w", d.Namespace, err)
	case create:
		return true, nil
	}
	return false, &NoNamespaceError{Namespace: d.Namespace}
}
