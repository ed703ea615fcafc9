package release

import (
	"context"
	"errors"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
)

// TrimHistory deletes the oldest revisions until at most keep are left; 0 keeps all. It
// keeps the last successful revision and all later ones, because they show which objects
// may exist; without a successful revision it deletes nothing. It also deletes parts of
// large records that no revision refers to. Call it with the release locked, after
// Finish.
func (s *Store) TrimHistory(ctx context.Context, name string, keep int) error {
	all, err := s.list(ctx, name, ownerParts, ownerHelm)
	if err != nil {
		return err
	}
	return s.trim(ctx, all, keep)
}

// TrimHistory is that of the store for the release of the lock, without listing again what
// Finish has listed.
func (l *Lock) TrimHistory(ctx context.Context, keep int) error {
	if l.afterFinish == nil || !l.afterFinish.complete {
		return l.store.TrimHistory(ctx, l.name, keep)
	}
	return l.store.trim(ctx, l.afterFinish, keep)
}

func (s *Store) trim(ctx context.Context, of *listing, keep int) error {
	old := revisionsToTrim(of.heads, keep)
	err := kube.ForEach(len(old), kube.ParallelRequests, func(i int) error { return s.Delete(ctx, &old[i]) })
	orphans := unreferencedParts(of.heads, of.parts)
	return errors.Join(err, kube.ForEach(len(orphans), kube.ParallelRequests, func(i int) error {
		return s.deleteSecret(ctx, orphans[i].Name, string(orphans[i].UID))
	}))
}

// revisionsToTrim returns the revisions, oldest first, that may be deleted.
func revisionsToTrim(heads []Summary, keep int) []Summary {
	if keep <= 0 || len(heads) <= keep {
		return nil
	}
	return heads[:min(len(heads)-keep, lastSuccess(heads))]
}

// lastSuccess returns the index of the newest deployed revision. Without one, it returns
// the newest superseded revision, which a killed Helm leaves, or uninstalled one; 0 if
// there is none.
func lastSuccess(heads []Summary) int {
	for _, successful := range [][]helmrelease.Status{{helmrelease.StatusDeployed}, {helmrelease.StatusSuperseded, helmrelease.StatusUninstalled}} {
		for i, s := range slices.Backward(heads) {
			if slices.Contains(successful, s.Status) {
				return i
			}
		}
	}
	return 0
}

// unreferencedParts returns the parts that no head refers to, and the journals of runs that have ended. Those of
// a later revision don't count, because a run writes parts before the head.
func unreferencedParts(heads []Summary, parts []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	newest := 0
	referenced := map[string]bool{} // digests, and names of journals
	for _, h := range heads {
		referenced[journalName(h.Name, h.Revision)] = isUnfinished(h.Status)
		newest = max(newest, h.Revision)
		for _, b := range h.bundles {
			referenced[b.digest] = true
		}
	}
	var out []metav1.PartialObjectMetadata
	for _, p := range parts {
		revision := parseRevision(p.Labels["version"])
		content := p.Labels[labelDigest]
		if p.Name == journalName(p.Labels["name"], revision) {
			content = p.Name
		}
		if content != "" && revision > 0 && revision <= newest && !referenced[content] {
			out = append(out, p)
		}
	}
	return out
}
