package annotation

import (
	"cmp"
	"slices"
)

// An Order is what an object's annotations say about its turn.
type Order struct {
	Dependencies []Dependency
	Weight       *int     // nil when none is stated
	Problems     []string // what can't be read, and why
}

// OrderOf reads the annotations about order. Nelm ignores the weight of an object that has dependencies.
// Our own weight counts beside them.
func OrderOf(annotations map[string]string) Order {
	var o Order
	var read []stated[[]Dependency]
	for _, key := range []*Key[[]Dependency]{DependsOn, ExternalDependencies} {
		read = slices.AppendSeq(read, key.stated(annotations))
	}
	slices.SortFunc(read, func(a, b stated[[]Dependency]) int { return cmp.Compare(a.name, b.name) })
	for _, s := range read {
		o.addProblems(s.err)
		for _, d := range s.value {
			d.Annotation = s.name
			if namespace, ok := namespaceBeside(s.name, annotations); ok {
				d.Namespace = namespace
			}
			o.Dependencies = append(o.Dependencies, d)
		}
	}
	_, ours := annotations[Weight.Name]
	for s := range Weight.stated(annotations) {
		if s.name != Weight.Name && (ours || len(o.Dependencies) > 0) {
			continue
		}
		if o.addProblems(s.err); s.err == nil {
			o.Weight = &s.value
		}
	}
	return o
}

func (o *Order) addProblems(err *ValueError) {
	if err == nil {
		return
	}
	if several, ok := err.Err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			o.Problems = append(o.Problems, err.Name+": "+one.Error())
		}
		return
	}
	o.Problems = append(o.Problems, err.Error())
}
