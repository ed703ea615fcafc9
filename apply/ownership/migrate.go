package ownership

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// A Migration is the input of Migrate.
type Migration struct {
	APIVersion string // of what we will apply
	Entries    []Entry

	Live        *fieldpath.Set // all fields of the live object
	Desired     *fieldpath.Set // what we will apply
	Declared    *fieldpath.Set // what revisions that may have left something have declared; nil for nothing
	BroughtBack *fieldpath.Set // by others: it is as an older revision declared it; nil for nothing

	// Relinquished are fields that must not become ours unless Desired has them, because
	// the next apply would remove them. Nil means none.
	Relinquished *fieldpath.Set

	// Unlike reports whether the object isn't the same in an API version as in the one that is applied: a path
	// means something else there. Nil means none.
	Unlike func(apiVersion string) bool

	Terms
}

// Terms say how ownership is migrated.
type Terms struct {
	// Adopting is true when the object isn't the release's yet. Then only
	// desired fields become ours, so nothing of others disappears.
	Adopting bool

	// RevertManual makes fields that people have added ours, except metadata, so that the
	// apply removes them.
	RevertManual bool

	// Served reports whether the server still has an API version.
	Served func(apiVersion string) bool

	// Custom is true for a custom resource, which a webhook may convert.
	Custom bool
}

// Migrated is the result of Migrate.
type Migrated struct {
	Entries []Entry
	Ours    *fieldpath.Set
	From    []string // labels of the entries that lost fields to us
	Changed bool     // Entries differ from what is there

	// Elsewhere is the API version that Ours is of, if that is unlike the one that is applied. Only the API server
	// knows then what an apply removes.
	Elsewhere string
}

// Migrate computes the managedFields with which one apply makes the object as the chart
// has it: fields that Helm ever wrote or a revision declared become ours; all others keep
// their owners.
//
// csaupgrade.UpgradeManagedFields can't be used: it considers one API version per manager
// and drops the other entries.
func Migrate(m Migration) Migrated {
	if apiVersion := m.elsewhere(); apiVersion != "" {
		return m.migrateIn(apiVersion)
	}
	if m.Declared == nil || m.Adopting {
		m.Declared = fieldpath.NewSet()
	}
	if m.BroughtBack == nil || m.Adopting {
		m.BroughtBack = fieldpath.NewSet()
	}
	if m.Relinquished == nil {
		m.Relinquished = fieldpath.NewSet()
	}
	r := migrationRun{Migration: m, ours: fieldpath.NewSet(), gained: m.Declared, chart: m.Declared.Union(m.Desired)}
	if entry := ApplyEntry(m.Entries); entry != nil {
		r.ours, r.time, r.changed = entry.Set, entry.Time, !m.Served(entry.APIVersion)
	}
	for _, e := range m.Entries {
		if !e.isOurApply() {
			r.takeFrom(e)
		}
	}
	return r.result()
}

// elsewhere returns the API version, unlike the one that is applied, in which we own fields, or Helm does if we
// own none; empty if there is none.
func (m Migration) elsewhere() string {
	if m.Unlike == nil || m.Adopting {
		return ""
	}
	if entry := ApplyEntry(m.Entries); entry != nil {
		if m.Unlike(entry.APIVersion) {
			return entry.APIVersion
		}
		return ""
	}
	for _, e := range m.Entries {
		if e.holdsChart() && m.Unlike(e.APIVersion) {
			return e.APIVersion
		}
	}
	return ""
}

// migrateIn makes ours what Helm owns in an API version, in that version: the next apply, in another version, removes what
// it drops of that. Helm's entries of other versions have their turn in the next release.
func (m Migration) migrateIn(apiVersion string) Migrated {
	out := Migrated{Ours: fieldpath.NewSet(), Elsewhere: apiVersion}
	var at time.Time
	if entry := ApplyEntry(m.Entries); entry != nil {
		out.Ours, at = entry.Set, entry.Time
	}
	var rest []Entry
	for _, e := range m.Entries {
		switch {
		case e.isOurApply():
		case e.holdsChart() && e.APIVersion == apiVersion:
			lost := e.withoutOwnMetadata(m.Desired)
			out.Ours, out.From, out.Changed = out.Ours.Union(lost), append(out.From, e.Label()), true
			if left := e.Set.Difference(lost); !left.Empty() {
				rest = append(rest, e.With(left))
			}
		case e.holdsChart() && e.APIVersion == m.APIVersion && !e.Set.Intersection(m.Desired).Empty():
			out.From, out.Changed = append(out.From, e.Label()), true // the next apply owns them
			if left := e.Set.Difference(m.Desired); !left.Empty() {
				rest = append(rest, e.With(left))
			}
		default:
			rest = append(rest, e)
		}
	}
	out.Entries = m.Entries
	if m.needsAnchor(rest, apiVersion) {
		rest = append(rest, Entry{FieldManager: FieldManager{Manager: Manager, Operation: metav1.ManagedFieldsOperationUpdate}, APIVersion: apiVersion, Set: fieldpath.NewSet(releaseName)})
		out.Changed = true
	}
	if out.Changed {
		out.Entries = append(rest, newApplyEntry(apiVersion, out.Ours, at))
	}
	return out
}

// holdsChart reports whether Helm owns more than metadata by an entry.
func (e Entry) holdsChart() bool {
	return e.Class() == Helm && e.Subresource == "" && !WithoutMetadataAndStatus(e.Set).Empty()
}

// needsAnchor reports whether others own something in an API version that we leave, and no metadata. The API server
// then converts an object without metadata, which no webhook can: a second owner of our annotation there prevents it.
// sigs.k8s.io/structured-merge-diff merge/update.go, addBackOwnedItems
func (m Migration) needsAnchor(others []Entry, apiVersion string) bool {
	owned := fieldpath.NewSet()
	for _, e := range others {
		if e.APIVersion == apiVersion {
			owned = owned.Union(e.Set)
		}
	}
	return m.Custom && !owned.Empty() && m.Live.Has(releaseName) && owned.WithPrefix(fieldpath.PathElement{FieldName: new("metadata")}).Empty()
}

// A migrationRun is a migration under way.
type migrationRun struct {
	Migration
	chart   *fieldpath.Set // what revisions have declared, and what is desired
	ours    *fieldpath.Set // what is ours now
	gained  *fieldpath.Set // what becomes ours if it is live
	rest    []Entry        // of the others, after the migration
	from    []string       // labels of the entries that lose fields
	time    time.Time      // of our entry; zero when there is none
	changed bool           // an entry is of an API version that is gone
}

// takeFrom takes the fields that become ours from another manager's entry.
func (r *migrationRun) takeFrom(e Entry) {
	lost := r.lostBy(e)
	if !r.Served(e.APIVersion) && e.Subresource == "" {
		// The server forgets the owners of such fields at the next write,
		// or fails to convert them (kubernetes#111937).
		e = e.With(e.Set)
		e.APIVersion = r.APIVersion
		r.changed = true
	}
	// Under Helm's name, undesired fields would become ours in the next release and be
	// removed.
	dropRest := r.Adopting && e.Class() == Helm && e.Subresource == ""
	if lost.Empty() && !dropRest {
		r.rest = append(r.rest, e)
		return
	}
	r.from = append(r.from, e.Label())
	r.gained = r.gained.Union(lost)
	left := e.Set.Difference(lost)
	if dropRest {
		left = e.Set.Difference(e.withoutOwnMetadata(r.chart))
	}
	if !left.Empty() {
		r.rest = append(r.rest, e.With(left))
	}
}

// lostBy returns the fields that an entry loses to us.
func (r *migrationRun) lostBy(e Entry) *fieldpath.Set {
	if e.Subresource != "" {
		return fieldpath.NewSet()
	}
	if r.RevertManual && !r.Adopting && e.IsManual() {
		return e.Set.Intersection(r.chart).Union(WithoutMetadataAndStatus(e.Set)).Difference(r.Relinquished)
	}
	isUpdate := e.Operation == metav1.ManagedFieldsOperationUpdate
	switch class := e.Class(); {
	case class == Helm && r.Adopting:
		return e.Set.Intersection(r.Desired)
	case class == Helm:
		return e.withoutOwnMetadata(r.chart)
	case class == Ambiguous && isUpdate:
		return e.Set.Intersection(r.chart.Union(r.BroughtBack)).Difference(r.Relinquished)
	case class == Person && isUpdate:
		// Only fields that the chart declared before and drops now. Fields that it still
		// declares are taken by the apply itself if the values differ.
		return e.Set.Intersection(r.ours.Union(r.Declared).Union(r.BroughtBack)).Difference(r.Desired).Difference(r.Relinquished)
	}
	return fieldpath.NewSet()
}

// WithoutMetadataAndStatus is the part of set that isn't about metadata or status.
func WithoutMetadataAndStatus(set *fieldpath.Set) *fieldpath.Set {
	return set.RecursiveDifference(fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"),
		fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
	))
}

// MayBringBack reports whether an entry may have what revisions had that nobody remembers: it is of somebody who may have
// written an old state of the object, and has more in it than known and the time of a restart.
func (e Entry) MayBringBack(known *fieldpath.Set) bool {
	if c := e.Class(); e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != "" || c != Person && c != Ambiguous {
		return false
	}
	return !fields.Where(e.Set.Leaves().Difference(known), func(path fieldpath.Path) bool { return !fields.IsField(path[len(path)-1], kube.RestartedAtAnnotation) }).Empty()
}

func (r *migrationRun) result() Migrated {
	ours := r.ours.Union(r.gained.Intersection(r.Live))
	if r.Adopting {
		ours = ours.Intersection(r.Desired)
	}
	ours = ours.Difference(r.Relinquished.Difference(r.Desired))
	out := Migrated{Ours: ours, Entries: r.Entries, From: r.from, Changed: len(r.from) > 0 || r.changed || !ours.Equals(r.ours)}
	if !out.Changed {
		return out
	}
	out.Entries = r.rest
	if !ours.Empty() {
		out.Entries = append(out.Entries, newApplyEntry(r.APIVersion, ours, r.time))
	}
	return out
}

// WithOurs returns the migrated entries with our own owning exactly set. It is
// what an apply of the desired object would leave.
func (m Migrated) WithOurs(apiVersion string, set *fieldpath.Set) []Entry {
	others := slices.DeleteFunc(slices.Clone(m.Entries), Entry.isOurApply)
	return append(others, newApplyEntry(apiVersion, set, time.Time{}))
}
