package inspect

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// driftFields lists the fields of an object that aren't as they were applied: those that
// applying again would change or relinquish, and those that others have added.
func driftFields(o *apply.Inspected, deployed int) []DriftField {
	l := &fieldList{object: o, deployed: deployed, listed: fieldpath.NewSet()}
	for _, f := range o.Fields {
		l.addChange(f)
	}
	l.addRelinquished()
	l.addAdditions()
	slices.SortStableFunc(l.out, func(a, b DriftField) int { return slices.Compare(a.Names, b.Names) })
	return l.out
}

// fieldList collects the fields of one object that aren't as they were applied.
type fieldList struct {
	object   *apply.Inspected
	deployed int // the revision it is compared with
	out      []DriftField
	listed   *fieldpath.Set
}

// addChange adds a field that applying again would change. A field that applying would
// add counts only if it is declared; otherwise it is a default. A field that would change
// counts if it is declared, has an owner or was declared by a revision; otherwise the server
// may have set both values.
func (l *fieldList) addChange(f compare.FieldChange) {
	declared := fields.Has(l.object.Declared.Object, f.Path)
	if l.object.Desired != nil && fields.IsField(f.Path[0], "metadata") { // we write ownership metadata on every object
		declared = declared || fields.Has(l.object.Desired.Object, f.Path)
	}
	switch {
	case f.Type == compare.Added && declared, f.Type == compare.Removed,
		f.Type == compare.Changed && (declared || l.ownerOf(f.Path) != nil || l.revisionWithLiveValue(f.Path) > 0):
		l.add(f.Path, f.After, f.Type != compare.Removed, false)
	case f.Type == compare.Reordered:
		if noted := l.add(f.Path, f.After, true, false); noted != nil {
			noted.Live = f.Before
			// Whoever changes an order owns nothing by that.
			noted.Owner, noted.Origin, noted.Revision = ownership.FieldManager{}, OriginManual, l.revisionWithLiveValue(f.Path)
			if noted.Revision > 0 {
				noted.Origin = OriginFailedRelease
			}
		}
	}
}

// add adds one field; nil when it is nobody's concern.
func (l *fieldList) add(path fieldpath.Path, desired any, hasDesired, expected bool) *DriftField {
	if isBookkeeping(path) {
		return nil
	}
	f := DriftField{Path: fields.String(path), Names: fields.Names(path), Desired: desired, HasDesired: hasDesired, Expected: expected}
	f.Live, f.HasLive = fields.Value(l.object.Live.Object, path)
	l.attribute(&f, path)
	l.listed.Insert(path)
	l.out = append(l.out, f)
	return &l.out[len(l.out)-1]
}

// attribute finds out who is behind a field.
func (l *fieldList) attribute(f *DriftField, path fieldpath.Path) {
	e := l.ownerOf(path)
	if e != nil {
		f.Owner = e.FieldManager
	}
	switch {
	case e == nil || e.Class() == ownership.Helm:
		if f.Revision = l.revisionWithLiveValue(path); f.Revision > 0 {
			f.Origin = OriginFailedRelease
			return
		}
		f.Origin = OriginOtherRelease
		if e == nil {
			f.Origin = OriginManual
		}
	case ownership.MayBePerson(e.Manager):
		f.Origin = OriginManual
	default:
		f.Origin = OriginController
	}
}

// ownerOf is the entry that owns the live value of a field: the latest of
// somebody else's, or else ours; nil when there is none.
func (l *fieldList) ownerOf(path fieldpath.Path) *ownership.Entry {
	if !fields.Has(l.object.Live.Object, path) {
		return nil
	}
	var best *ownership.Entry
	better := func(e *ownership.Entry) bool {
		ours, was := e.Class() == ownership.Helm, best.Class() == ownership.Helm
		if ours != was {
			return was
		}
		return e.Time.After(best.Time)
	}
	entries := l.object.ByFields.Entries
	for i := range entries {
		if e := &entries[i]; fields.Owns(e.Set, path) && (best == nil || better(e)) {
			best = e
		}
	}
	return best
}

// revisionWithLiveValue returns the latest revision other than the deployed one that declares the
// live value of a field, or, if the field is absent, that dropped it; 0 when none does.
func (l *fieldList) revisionWithLiveValue(path fieldpath.Path) int {
	live, isLive := fields.Value(l.object.Live.Object, path)
	history := l.object.History
	for i := len(history) - 1; i >= 0; i-- {
		r := history[i]
		if r.Revision == l.deployed {
			continue
		}
		declared, isDeclared := fields.Value(r.Object.Object, path)
		switch {
		case isLive && isDeclared && fields.Equal(live, declared):
			return r.Revision
		case !isLive && !isDeclared && r.Revision > l.deployed:
			return r.Revision
		}
	}
	return 0
}

// addRelinquished adds fields that a deployment leaves to others.
func (l *fieldList) addRelinquished() {
	for _, f := range l.object.Conflicts {
		path := f.FieldPath
		if f.Outcome != decide.OutcomeYielded || path == nil {
			continue
		}
		was, had := fields.Value(l.object.Declared.Object, path)
		if noted := l.add(path, was, had, true); noted != nil && f.Contest == decide.Scaled {
			noted.Origin = OriginController
			noted.Owner = f.FieldManager
		}
	}
}

// addAdditions adds what others have added beside what the release declares. What
// controllers have added is their business.
func (l *fieldList) addAdditions() {
	for _, e := range l.object.ByFields.Entries {
		if e.Class() == ownership.Helm || e.Subresource == "status" || e.HasMade(l.object.Live) {
			continue
		}
		person := ownership.MayBePerson(e.Manager)
		for path := range e.Set.All() {
			if l.isAddition(path) {
				l.add(path, nil, false, !person || l.isRestart(path))
			}
		}
	}
}

// isAddition reports whether the release declares no part of a live field, and it isn't
// listed yet.
func (l *fieldList) isAddition(path fieldpath.Path) bool {
	declared := l.object.Desired != nil && fields.Has(l.object.Desired.Object, path)
	return fields.Has(l.object.Live.Object, path) && !declared && !fields.Covers(l.listed, path) && !fields.HasIn(l.listed, path)
}

// isRestart reports whether a field was added by kubectl rollout restart, which
// deployments never touch: the annotation, or annotations with nothing else.
func (l *fieldList) isRestart(path fieldpath.Path) bool {
	v, _ := fields.Value(l.object.Live.Object, path)
	m, isMap := v.(map[string]any)
	return fields.IsField(path[len(path)-1], kube.RestartedAtAnnotation) || isMap && len(m) == 1 && m[kube.RestartedAtAnnotation] != nil
}

// isBookkeeping reports whether servers, controllers or our runs keep a field for
// themselves.
func isBookkeeping(path fieldpath.Path) bool {
	names := fields.Names(path)
	return kube.IsBookkeeping(names) || slices.Equal(names, []string{"metadata", "annotations", annotation.HookRun.Name})
}
