package ownership

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// SimulateApply computes a forced apply of desired to live as the API server does, with
// entries owning live's fields: it merges, and removes our fields that are no longer
// wanted unless another manager owns them too. Defaulting and admission, which only the
// server can do, are missing. All entries are treated as of one API version.
func SimulateApply(live, desired *typed.TypedValue, entries []Entry) (*typed.TypedValue, error) {
	result, _, err := updater().Apply(live, desired, version, versioned(entries), ours, true)
	return result, err
}

// A Conflict is a field that somebody else has set to another value.
type Conflict struct {
	Path fieldpath.Path
	By   Entry
}

// Conflicts finds the fields that a forced apply of desired would take from the
// owners of entries, as the API server finds them. Entries of ours and of
// Helm's older names don't count.
func Conflicts(live, desired *typed.TypedValue, entries []Entry) ([]Conflict, error) {
	others := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.isOurApply() || e.Class() == Helm })
	if len(others) == 0 {
		return nil, nil
	}
	_, _, err := updater().Apply(live, desired, version, versioned(others), ours, false)
	var found merge.Conflicts
	if err == nil || !errors.As(err, &found) {
		return nil, err
	}
	var out []Conflict
	for _, c := range found {
		i, err := strconv.Atoi(c.Manager)
		if err != nil || i >= len(others) {
			return nil, fmt.Errorf("a conflict with unknown manager %q", c.Manager)
		}
		out = append(out, Conflict{Path: c.Path.Copy(), By: others[i]})
	}
	slices.SortStableFunc(out, func(a, b Conflict) int { return a.Path.Compare(b.Path) })
	return out, nil
}

const (
	version = fieldpath.APIVersion("v") // of all entries
	ours    = "ours"                    // the manager that applies
)

func updater() *merge.Updater {
	return (&merge.UpdaterBuilder{Converter: oneVersion{}, ReturnInputOnNoop: true}).BuildUpdater()
}

// versioned keys entries by their index, because several may bear one name, and our own by ours.
func versioned(entries []Entry) fieldpath.ManagedFields {
	out := fieldpath.ManagedFields{}
	for i, e := range entries {
		key := strconv.Itoa(i)
		if e.isOurApply() {
			key = ours
		}
		out[key] = fieldpath.NewVersionedSet(e.Set, version, e.Operation == "Apply")
	}
	return out
}

type oneVersion struct{}

func (oneVersion) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}

func (oneVersion) IsMissingVersionError(error) bool { return false }
