package apply

import (
	"context"
	"fmt"
	"regexp"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// A PermissionError names what the account deployer runs as may not do.
type PermissionError struct {
	Verb      string // patch, create, delete
	Group     string
	Resource  string
	Namespace string // empty for a cluster-wide permission
}

// Error begins with the word that the API server and Helm use.
func (e *PermissionError) Error() string { return "forbidden: " + e.missing() }

func (e *PermissionError) missing() string {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	if e.Namespace == "" {
		return fmt.Sprintf("no permission to %s %s in the cluster", e.Verb, resource)
	}
	return fmt.Sprintf("no permission to %s %s in namespace %s", e.Verb, resource, e.Namespace)
}

// Hint says how to find out more.
func (e *PermissionError) Hint() string {
	return "the account deployer runs as needs the permissions named above (kubectl auth can-i --list); server-side apply needs patch, and create for new objects"
}

// denial is how the API server words what its authorizer refuses.
// k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
var denial = regexp.MustCompile(`cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?`)

// missingPermission reads from an answer which permission is missing; nil when it is about
// something else, such as the refusal of an admission policy.
func missingPermission(err error) *PermissionError {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	m := denial.FindStringSubmatch(err.Error())
	if m == nil {
		return nil
	}
	return &PermissionError{Verb: m[1], Resource: m[2], Group: m[3], Namespace: m[4]}
}

// estimate turns a change that the server may not be asked about into one that
// is worked out here. Carrying it out is refused, unless the gate is open: see
// Plan.Permitted.
func (p *planning) estimate(t *target, c Change, missing *PermissionError) Change {
	c.Unverified = "local estimate: " + missing.missing()
	if p.a.opts.Gate == GateStrict {
		c.denied = missing
	} else {
		p.warnings.add(t.id, t.source, "%s", missing)
	}
	return c
}

// Permitted says whether the account may carry the plan out, as far as planning
// has met the limits of its permissions. The error is a *RejectedError of
// *PermissionErrors. Call it before the first change; Run checks its own list.
func (p *Plan) Permitted() error { return permitted(append(p.lists(), p.Hooks)...) }

func permitted(lists ...[]Change) error {
	var bad []Rejection
	for _, changes := range lists {
		for _, c := range changes {
			if c.denied != nil {
				bad = append(bad, Rejection{ID: c.ID, Source: c.Source, Err: c.denied})
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &RejectedError{Rejections: sorted(bad)}
}

// permissions are what the account is known to be permitted; see may.
type permissions struct {
	a     *Applier
	asked memo[authorizationv1.ResourceAttributes, bool]
}

// check marks a change whose writing request the server can't be asked about in
// a dry run, if the account may not make it.
func (p *permissions) check(ctx context.Context, c *Change, verb string, m kube.Mapping) error {
	if p.a.opts.Gate != GateStrict || c.denied != nil {
		return nil
	}
	what := authorizationv1.ResourceAttributes{
		Verb: verb, Group: m.Resource.Group, Version: m.Resource.Version, Resource: m.Resource.Resource, Namespace: c.ID.Namespace,
	}
	ok, err := p.may(ctx, what)
	if err == nil && !ok { // perhaps by name
		what.Name = c.ID.Name
		ok, err = p.may(ctx, what)
	}
	if err != nil {
		return fmt.Errorf("asking what the account may do: %w", err)
	}
	if !ok {
		c.denied = &PermissionError{Verb: verb, Group: what.Group, Resource: what.Resource, Namespace: what.Namespace}
		c.Unverified = c.denied.missing()
	}
	return nil
}

// checkInside marks a change in a namespace that is still to come, if the account
// may not make it there: it is asked before the namespace is made. Of a kind that
// is still to come too, nobody can say whose rights grow with it.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func (p *permissions) checkInside(ctx context.Context, c *Change, t *target) error {
	if !c.Deferral.waitsFor(namespaceID(t.id.Namespace)) || c.Deferral.waitsFor(t.definition()) {
		return nil
	}
	err := p.check(ctx, c, "create", t.mapping)
	if err == nil && !isHook(t.obj) { // what is applied is patched as well
		err = p.check(ctx, c, "patch", t.mapping)
	}
	return err
}

// may asks the server once. Whoever may not ask is taken to be permitted, and
// will hear it when the request is made.
func (p *permissions) may(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return p.asked.get(what, func() (bool, error) {
		typed, err := p.a.cluster.Typed()
		if err != nil {
			return false, err
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
		var answer *authorizationv1.SelfSubjectAccessReview
		err = p.a.try(ctx, func() error {
			answer, err = typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return err == nil && answer.Status.Allowed, err
	})
}
