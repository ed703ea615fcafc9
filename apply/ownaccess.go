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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ordering"
	"deployer/internal/kube"
)

// This file knows the account that deployer runs as: what takes permissions from it comes at the very end, and nothing that grants them
// is recreated.

// roleOf is the role that a binding grants.
func roleOf(binding *unstructured.Unstructured) kube.ID {
	ref, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
	id := kube.ID{Group: rbacGroup, Kind: ref["kind"], Name: ref["name"]}
	if id.Kind == "Role" {
		id.Namespace = binding.GetNamespace()
	}
	return id
}

// ownAccess is what the run acts by: the bindings of the release for the account that deployer runs as, their roles, and the
// account; nothing where the API server can't or won't say which that is.
func (p *planning) ownAccess(ctx context.Context, orphans []Change) (us authenticationv1.UserInfo, isOurs map[kube.ID]bool, err error) {
	us, err = p.permissions.account(ctx)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return us, nil, fmt.Errorf("asking which account this is: %w", err)
	}
	isOurs = map[kube.ID]bool{}
	note := func(id kube.ID, binding *unstructured.Unstructured) {
		if binding != nil && bindsAccount(us, binding) {
			isOurs[id], isOurs[roleOf(binding)] = true, true
		}
	}
	for id, t := range p.targetsByID {
		if isBinding(id) {
			note(id, t.obj)
			note(id, p.asItIs(id, t.decided))
		}
	}
	for _, c := range orphans {
		if c.Action != decide.Delete || len(c.writes) == 0 || !isBinding(c.ID) {
			continue
		}
		binding := c.orphan.Declared
		if binding == nil { // a run has ended before it could delete it
			binding, _ = p.a.get(ctx, c.orphan.mapping, c.ID) // without it, it is deleted with the others
		}
		note(c.ID, binding)
	}
	if account, ok := strings.CutPrefix(us.Username, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		isOurs[kube.ID{Kind: "ServiceAccount", Namespace: namespace, Name: name}] = true
	}
	return us, isOurs, nil
}

// takeAccess marks the updates by which the release takes permissions from the account that deployer runs as. What another
// object waits for keeps its place, as it may also grant something.
func (o *releaseOrder) takeAccess(ctx context.Context, orphans []Change) error {
	var found []*target
	for i, t := range o.targets {
		c := t.decided
		if c == nil || c.Action != decide.Update || c.Live == nil || o.p.settled[t.id] != nil || !isBinding(t.id) && !losesRule(c.Live, c.willBe()) {
			continue
		}
		isAwaited := slices.ContainsFunc(o.nodes, func(n ordering.Node) bool {
			return slices.ContainsFunc(n.Edges, func(e ordering.Edge) bool { return e.To == i })
		})
		if !isAwaited {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		return nil
	}
	us, isOurs, err := o.p.ownAccess(ctx, orphans)
	for _, t := range found {
		if c := t.decided; isOurs[t.id] && !(isBinding(t.id) && bindsAccount(us, c.willBe())) {
			c.takesAccess = true
			c.Reason = strings.TrimPrefix(c.Reason+"; "+atVeryEnd, "; ")
		}
	}
	return err
}

// atVeryEnd is the reason of changes that come when all else is done and recorded.
const atVeryEnd = "at the very end: the run acts by it"

// willBe returns an object as the change makes it.
func (c *Change) willBe() *unstructured.Unstructured { return cmp.Or(c.Predicted, c.Desired) }

// losesRule reports whether a role loses a permission.
func losesRule(old, next *unstructured.Unstructured) bool {
	was, is := rulesOf(old), rulesOf(next)
	isGranted := func(verb, group, resource string, names []string) bool {
		return slices.ContainsFunc(is, func(r rbacv1.PolicyRule) bool {
			return hasOrAll(r.Verbs, verb) && hasOrAll(r.APIGroups, group) && hasOrAll(r.Resources, resource) &&
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

// splitOwnAccess splits off the deletions that come at the very end, of what this very run acts by.
func (p *pruner) splitOwnAccess(ctx context.Context, changes []Change) (others, own []Change, err error) {
	mayBeOurs := func(c Change) bool {
		return c.Action == decide.Delete && len(c.writes) > 0 && (c.ID.Group == rbacGroup || c.ID.Group == "" && c.ID.Kind == "ServiceAccount")
	}
	if !slices.ContainsFunc(changes, mayBeOurs) {
		return changes, nil, nil
	}
	_, isOurs, err := p.ownAccess(ctx, changes)
	for _, c := range changes {
		if isOurs[c.ID] && mayBeOurs(c) {
			c.orphan.order = ordering.Deletion{} // at once: without one of them the others can't be deleted any more
			c.Reason += "; " + atVeryEnd
			c.RevisitNextRelease = true // the release is recorded by then
			own = append(own, c)
			continue
		}
		c.orphan.order.WaitsForGone = slices.DeleteFunc(slices.Clone(c.orphan.order.WaitsForGone), func(id kube.ID) bool { return isOurs[id] })
		others = append(others, c)
	}
	return others, own, err
}

// adviceAgainstRecreation says what to do where a binding must not be deleted, because our own account is a subject, or may be: after
// the deletion we might lack permission to create it again. It is empty for all other objects.
func (ps *permissions) adviceAgainstRecreation(ctx context.Context, live *unstructured.Unstructured) (string, error) {
	id := kube.IDOf(live)
	if !isBinding(id) {
		return "", nil
	}
	us, err := ps.account(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the API server can't say which account deployer runs as (Kubernetes 1.28 and later can), and %s may grant permissions to it,"+
			" so deployer doesn't delete it: delete it yourself, or give the new one another name", id), nil
	case err != nil:
		return "", err
	case bindsAccount(us, live):
		return fmt.Sprintf("%s grants permissions to the account that deployer runs as (%s), so deployer doesn't delete it:"+
			" delete it with another account, or give the new one another name", id, us.Username), nil
	}
	return "", nil
}

// account returns the account that deployer runs as. API servers before 1.28 can't say it: the error is NotFound.
func (ps *permissions) account(ctx context.Context) (authenticationv1.UserInfo, error) {
	return ps.us.get(struct{}{}, func() (authenticationv1.UserInfo, error) {
		answer, err := answerTo(ctx, ps.a.requester, isTransient, func() (*authenticationv1.SelfSubjectReview, error) {
			return ps.a.cluster.Typed().AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		})
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		return answer.Status.UserInfo, nil
	})
}

// isBinding reports whether an object grants a role.
func isBinding(id kube.ID) bool { return slices.Contains(bindingKinds, id.GroupKind()) }

var bindingKinds = kindsOf(rbacGroup, "RoleBinding", "ClusterRoleBinding")

// bindsAccount reports whether a binding is for an account.
func bindsAccount(us authenticationv1.UserInfo, binding *unstructured.Unstructured) bool {
	return slices.ContainsFunc(kube.Items(binding.Object, "subjects"), func(subject map[string]any) bool { return isSubject(us, subject) })
}

// isSubject matches a subject of a binding as the authorizer does.
// k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, appliesToUser
func isSubject(us authenticationv1.UserInfo, subject map[string]any) bool {
	name := fields.AsString(subject["name"])
	switch fields.AsString(subject["kind"]) {
	case "User":
		return name == us.Username
	case "Group":
		return slices.Contains(us.Groups, name)
	case "ServiceAccount":
		return us.Username == "system:serviceaccount:"+fields.AsString(subject["namespace"])+":"+name
	}
	return false
}
