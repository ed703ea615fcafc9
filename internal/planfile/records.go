package planfile

import (
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/deploy"
	"deployer/release"
)

// recordsOf returns the records that an operation was decided on. Their resourceVersions
// aren't compared, because tests write their outcomes into records.
func (c Cluster) recordsOf(op *deploy.Operation) []Record {
	var out []Record
	for _, r := range op.Basis.Revisions {
		out = append(out, Record{Revision: r.Revision, Status: r.Status.String(), UIDDigest: c.uidDigest(sourceRevision, r.UID)})
	}
	return out
}

// recordDifferences returns how the release has changed: the latest record, or earlier
// ones, which show what objects there may be.
func (f *File) recordDifferences(now []release.Summary) []Difference {
	var latest *release.Summary
	if len(now) > 0 {
		latest = &now[len(now)-1]
	}
	if differences := f.baseDifferences(latest); len(differences) > 0 || len(f.Records) == 0 {
		return differences
	}
	found := map[int]release.Summary{}
	for _, r := range now {
		found[r.Revision] = r
	}
	var out []Difference
	for _, planned := range f.Records {
		r, ok := found[planned.Revision]
		delete(found, planned.Revision)
		if text := f.recordDifferenceText(planned, r, ok); text != "" {
			out = append(out, Difference{Subject: "release " + f.Release, Planned: fmt.Sprintf("with revision %d, %s", planned.Revision, planned.Status), Now: text})
		}
	}
	for _, r := range now {
		if _, isNew := found[r.Revision]; isNew {
			out = append(out, Difference{Subject: "release " + f.Release, Planned: fmt.Sprintf("without revision %d", r.Revision), Now: fmt.Sprintf("it exists, %s", r.Status)})
		}
	}
	return out
}

// recordDifferenceText describes how one record has changed; empty when it hasn't.
func (f *File) recordDifferenceText(planned Record, now release.Summary, found bool) string {
	switch {
	case !found:
		return "it no longer exists"
	case planned.UIDDigest != f.Cluster.uidDigest(sourceRevision, now.UID):
		return "it was deleted and recreated"
	case sameStatus(planned.Status, now.Status.String()), f.superseded(planned) && now.Status == helmrelease.StatusSuperseded:
		return ""
	}
	return fmt.Sprintf("it is %s", now.Status)
}

// superseded reports whether r and a later record are both deployed. A dead run leaves
// this state; the next run marks r superseded.
func (f *File) superseded(r Record) bool {
	return r.Status == "deployed" && slices.ContainsFunc(f.Records, func(other Record) bool {
		return other.Revision > r.Revision && other.Status == "deployed"
	})
}

// baseDifferences returns how the latest record has changed.
func (f *File) baseDifferences(latest *release.Summary) []Difference {
	d := Difference{Subject: "release " + f.Release, Planned: "based on no revision"}
	if f.Base != nil {
		d.Planned = fmt.Sprintf("based on revision %d, %s", f.Base.Revision, f.Base.Status)
	}
	switch {
	case f.Base == nil && latest == nil:
		return nil
	case latest == nil:
		d.Now = "it no longer exists"
	case f.Base == nil || latest.Revision != f.Base.Revision:
		d.Now = fmt.Sprintf("the latest is revision %d, %s", latest.Revision, latest.Status)
	case f.Cluster.UIDDigests[sourceRevision] != f.Cluster.uidDigest(sourceRevision, latest.UID):
		d.Now = fmt.Sprintf("revision %d was deleted and recreated", latest.Revision)
	case sameStatus(f.Base.Status, latest.Status.String()):
		return nil
	default:
		d.Now = fmt.Sprintf("it is %s", latest.Status)
	}
	return []Difference{d}
}

// sameStatus reports whether a status is unchanged. It also accepts failed for a record
// that a dead run had left unfinished.
func sameStatus(planned, now string) bool {
	was := helmrelease.Status(planned)
	return planned == now || (was.IsPending() || was == helmrelease.StatusUninstalling) && now == "failed"
}
