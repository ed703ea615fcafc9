package ownership

import (
	"errors"
	"fmt"
	"slices"
	"sort"
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
	managers, ours := versioned(entries)
	result, _, err := updater().Apply(live, desired, version, managers, ours, true)
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
	others := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.isOurApply() || ClassOf(e.Manager) == Helm })
	if len(others) == 0 {
		return nil, nil
	}
	managers, ours := versioned(others)
	_, _, err := updater().Apply(live, desired, version, managers, ours, false)
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
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path.Compare(out[j].Path) < 0 })
	return out, nil
}

const version = fieldpath.APIVersion("v")

func updater() *merge.Updater {
	return (&merge.UpdaterBuilder{Converter: oneVersion{}, ReturnInputOnNoop: true}).BuildUpdater()
}

// versioned keys entries by their index: several may bear one name.
func versioned(entries []Entry) (fieldpath.ManagedFields, string) {
	const ours = "ours"
	out := fieldpath.ManagedFields{}
	for i, e := range entries {
		key := strconv.Itoa(i)
		if e.isOurApply() {
			key = ours
		}
		out[key] = fieldpath.NewVersionedSet(e.Set, version, e.Operation == "Apply")
	}
	return out, ours
}

type oneVersion struct{}

func (oneVersion) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}

func (oneVersion) IsMissingVersionError(error) bool { return false }
