package apply

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// markEstimated turns a change that the server may not be asked about into a local estimate.
// Under a strict gate it can't be carried out: see Plan.CheckPermissions.
func (p *permissions) markEstimated(t *target, c Change, missing *verify.PermissionError) Change {
	c.Unverified = "local estimate: " + missing.Missing()
	if p.a.opts.Gate == GateStrict {
		c.denied = missing
	} else {
		p.warnings.add(t.id, t.source, "%s", missing)
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

// denyUnlessAllowed marks a change as denied if the account may not make the request. It is for
// requests that can't be dry-run.
func (p *permissions) denyUnlessAllowed(ctx context.Context, c *Change, verb string, m kube.Mapping) error {
	if p.a.opts.Gate != GateStrict || c.denied != nil {
		return nil
	}
	what := authorizationv1.ResourceAttributes{
		Verb: verb, Group: m.Resource.Group, Version: m.Resource.Version, Resource: m.Resource.Resource, Namespace: c.ID.Namespace, Name: c.ID.Name,
	}
	allowed, err := p.mayRequest(ctx, what)
	if err == nil && !allowed {
		p.deny(c, verb, m.Resource)
	}
	return err
}

// deny marks a change as denied, if missing permissions stop the release.
func (p *permissions) deny(c *Change, verb string, of schema.GroupVersionResource) {
	if p.a.opts.Gate != GateStrict {
		return
	}
	c.denied = &verify.PermissionError{Verb: verb, Group: of.Group, Resource: of.Resource, Namespace: c.ID.Namespace}
	c.Unverified = c.denied.Missing()
}

// denyUnlessAllowedInNewNamespace marks a change in a namespace that this release creates, if the account may
// not make it there. It asks before the namespace is created. If the release also brings
// the kind, it doesn't ask: aggregated roles may grant permissions for the new kind.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
func (p *permissions) denyUnlessAllowedInNewNamespace(ctx context.Context, c *Change, t *target) error {
	if !c.Deferral.waitsFor(namespaceID(t.id.Namespace)) || c.Deferral.waitsFor(t.definition()) {
		return nil
	}
	err := p.denyUnlessAllowed(ctx, c, "create", t.mapping)
	if err == nil && !decide.IsHook(t.obj) { // what is applied is patched as well
		err = p.denyUnlessAllowed(ctx, c, "patch", t.mapping)
	}
	return err
}

// MayRequest reports whether the account may make a request about all objects of a kind, or at least about the one that
// what names.
func (a *Applier) MayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return (&permissions{a: a}).mayRequest(ctx, what)
}

func (p *permissions) mayRequest(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	for _, name := range slices.Compact([]string{"", what.Name}) {
		what.Name = name
		allowed, err := p.asked.get(what, func() (bool, error) {
			return answerTo(ctx, p.a.requester, func() (bool, error) { return p.a.cluster.MayRequest(ctx, what) })
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
