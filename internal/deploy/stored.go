package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/decide"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/track/finding"
)

// checkStoredHooks refuses to run hooks of a record that are cluster-scoped or in another
// namespace, unless that is allowed: anybody who may write Secrets in the namespace of the release can write such a record, and
// would get the rights of the account that uninstalls, rolls back or tests. An undo has no user to ask: it warns and leaves them
// out, except those that the failed run's chart has too.
func (d *Deployer) checkStoredHooks(ctx context.Context, op *Operation) error {
	if verbs[op.Verb].renders || d.Settings.AllowStoredHooks {
		return nil
	}
	var refused []*helmrelease.Hook
	var objects []string // of these, and why each counts
	for _, h := range slices.Concat(op.Hooks.Before, op.Hooks.After) {
		reaches, err := d.reachOf(ctx, h)
		if err != nil {
			return err
		}
		if len(reaches) > 0 && !op.undoes.rendersHook(h) {
			refused, objects = append(refused, h), append(objects, reaches...)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	slices.Sort(objects)
	revision, without := cmp.Or(op.Target, op.Next.Version), "to run no hooks: --no-hooks"
	if op.Verb == Test {
		without = "to leave one out: --filter '!name=TEST'"
	}
	err := fmt.Errorf("revision %d of release %s has hooks that reach outside of namespace %s, which only the record contains:\n  %s",
		revision, op.Release, op.Namespace, strings.Join(slices.Compact(objects), "\n  "))
	if op.undoes == nil {
		return refusal(program.WithHint(err, fmt.Sprintf("to look at them: %s get hooks %s -n %s --revision %d; to run them: --allow-stored-hooks; %s",
			program.OnCluster, op.Release, op.Namespace, revision, without)))
	}
	isRefused := func(h *helmrelease.Hook) bool { return slices.Contains(refused, h) }
	op.Hooks = Hooks{Before: slices.DeleteFunc(op.Hooks.Before, isRefused), After: slices.DeleteFunc(op.Hooks.After, isRefused)}
	d.warn(fmt.Sprintf("%v\nThey are not run; --allow-stored-hooks runs them", err))
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

// checkStoredObjects refuses a rollback that creates cluster-scoped objects, or objects in other namespaces, that neither exist
// nor are in another revision, for the same reason as checkStoredHooks. An undo may bring back what the failed run was going to delete.
func (d *Deployer) checkStoredObjects(ctx context.Context, op *Operation) error {
	if op.Verb != Rollback || d.Settings.AllowStoredHooks {
		return nil
	}
	var created []kube.ID
	for c := range op.Plan.Changes() {
		if c.Action == decide.Create && c.ID.Namespace != d.Namespace && !op.undoes.prunes(c.ID) {
			created = append(created, c.ID)
		}
	}
	if len(created) == 0 {
		return nil
	}
	var parser chart.Parser
	op.history.LoadRemaining(ctx)
	for _, s := range op.history.Revisions {
		if s.Revision == op.Target {
			continue
		}
		record, err := op.history.Load(ctx, s.Revision)
		var manifests []kube.Manifest
		if err == nil {
			manifests, _ = parser.Parse(record.Manifest) // what can't be read proves nothing
		}
		for _, m := range manifests {
			created = slices.DeleteFunc(created, func(id kube.ID) bool {
				named := kube.IDOf(m.Object)
				return named == id || id.Namespace == "" && named.GroupKind() == id.GroupKind() && named.Name == id.Name
			})
		}
	}
	if len(created) == 0 {
		return nil
	}
	names := slices.Sorted(slices.Values(finding.IDs(created).Names()))
	err := fmt.Errorf("revision %d of release %s would create objects outside of namespace %s that no other revision has:\n  %s",
		op.Target, op.Release, d.Namespace, strings.Join(names, "\n  "))
	return refusal(program.WithHint(err, fmt.Sprintf("to look at them: %s get manifest %s -n %s --revision %d; to create them: --allow-stored-hooks", program.OnCluster, op.Release, d.Namespace, op.Target)))
}
