// Package ownership computes metadata.managedFields: who owns which fields, what becomes
// ours, and what an apply will do. It makes no requests.
//
// The rules of ownership are those of
// https://kubernetes.io/docs/reference/using-api/server-side-apply/ and of
// sigs.k8s.io/structured-merge-diff, which the API server runs.
package ownership

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// Manager is our field manager. Helm 4 and Nelm use the same, so a change of
// tool never makes a second applier.
const Manager = "helm"

// An Entry is one line of metadata.managedFields.
type Entry struct {
	FieldManager
	APIVersion string
	Set        *fieldpath.Set

	raw metav1.ManagedFieldsEntry
}

// A FieldManager is the owner of a field: an entry of metadata.managedFields without its
// fields. The zero value is nobody. Its JSON is a promise, see docs/json.md.
type FieldManager struct {
	Manager     string                            `json:"manager"` // or the autoscaler
	Operation   metav1.ManagedFieldsOperationType `json:"operation,omitempty"`
	Subresource string                            `json:"subresource,omitempty"`
	Time        time.Time                         `json:"since,omitzero"` // when that manager last wrote the object, in UTC; zero when unknown
}

// Label names the owner for people: helm (Update), kubectl (Update, scale).
func (f FieldManager) Label() string {
	if f.Subresource != "" {
		return fmt.Sprintf("%s (%s, %s)", f.Manager, f.Operation, f.Subresource)
	}
	return fmt.Sprintf("%s (%s)", f.Manager, f.Operation)
}

// managerOf returns the owner of the fields of an entry as the API has it.
func managerOf(e metav1.ManagedFieldsEntry) FieldManager {
	out := FieldManager{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
	if e.Time != nil {
		out.Time = e.Time.UTC()
	}
	return out
}

// IsOurs reports whether a manager is of our name, however it wrote.
func (f FieldManager) IsOurs() bool { return f.Manager == Manager && f.Subresource == "" }

// isOurApply reports whether what a manager owns is what we have applied.
func (f FieldManager) isOurApply() bool {
	return f.IsOurs() && f.Operation == metav1.ManagedFieldsOperationApply
}

// IsOurs is FieldManager.IsOurs of an entry as the API has it.
func IsOurs(e metav1.ManagedFieldsEntry) bool { return managerOf(e).IsOurs() }

// IsOurApply reports whether an entry, as the API has it, is of what we have applied.
func IsOurApply(e metav1.ManagedFieldsEntry) bool { return managerOf(e).isOurApply() }

// Parse reads managedFields. Entries without a field set have an empty one.
func Parse(list []metav1.ManagedFieldsEntry) ([]Entry, error) {
	out := make([]Entry, 0, len(list))
	for _, raw := range list {
		e := Entry{FieldManager: managerOf(raw), APIVersion: raw.APIVersion, Set: fieldpath.NewSet(), raw: raw}
		if raw.FieldsV1 != nil {
			if err := e.Set.FromJSON(raw.FieldsV1.GetRawReader()); err != nil {
				return nil, fmt.Errorf("reading the fields managed by %s: %w", e.Label(), err)
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// Encode is the reverse of Parse. Entries whose set has not been changed keep
// their bytes.
func Encode(entries []Entry) ([]metav1.ManagedFieldsEntry, error) {
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, e := range entries {
		raw := e.raw
		if raw.FieldsV1 == nil {
			data, err := e.Set.ToJSON()
			if err != nil {
				return nil, fmt.Errorf("writing the fields managed by %s: %w", e.Label(), err)
			}
			raw = metav1.ManagedFieldsEntry{
				Manager:     e.Manager,
				Operation:   e.Operation,
				APIVersion:  e.APIVersion,
				Subresource: e.Subresource,
				FieldsType:  "FieldsV1",
				FieldsV1:    metav1.NewFieldsV1(string(data)),
			}
			if !e.Time.IsZero() {
				raw.Time = &metav1.Time{Time: e.Time}
			}
		}
		out = append(out, raw)
	}
	return out, nil
}

// OwnersOf returns who owns the field at a path, something below it, or the atomic value that contains it.
func OwnersOf(entries []Entry, path fieldpath.Path) []FieldManager {
	var owners []FieldManager
	for _, e := range entries {
		if fields.Owns(e.Set, path) {
			owners = append(owners, e.FieldManager)
		}
	}
	return owners
}

// With returns the entry owning set.
func (e Entry) With(set *fieldpath.Set) Entry {
	e.Set = set
	e.raw = metav1.ManagedFieldsEntry{}
	return e
}

// Unownable are the fields that nobody owns.
// k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go
func Unownable() *fieldpath.Set {
	out := fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"),
		fieldpath.MakePathOrDie("kind"),
		fieldpath.MakePathOrDie("metadata"),
	)
	for _, name := range append(kube.ServerMetadata(), "name", "namespace", "clusterName") {
		out.Insert(fieldpath.MakePathOrDie("metadata", name))
	}
	return out
}

// Appliable returns the fields that become ours when v is applied.
func Appliable(v *typed.TypedValue) (*fieldpath.Set, error) {
	set, err := v.ToFieldSet()
	if err != nil {
		return nil, err
	}
	return set.Difference(Unownable()), nil
}

// ApplyEntry finds the entry of what we have applied; nil when there is none.
func ApplyEntry(entries []Entry) *Entry {
	if i := slices.IndexFunc(entries, Entry.isOurApply); i >= 0 {
		return &entries[i]
	}
	return nil
}

func newApplyEntry(apiVersion string, set *fieldpath.Set, at time.Time) Entry {
	ours := FieldManager{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply, Time: at}
	return Entry{FieldManager: ours, APIVersion: apiVersion, Set: set}
}
