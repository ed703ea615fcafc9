package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"deployer/apply/ordering"
	"deployer/internal/kube"
)

// This file lets what takes permissions from the account that deployer runs as come at the very end.

// ourselves is the account that deployer runs as; nobody where the API server can't or won't say.
func (p *planning) ourselves(ctx context.Context) (authenticationv1.UserInfo, error) {
	us, err := p.permissions.account(ctx)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return us, fmt.Errorf("asking which account this is: %w", err)
	}
	return us, nil
}

// roleOf is the role that a binding grants.
func roleOf(binding *unstructured.Unstructured) kube.ID {
	ref, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
	id := kube.ID{Group: rbacGroup, Kind: ref["kind"], Name: ref["name"]}
	if id.Kind == "Role" {
		id.Namespace = binding.GetNamespace()
	}
	return id
}

// takeAccess marks the updates by which the release takes permissions from the account that deployer runs as. What another
// object waits for keeps its place, as it may also grant something.
func (p *planning) takeAccess(ctx context.Context, o *releaseOrder, orphans []Change) error {
	var found []*target
	for i, t := range o.targets {
		isAwaited := slices.ContainsFunc(o.nodes, func(n ordering.Node) bool {
			return slices.ContainsFunc(n.Edges, func(e ordering.Edge) bool { return e.To == i })
		})
		if c := t.decided; c != nil && c.Action == Update && c.Live != nil && p.settled[t.id] == nil && !isAwaited && (losesRule(c.Live, c.willBe()) || isBinding(t.id)) {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		return nil
	}
	us, err := p.ourselves(ctx)
	if err != nil {
		return err
	}
	isOurs := map[kube.ID]bool{}
	note := func(binding *unstructured.Unstructured) {
		if binding != nil && bindsAccount(us, binding) {
			isOurs[roleOf(binding)] = true
		}
	}
	for _, t := range o.targets {
		if isBinding(t.id) {
			note(t.obj)
			note(p.asItIs(t.id, t.decided))
		}
	}
	for _, c := range orphans {
		if c.orphan != nil && isBinding(c.ID) {
			note(c.orphan.Declared)
		}
	}
	for _, t := range found {
		c := t.decided
		if isOurs[t.id] || isBinding(t.id) && bindsAccount(us, c.Live) && !bindsAccount(us, c.willBe()) {
			c.takesAccess = true
			c.Reason = strings.TrimPrefix(c.Reason+"; "+atVeryEnd, "; ")
		}
	}
	return nil
}

// atVeryEnd is the reason of changes that come when all else is done and recorded.
const atVeryEnd = "at the very end: the run acts by it"

// willBe returns an object as the change makes it.
func (c *Change) willBe() *unstructured.Unstructured { return cmp.Or(c.Predicted, c.Desired) }

// losesRule reports whether a role loses a permission.
func losesRule(old, next *unstructured.Unstructured) bool {
	was, is := rulesOf(old), rulesOf(next)
	has := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	isGranted := func(verb, group, resource string, names []string) bool {
		return slices.ContainsFunc(is, func(r rbacv1.PolicyRule) bool {
			return has(r.Verbs, verb) && has(r.APIGroups, group) && has(r.Resources, resource) &&
				(len(r.ResourceNames) == 0 || len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(r.ResourceNames, name) }))
		})
	}
	for _, r := range was {
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				if slices.ContainsFunc(r.Resources, func(resource string) bool { return !isGranted(verb, group, resource, r.ResourceNames) }) {
					return true
				}
			}
		}
	}
	return false
}

// rulesOf are the rules of a role; none of other objects.
func rulesOf(obj *unstructured.Unstructured) []rbacv1.PolicyRule {
	var role rbacv1.ClusterRole
	if obj == nil || !strings.HasSuffix(obj.GetKind(), "Role") || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role) != nil {
		return nil
	}
	return role.Rules
}

// splitOwnAccess splits off what goes at the very end: the bindings by which this very run acts, with the roles and
// accounts that they name.
func (p *planning) splitOwnAccess(ctx context.Context, changes []Change) (others, own []Change, err error) {
	isOurs := map[kube.ID]bool{}
	for _, c := range changes {
		if c.Action != Delete || len(c.writes) == 0 || !isBinding(c.ID) {
			continue
		}
		binding := c.orphan.Declared
		if binding == nil { // a run has ended before it could delete it
			if binding, err = p.a.get(ctx, c.orphan.mapping, c.ID); err != nil || binding == nil {
				continue // it is deleted with the others
			}
		}
		us, err := p.ourselves(ctx)
		if err != nil {
			return nil, nil, err
		}
		if !bindsAccount(us, binding) {
			continue
		}
		isOurs[c.ID], isOurs[roleOf(binding)] = true, true
		if account, ok := strings.CutPrefix(us.Username, "system:serviceaccount:"); ok {
			namespace, name, _ := strings.Cut(account, ":")
			isOurs[kube.ID{Kind: "ServiceAccount", Namespace: namespace, Name: name}] = true
		}
	}
	if len(isOurs) == 0 {
		return changes, nil, nil
	}
	for _, c := range changes {
		if c.Action == Delete && isOurs[c.ID] {
			c.deletion = ordering.Deletion{Node: c.deletion.Node} // at once: without one of them the others can't be deleted any more
			c.Reason += "; " + atVeryEnd
			c.RevisitNextRelease = true // the release is recorded by then
			own = append(own, c)
			continue
		}
		c.deletion.WaitsForGone = slices.DeleteFunc(slices.Clone(c.deletion.WaitsForGone), func(id kube.ID) bool { return isOurs[id] })
		others = append(others, c)
	}
	return others, own, nil
}
