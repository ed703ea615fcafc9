package fields

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// State is what is known of an object's fields before we apply to it.
type State struct {
	Manager    string // ours
	APIVersion string // of what we will apply
	Entries    []Entry

	Live    *fieldpath.Set // all fields of the live object
	Want    *fieldpath.Set // what we will apply
	History *fieldpath.Set // what revisions that may have left something stated

	// Leave are paths that must not be ours unless Want has them: what is ours
	// and isn't wanted is removed by the next apply.
	Leave *fieldpath.Set

	// Adopting is true when the object isn't the release's yet. Then only
	// wanted fields become ours, so that nothing of others disappears.
	Adopting bool

	// Revert says that what people have added becomes ours too, and thereby goes,
	// but for metadata.
	Revert bool

	// Served says whether the server still has an API version.
	Served func(apiVersion string) bool
}

// Folded is who owns what after taking over.
type Folded struct {
	Entries []Entry
	Ours    *fieldpath.Set
	From    []string // labels of the entries that lost fields to us
	Changed bool     // Entries differ from what is there
}

// Fold works out managedFields under which one apply leaves the object as
// the chart has it: everything that Helm ever wrote, or a revision stated, is
// ours; the rest belongs to whom it belonged.
//
// It exists because csaupgrade.UpgradeManagedFields looks at one API version of
// each manager and throws the other entries away.
func Fold(s State) Folded {
	if s.History == nil || s.Adopting {
		s.History = fieldpath.NewSet()
	}
	if s.Leave == nil {
		s.Leave = fieldpath.NewSet()
	}
	f := folding{State: s, ours: fieldpath.NewSet(), gained: s.History}
	f.chart = s.History.Union(s.Want)
	if mine := Ours(s.Entries, s.Manager); mine != nil {
		f.ours = mine.Set
		f.time = mine.Time
		f.dead = !s.Served(mine.APIVersion)
	}
	for _, e := range s.Entries {
		f.entry(e)
	}
	return f.result()
}

type folding struct {
	State
	chart  *fieldpath.Set // history and want
	ours   *fieldpath.Set // what is ours now
	gained *fieldpath.Set // what becomes ours if it is live
	rest   []Entry
	from   []string
	time   time.Time // of our entry; zero when there is none
	dead   bool      // our entry is of an API version that is gone
}

func (f *folding) entry(e Entry) {
	if isOurs(e, f.Manager) {
		return
	}
	lost := f.lost(e)
	// Left in Helm's name, what isn't wanted would be ours, and go, in the next release.
	nobodys := f.Adopting && e.Class() == Legacy && e.Subresource == ""
	if lost.Empty() && !nobodys {
		if !f.Served(e.APIVersion) && e.Subresource == "" {
			// The server forgets the owners of such fields at the next write,
			// or fails to convert them (kubernetes#111937).
			e = e.with(e.Set)
			e.APIVersion = f.APIVersion
			f.from = append(f.from, "")
		}
		f.rest = append(f.rest, e)
		return
	}
	f.from = append(f.from, e.Label())
	f.gained = f.gained.Union(lost)
	if left := e.Set.Difference(lost); !left.Empty() && !nobodys {
		f.rest = append(f.rest, e.with(left))
	}
}

// lost is what an entry loses to us.
func (f *folding) lost(e Entry) *fieldpath.Set {
	if e.Subresource != "" {
		return fieldpath.NewSet()
	}
	if f.Revert && !f.Adopting && e.ByHand() {
		return e.Set.Intersection(f.chart).Union(Content(e.Set)).Difference(f.Leave)
	}
	switch e.Class() {
	case Legacy:
		if f.Adopting {
			return e.Set.Intersection(f.Want)
		}
		return e.Set
	case Bounded:
		if e.Operation == metav1.ManagedFieldsOperationUpdate {
			return e.Set.Intersection(f.chart).Difference(f.Leave)
		}
	case Human:
		if e.Operation == metav1.ManagedFieldsOperationUpdate {
			// Only what the chart used to state and now drops: what it states,
			// an apply takes by itself where the values differ.
			return e.Set.Intersection(f.ours.Union(f.History)).Difference(f.Want).Difference(f.Leave)
		}
	}
	return fieldpath.NewSet()
}

// Content is the part of set that isn't about metadata or status.
func Content(set *fieldpath.Set) *fieldpath.Set {
	out := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		switch name := p[0].FieldName; {
		case name == nil, *name != "metadata" && *name != "status" && *name != "apiVersion" && *name != "kind":
			out.Insert(p.Copy())
		}
	})
	return out
}

func (f *folding) result() Folded {
	ours := f.ours.Union(f.gained.Intersection(f.Live))
	if f.Adopting {
		ours = ours.Intersection(f.Want)
	}
	ours = ours.Difference(f.Leave.Difference(f.Want))
	changed := len(f.from) > 0 || f.dead || !ours.Equals(f.ours)
	out := Folded{Ours: ours, Changed: changed}
	for _, label := range f.from {
		if label != "" {
			out.From = append(out.From, label)
		}
	}
	if !changed {
		out.Entries = f.Entries
		return out
	}
	out.Entries = f.rest
	if !ours.Empty() {
		out.Entries = append(out.Entries, f.mine(ours))
	}
	return out
}

func (f *folding) mine(set *fieldpath.Set) Entry {
	return Entry{
		Manager:    f.Manager,
		Operation:  metav1.ManagedFieldsOperationApply,
		APIVersion: f.APIVersion,
		Time:       f.time,
		Set:        set,
	}
}

// WithOurs returns the folded entries with our own owning exactly set. It is
// what an apply of the wanted object would leave.
func (f Folded) WithOurs(manager, apiVersion string, set *fieldpath.Set) []Entry {
	out := make([]Entry, 0, len(f.Entries)+1)
	for _, e := range f.Entries {
		if !isOurs(e, manager) {
			out = append(out, e)
		}
	}
	return append(out, Entry{
		Manager:    manager,
		Operation:  metav1.ManagedFieldsOperationApply,
		APIVersion: apiVersion,
		Set:        set,
	})
}
