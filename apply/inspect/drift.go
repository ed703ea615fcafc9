// Package inspect reports how the cluster differs from what a release has applied
// ([DriftOf]), and who has made an object what it is ([Explain]).
//
// Both use [apply.Applier.Inspect], which computes for each object what applying a
// revision again would change. They only read.
package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// Origin says who caused a difference between the last applied state and the live one.
type Origin string

// The origins. A removed field has no owner and counts as manual, because controllers own
// what they write.
const (
	OriginManual        Origin = "manual"         // people: kubectl, consoles
	OriginFailedRelease Origin = "failed_release" // left by another revision of the release, which failed as a rule
	OriginOtherRelease  Origin = "other_release"  // another release, or Helm beside the release's records
	OriginDeleted       Origin = "deleted"        // the object is gone
	OriginController    Origin = "controller"     // autoscalers, operators, admission
)

// A Drift is how the cluster differs from what a release last applied.
type Drift struct {
	Objects   []DriftedObject // those that differ, by name
	Same      int             // objects that don't
	Estimated int             // of Same, those compared without the server's dry run
	Warnings  []apply.Warning
}

// DriftedObject is one object that isn't as it was applied.
type DriftedObject struct {
	ID     kube.ID
	Source string // template; empty when unknown
	State  DriftState
	Origin Origin // of the state; empty when only fields differ
	Reason string

	// Revision is the one that left an extra object.
	Revision int
	// Unverified says why the object could not be read, or why the server could not be
	// asked about the release's manifest.
	Unverified string
	// Expected says that a deployment would leave the object as it is.
	Expected bool

	Live    *unstructured.Unstructured // nil when it is gone or can't be read
	Desired *unstructured.Unstructured // as it was applied; nil for what isn't the release's
	Fields  []DriftField
}

// DriftState is how an object differs.
type DriftState string

// The states.
const (
	DriftChanged   DriftState = "changed"  // some of its fields
	DriftMissing   DriftState = "missing"  // not in the cluster
	DriftDeleting  DriftState = "deleting" // being deleted
	DriftExtra     DriftState = "extra"    // in the cluster, and not of the deployed revision
	DriftTakenOver DriftState = "taken"    // belongs to another release, or is marked so
	DriftUnknown   DriftState = "unknown"  // may not be read
)

// A DriftField is one field that isn't as it was applied.
type DriftField struct {
	Path                string
	Desired, Live       any  // the values, plain JSON data
	HasDesired, HasLive bool // whether there are such values
	Origin              Origin
	Owner               ownership.FieldManager
	Revision            int  // that declared the live value; 0 for none
	Expected            bool // a deployment would leave it as it is
	Names               []string
}

// DriftOf compares the live objects with what a revision applied. req.Objects is its
// manifest, req.CRDs and req.Hooks are those that it has applied and run, and deployed is
// its number. Objects that the server or the policies would reject are compared locally.
func DriftOf(ctx context.Context, a *apply.Applier, req apply.Request, deployed int) (*Drift, error) {
	inspection, err := a.Inspect(ctx, req)
	if err != nil {
		return nil, err
	}
	objects, err := inspection.All(ctx)
	if err != nil {
		return nil, err
	}
	out := &Drift{Warnings: inspection.Warnings()}
	for _, o := range objects {
		out.add(o, inspection.Release(), deployed)
	}
	for _, r := range inspection.Rejected() {
		out.Objects = append(out.Objects, unresolvable(r))
	}
	orphans, err := inspection.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range orphans {
		if c.Action == decide.Delete || c.RevisitNextRelease { // else it is meant to stay, or belongs to somebody else by now
			out.Objects = append(out.Objects, extra(c))
		}
	}
	slices.SortStableFunc(out.Objects, func(a, b DriftedObject) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}

// add adds an object of the revision, or counts it where it is as it was applied.
func (d *Drift) add(inspected *apply.Inspected, release provenance.Owner, deployed int) {
	o := stateOf(inspected, release)
	if inspected.FromHook && (o.State == DriftMissing || o.State == DriftDeleting) {
		return // hooks come and go
	}
	if o.State == DriftChanged && inspected.Predicted != nil {
		o.Fields = driftFields(inspected, deployed)
	}
	if o.State != DriftChanged || len(o.Fields) > 0 {
		d.Objects = append(d.Objects, o)
		return
	}
	d.Same++
	if o.Unverified != "" {
		d.Estimated++
	}
}

// stateOf returns the state of an object as a whole; DriftChanged when its fields have to
// be compared.
func stateOf(i *apply.Inspected, release provenance.Owner) DriftedObject {
	o := DriftedObject{ID: i.ID, Source: i.Source, State: DriftChanged, Live: i.Live, Desired: i.Declared, Unverified: i.Unverified}
	owner := i.Owner()
	switch {
	case i.Forbidden:
		o.State, o.Unverified = DriftUnknown, "no permission to read it"
	case i.Live == nil && kube.IsDeletedWhenFinished(i.Declared):
		o.State, o.Origin, o.Expected, o.Reason = DriftMissing, OriginController, true, "it is deleted some time after it finishes"
	case i.Live == nil:
		o.State, o.Origin, o.Reason = DriftMissing, OriginDeleted, "not in the cluster"
	case i.Live.GetDeletionTimestamp() != nil:
		o.State, o.Origin, o.Reason = DriftDeleting, OriginDeleted, "is being deleted"
	case !i.FromCRDs && owner != (provenance.Owner{}) && owner != release:
		o.State, o.Origin, o.Reason = DriftTakenOver, OriginOtherRelease, "belongs to release "+owner.String()+" now"
	case i.Rejected != nil:
		o.State, o.Unverified = DriftUnknown, "the release's manifest can't be read by the server's schema: "+i.Rejected.Error()
	}
	return o
}

// unresolvable is an object whose manifest can't be resolved: its kind is gone, and it
// with it.
func unresolvable(r apply.Rejection) DriftedObject {
	o := DriftedObject{ID: r.ID, Source: r.Source, State: DriftMissing, Origin: OriginDeleted, Reason: r.Err.Error()}
	if !errors.As(r.Err, new(*kube.NoKindMatchError)) {
		o.State, o.Origin, o.Unverified = DriftUnknown, "", r.Err.Error()
	}
	return o
}

// extra is an object that another revision has left.
func extra(c apply.OrphanChange) DriftedObject {
	o := DriftedObject{
		ID: c.ID, Source: c.Source, State: DriftExtra, Origin: OriginFailedRelease, Reason: c.Reason, Live: c.Live,
		Expected: c.Action == decide.Keep, Revision: c.Revision,
	}
	if c.Live == nil {
		o.State, o.Origin, o.Unverified, o.Reason = DriftUnknown, "", c.Reason, ""
	}
	return o
}
