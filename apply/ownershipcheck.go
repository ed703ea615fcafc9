package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// An ownershipChecker tells which live objects are the release's, or may become so.
type ownershipChecker struct {
	owner    Owner
	opts     Options
	history  *releaseHistory
	warnings *warnings
}

// check fails unless a live object is ours or may be adopted, in which case adopting is
// true. The error's text is that of Helm's checkOwnership.
func (c *ownershipChecker) check(t *target, live *unstructured.Unstructured) (adopting bool, err error) {
	if t.fromCRDs {
		return false, nil
	}
	owner := provenance.OwnerOf(live)
	if owner == (Owner{Release: c.owner.Release}) || owner == (Owner{Namespace: c.owner.Namespace}) {
		owner = Owner{} // somebody began to adopt it by hand
	}
	if owner == c.owner || owner == (Owner{}) && c.history.wasHook(t.id) && isHook(live) {
		// Helm writes no ownership on the objects of hooks. (helm#8944)
		return false, nil
	}
	if c.mayAdopt(t.id, owner) {
		return true, nil
	}
	return false, &OwnershipError{ID: t.id, Owner: owner, Text: c.owner.Mismatch(live)}
}

func (c *ownershipChecker) mayAdopt(id kube.ID, owner Owner) bool {
	if adoptable(c.opts.Adopt, id) {
		return true
	}
	if owner == (Owner{}) {
		return c.opts.TakeOwnership
	}
	return slices.Contains(c.opts.TakeOwnershipFrom, "*") || slices.Contains(c.opts.TakeOwnershipFrom, owner.String())
}

// warnOfUnusedAdoptions warns of objects that may be adopted and that the chart
// doesn't have: a misspelt one would be looked for in vain.
func (c *ownershipChecker) warnOfUnusedAdoptions(targets map[kube.ID]*target) {
	for _, entry := range c.opts.Adopt {
		used := false
		for id := range targets {
			used = used || adoptable([]string{entry}, id)
		}
		if !used {
			c.warnings.add(kube.ID{}, "", "--adopt %s has no effect: the chart has no object of that kind and name (write kind/name or kind/namespace/name)", entry)
		}
	}
}

// adoptable reports whether a list of kind/name or kind/namespace/name has id.
func adoptable(list []string, id kube.ID) bool {
	for _, entry := range list {
		parts := strings.Split(entry, "/")
		switch len(parts) {
		case 2:
			if strings.EqualFold(parts[0], id.Kind) && parts[1] == id.Name {
				return true
			}
		case 3:
			if strings.EqualFold(parts[0], id.Kind) && parts[1] == id.Namespace && parts[2] == id.Name {
				return true
			}
		}
	}
	return false
}
