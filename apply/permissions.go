package apply

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// markEstimated turns a change that the server may not be asked about into a local estimate.
// Under a strict gate it can't be carried out: see Plan.CheckPermissions.
func (ps *permissions) markEstimated(t *target, c Change, missing *verify.PermissionError) Change {
	c.Unverified = "local estimate: " + missing.Missing()
	if ps.a.opts.Gate == GateStrict {
		c.denied = missing
	} else {
		ps.warnings.add(t.id, t.source, "%s", missing)
	}
	return c
}

// CheckPermissions reports whether the account may carry the plan out, as far as planning
// has met the limits of its permissions. The error is a *RejectedError of
// *PermissionErrors. Call it before the first change; Run checks its own list.
func (p *Plan) CheckPermissions() error { return permitted(append(p.lists(), p.Hooks)...) }

// CheckReadable reports whether the account may read what an uninstall would delete. Otherwise nobody knows what it
// would do, and it is refused. The error is that of CheckPermissions about these objects.
func (p *Plan) CheckReadable() error {
	return permitted(slices.DeleteFunc(slices.Clone(p.Prune), func(c Change) bool { return !c.IsUnreadable() }))
}

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

// permissions asks what the account may do, each question once.
type permissions struct {
	a        *Applier
	warnings *warnings
	asked    memo[authorizationv1.ResourceAttributes, bool]
	us       memo[struct{}, authenticationv1.UserInfo]
}

// missing asks for a permission that a request needs which can't be dry-run. It is nil if the account has it, and if missing
// permissions don't stop the release.
func (ps *permissions) missing(ctx context.Context, id kube.ID, verb string, m kube.Mapping) (*verify.PermissionError, error) {
	if ps.a.opts.Gate != GateStrict {
		return nil, nil
	}
	what := authorizationv1.ResourceAttributes{
		Verb: verb, Group: m.Resource.Group, Version: m.Resource.Version, Resource: m.Resource.Resource, Namespace: id.Namespace, Name: id.Name,
	}
	if allowed, err := ps.mayRequest(ctx, what); err != nil || allowed {
		return nil, err
	}
	return &verify.PermissionError{Verb: verb, Group: what.Group, Resource: what.Resource, Namespace: id.Namespace}, nil
}

// deny marks a change as one that the account may not make; nil permits it.
func (c *Change) deny(missing *verify.PermissionError) {
	if missing != nil && c.denied == nil {
		c.denied, c.Unverified = missing, missing.Missing()
	}
}

// check denies a change if the account lacks a permission that it needs and of which no dry run tells.
func (ps *permissions) check(ctx context.Context, c *Change, m kube.Mapping) error {
	for i := 0; c.denied == nil && i < len(c.needs); i++ {
		missing, err := ps.missing(ctx, c.ID, c.needs[i], m)
		if err != nil {
			return err
		}
		c.deny(missing)
	}
	return nil
}

// neededInNewNamespace are the permissions that an object needs in a namespace that this release creates, which are asked for before
// that is created. If the release also brings the kind, they aren't: aggregated roles may grant permissions for the new kind.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func neededInNewNamespace(t *target, d *Deferral) []string {
	switch {
	case !d.waitsFor(namespaceID(t.id.Namespace)) || d.waitsFor(t.definition()):
		return nil
	case decide.IsHook(t.obj):
		return []string{"create"}
	}
	return []string{"create", "patch"} // what is applied is patched as well
}

// MayRequest reports whether the account may make a request about all objects of a kind, or at least about the one that
// what names.
func (a *Applier) MayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return (&permissions{a: a}).mayRequest(ctx, what)
}

func (ps *permissions) mayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	for _, name := range slices.Compact([]string{"", what.Name}) {
		what.Name = name
		allowed, err := ps.asked.get(what, func() (bool, error) {
			return answerTo(ctx, ps.a.requester, isTransient, func() (bool, error) { return ps.a.cluster.MayRequest(ctx, what) })
		})
		if err != nil {
			return false, fmt.Errorf("checking the permissions of the account: %w", err)
		}
		if allowed {
			return true, nil
		}
	}
	return false, nil
}
