// Package annotation is the one list of the annotations that objects of a release
// may have for deployer: their names, the names that Nelm and werf have for the
// same, how values are read, and which packages act on them.
//
// To add an annotation, define it in list.go and read it in the packages that it
// names. docs/annotations.md is made from the list.
package annotation

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Prefix is that of deployer's own annotations and labels.
	Prefix = "deployer.io/"

	// WerfPrefix is that of the annotations of Nelm and werf.
	// https://werf.io/docs/v2/reference/deploy_annotations.html
	WerfPrefix = "werf.io/"
)

// Info is what is known of an annotation without its type. A * in a name stands
// for any text, such as the name of a container.
type Info struct {
	Name     string
	Aliases  []string           // names of Nelm and werf with the same meaning
	Values   string             // that it takes, in Markdown
	Doc      string             // what it means, in one line
	Packages []string           // that read it
	Kinds    []schema.GroupKind // that it has an effect on; nil for all
}

// A Key is an annotation with values of type T.
type Key[T any] struct {
	Info
	parse   func(text string) (T, error)
	aliases []alias[T]
}

// An alias is another name of an annotation, with values of its own.
type alias[T any] struct {
	name  string
	parse func(text string) (T, error)
}

// A ValueError says that the value of an annotation can't be read.
type ValueError struct {
	Name string // of the annotation, as the object has it
	Err  error
}

func (e *ValueError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap gives what is wrong with the value.
func (e *ValueError) Unwrap() error { return e.Err }

// Read gives the value that an object's annotations state. Our name counts before
// its aliases; ok is false when there is no value that can be read.
func (k *Key[T]) Read(annotations map[string]string) (value T, ok bool, errs []*ValueError) {
	values, errs := k.ReadAll(annotations)
	if len(values) == 0 {
		return value, false, errs
	}
	return values[len(values)-1], true, errs
}

// ReadAll gives the values under all names that state one, our own last.
func (k *Key[T]) ReadAll(annotations map[string]string) (values []T, errs []*ValueError) {
	for s := range k.stated(annotations) {
		if s.err != nil {
			errs = append(errs, s.err)
			continue
		}
		values = append(values, s.value)
	}
	return values, errs
}

// ReadEach gives the values of an annotation whose name has a *, by what stands in
// its place.
func (k *Key[T]) ReadEach(annotations map[string]string) (values map[string]T, errs []*ValueError) {
	values = map[string]T{}
	for s := range k.stated(annotations) {
		if s.err != nil {
			errs = append(errs, s.err)
			continue
		}
		values[s.wildcard] = s.value
	}
	return values, errs
}

// A stated value is what one annotation of an object says. With an error, the value
// is as much as can be read.
type stated[T any] struct {
	name     string // as the object has it
	wildcard string // what the * of the key's name stands for
	value    T
	err      *ValueError
}

// stated reads the annotation under all of its names, our own last.
func (k *Key[T]) stated(annotations map[string]string) iter.Seq[stated[T]] {
	return func(yield func(stated[T]) bool) {
		for _, known := range append(k.aliases[:len(k.aliases):len(k.aliases)], alias[T]{k.Name, k.parse}) {
			for _, name := range matching(known.name, annotations) {
				s := stated[T]{name: name}
				s.wildcard, _ = match(known.name, name)
				var err error
				if s.value, err = known.parse(annotations[name]); err != nil {
					s.err = &ValueError{Name: name, Err: err}
				}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// matching lists the annotations that a name stands for, in order.
func matching(name string, annotations map[string]string) []string {
	if !strings.Contains(name, "*") {
		if _, ok := annotations[name]; ok {
			return []string{name}
		}
		return nil
	}
	var out []string
	for _, annotation := range slices.Sorted(maps.Keys(annotations)) {
		if _, ok := match(name, annotation); ok {
			out = append(out, annotation)
		}
	}
	return out
}

// match compares an annotation with a name, and gives what the * of the name
// stands for.
func match(name, annotation string) (wildcard string, ok bool) {
	before, after, hasWildcard := strings.Cut(name, "*")
	if !hasWildcard {
		return "", name == annotation
	}
	if len(annotation) < len(before)+len(after) || !strings.HasPrefix(annotation, before) || !strings.HasSuffix(annotation, after) {
		return "", false
	}
	return annotation[len(before) : len(annotation)-len(after)], true
}

// all are the annotations that are defined.
var all []*Info

// define adds an annotation to the list.
func define[T any](info Info, parse func(string) (T, error), aliases ...alias[T]) *Key[T] {
	k := &Key[T]{Info: info, parse: parse, aliases: aliases}
	for _, a := range aliases {
		k.Aliases = append(k.Aliases, a.name)
	}
	all = append(all, &k.Info)
	return k
}

// All lists the annotations by name.
func All() []Info {
	out := make([]Info, 0, len(all))
	for _, info := range all {
		out = append(out, *info)
	}
	slices.SortFunc(out, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// find gives the annotation that a name is of; nil when there is none.
func find(annotation string) *Info {
	for _, info := range all {
		for _, name := range append([]string{info.Name}, info.Aliases...) {
			if _, ok := match(name, annotation); ok {
				return info
			}
		}
	}
	return nil
}

// WithoutEffect says which annotations of deployer, Nelm and werf have no effect on
// an object of a kind, and why. An empty kind is one that isn't known.
func WithoutEffect(annotations map[string]string, kind schema.GroupKind) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(name, Prefix) && !strings.HasPrefix(name, WerfPrefix) {
			continue
		}
		if why := whyWithoutEffect(name, kind); why != "" {
			out = append(out, "annotation "+name+" "+why)
		}
	}
	return out
}

// whyWithoutEffect is empty for an annotation that has an effect.
func whyWithoutEffect(name string, kind schema.GroupKind) string {
	if info := find(name); info != nil {
		if kind.Kind == "" || info.Kinds == nil || slices.Contains(info.Kinds, kind) {
			return ""
		}
		return fmt.Sprintf("has no effect on objects of kind %s: it is for %s", kind.Kind, kindNames(info.Kinds))
	}
	for known, instead := range ofWerf {
		if _, ok := match(known, name); !ok {
			continue
		}
		if instead == "" {
			return ""
		}
		return "has no effect: " + instead
	}
	return "is not known and has no effect"
}

func kindNames(kinds []schema.GroupKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.Kind
	}
	return strings.Join(names, ", ")
}
