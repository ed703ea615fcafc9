package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
)

// A StoredHooksError says that a record has hooks that reach outside the release's
// namespace. Anybody who may write Secrets in that namespace can write such a record, and
// would get the rights of the account that uninstalls, rolls back or tests.
type StoredHooksError struct {
	Release, Namespace string
	Verb               Verb
	Revision           int
	Hooks              []string // each object, and why it counts
}

func (e *StoredHooksError) Error() string {
	return fmt.Sprintf("revision %d of release %s has hooks that reach outside of namespace %s, which only the record contains:\n  %s",
		e.Revision, e.Release, e.Namespace, strings.Join(e.Hooks, "\n  "))
}

// Hint says what to do about it.
func (e *StoredHooksError) Hint() string {
	without := "to run no hooks: --no-hooks"
	if e.Verb == Test {
		without = "to leave one out: --filter '!name=TEST'"
	}
	return fmt.Sprintf("to look at them: %s get hooks %s -n %s --revision %d; to run them: --allow-stored-hooks; %s",
		program.Name, e.Release, e.Namespace, e.Revision, without)
}

// checkStoredHooks refuses to run hooks of a record that are cluster-scoped or in another
// namespace, unless that is allowed. An undo has no user to ask: it warns and leaves them
// out, except those that the failed run's chart has too.
func (d *Deployer) checkStoredHooks(ctx context.Context, op *Operation) error {
	if op.Verb != Rollback && op.Verb != Uninstall && op.Verb != Test || d.Settings.AllowStoredHooks {
		return nil
	}
	refused := &StoredHooksError{Verb: op.Verb, Release: op.Release, Namespace: op.Namespace, Revision: op.Next.Version}
	if op.Verb == Rollback {
		refused.Revision = op.Target
	}
	var refusedHooks []*helmrelease.Hook
	for _, h := range slices.Concat(op.Hooks.Before, op.Hooks.After) {
		reaches, err := d.reachOf(ctx, h)
		if err != nil {
			return err
		}
		if len(reaches) > 0 && !op.undoes.hasHook(h) {
			refused.Hooks, refusedHooks = append(refused.Hooks, reaches...), append(refusedHooks, h)
		}
	}
	if len(refused.Hooks) == 0 {
		return nil
	}
	slices.Sort(refused.Hooks)
	refused.Hooks = slices.Compact(refused.Hooks)
	if op.undoes == nil {
		return refused
	}
	isRefused := func(h *helmrelease.Hook) bool { return slices.Contains(refusedHooks, h) }
	op.Hooks = Hooks{Before: slices.DeleteFunc(op.Hooks.Before, isRefused), After: slices.DeleteFunc(op.Hooks.After, isRefused)}
	d.warn(fmt.Sprintf("%v\nThey are not run; --allow-stored-hooks runs them", refused))
	return nil
}

// reachOf lists the objects of a hook that are outside of the release's namespace. What
// can't be parsed can't be run either, which is told elsewhere.
func (d *Deployer) reachOf(ctx context.Context, h *helmrelease.Hook) ([]string, error) {
	parsed, err := chart.ParseHook(h)
	if err != nil {
		return nil, nil
	}
	var out []string
	for _, m := range parsed {
		why, err := d.whyOutside(ctx, m.Object)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, kube.IDOf(m.Object).String()+": "+why)
		}
	}
	return out, nil
}

// whyOutside says why an object is not in the release's namespace; empty when it is.
func (d *Deployer) whyOutside(ctx context.Context, obj *unstructured.Unstructured) (string, error) {
	mapping, err := d.Cluster.Mapping(ctx, obj.GroupVersionKind(), true)
	stated := obj.GetNamespace()
	switch {
	case errors.As(err, new(*kube.NoKindMatchError)) || errors.As(err, new(*kube.UnknownKindsError)):
		return "the cluster doesn't have its kind, which may be cluster-scoped", nil
	case err != nil:
		return "", err
	case !mapping.Namespaced:
		return "is cluster-scoped", nil
	case stated != "" && stated != d.Namespace:
		return "is in another namespace", nil
	}
	return "", nil
}
