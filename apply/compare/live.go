package compare

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/ownership"
)

// A Live is a live object as the schema of its kind reads it, and the owners of its fields.
type Live struct {
	Converter managedfields.TypeConverter // has the schema
	Object    *unstructured.Unstructured
	Value     *typed.TypedValue // Object without managedFields
	Fields    *fieldpath.Set    // of Value
	Entries   []ownership.Entry // of the managedFields
}

// NewLive reads a live object. It fails if the object doesn't fit the schema, or has managedFields
// that can't be parsed.
func NewLive(conv managedfields.TypeConverter, obj *unstructured.Unstructured) (*Live, error) {
	l := &Live{Converter: conv, Object: obj}
	var err error
	if l.Value, err = Typed(conv, WithoutManagedFields(obj)); err != nil {
		return nil, err
	}
	if l.Fields, err = l.Value.ToFieldSet(); err != nil {
		return nil, err
	}
	l.Entries, err = ownership.Parse(obj.GetManagedFields())
	return l, err
}

// FieldSet returns the fields of an object, without those of managedFields.
func FieldSet(conv managedfields.TypeConverter, obj *unstructured.Unstructured) (*fieldpath.Set, error) {
	v, err := Typed(conv, WithoutManagedFields(obj))
	if err != nil {
		return nil, err
	}
	return v.ToFieldSet()
}

// Differences compares the live object with what it will be.
func (l *Live) Differences(after *unstructured.Unstructured) (*typed.Comparison, error) {
	v, err := Typed(l.Converter, WithoutManagedFields(after))
	if err != nil {
		return nil, err
	}
	return l.Value.Compare(v)
}
