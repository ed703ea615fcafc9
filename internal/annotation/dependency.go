package annotation

import (
	"errors"
	"fmt"
	"strings"
)

// A Dependency names objects that another one waits for. Of a pattern, an empty field
// matches anything.
type Dependency struct {
	Annotation string // that states it
	Text       string // as written there
	Object
	State     string // StateReady or StatePresent
	External  bool   // somebody else makes the object, maybe later
	IsPattern bool   // as many objects as match, which is Nelm's form
}

// An Object is how people name an object.
type Object struct {
	Kind      string // or what else people call it: plural, short name
	Group     string
	Version   string
	Namespace string // empty: that of the object that waits
	Name      string
	HasGroup  bool // the group is stated, even if it is the empty one
}

// The states of dependencies.
const (
	StateReady   = "ready" // as tracking defines it
	StatePresent = "present"
)

// String is the dependency as the object has it.
func (d Dependency) String() string { return d.Annotation + ": " + d.Text }

// ParseObject reads kind/name, kind/namespace/name or group/kind/namespace/name. The
// kind may have its group behind it, as with kubectl: deployment.apps.
func ParseObject(text string) (o Object, ok bool) {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		o.Kind, o.Name = parts[0], parts[1]
	case 3:
		o.Kind, o.Namespace, o.Name = parts[0], parts[1], parts[2]
	case 4:
		o.Group, o.Kind, o.Namespace, o.Name, o.HasGroup = parts[0], parts[1], parts[2], parts[3], true
	}
	if kind, group, found := strings.Cut(o.Kind, "."); found && !o.HasGroup {
		o.Kind, o.Group, o.HasGroup = kind, group, true
	}
	return o, o.Kind != "" && o.Name != "" && (len(parts) != 3 || o.Namespace != "")
}

// dependencyList reads objects that are separated by commas or blanks, each with
// =ready or =present behind it.
func dependencyList(external bool) func(string) ([]Dependency, error) {
	return func(text string) ([]Dependency, error) {
		var out []Dependency
		var errs []error
		for _, entry := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
			d, err := dependencyEntry(entry, external)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, d)
		}
		return out, errors.Join(errs...)
	}
}

func dependencyEntry(text string, external bool) (Dependency, error) {
	d := Dependency{Text: text, State: StateReady, External: external}
	object, state, stated := strings.Cut(text, "=")
	if stated {
		d.State = state
	}
	if d.State != StateReady && d.State != StatePresent {
		return d, fmt.Errorf("the state in %q is neither ready nor present", text)
	}
	var ok bool
	if d.Object, ok = ParseObject(object); !ok {
		return d, fmt.Errorf("%q is not an object: write kind/name, kind/namespace/name or group/kind/namespace/name,"+
			" with =present behind it if it need not be ready", text)
	}
	return d, nil
}

// dependencyProperties reads Nelm's form: state=ready,kind=Deployment,name=web.
// https://github.com/werf/nelm/blob/main/docs/reference.md
func dependencyProperties(external bool) func(string) ([]Dependency, error) {
	return func(text string) ([]Dependency, error) {
		d := Dependency{Text: text, External: external, IsPattern: true}
		if external {
			d.State = StateReady
		}
		fields := map[string]*string{"kind": &d.Kind, "group": &d.Group, "version": &d.Version, "namespace": &d.Namespace, "name": &d.Name}
		some := false
		for _, pair := range strings.Split(text, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			field := fields[key]
			switch {
			case key == "state" && (value == StateReady || value == StatePresent):
				d.State = value
			case key == "state":
				return nil, fmt.Errorf("the state in %q is neither ready nor present", text)
			case field == nil || value == "":
				return nil, fmt.Errorf("%q in %q is none of state=, kind=, name=, namespace=, group= and version= with a value", pair, text)
			default:
				*field, some = value, true
			}
		}
		d.HasGroup = d.Group != ""
		switch {
		case !some:
			return nil, fmt.Errorf("%q names no object", text)
		case d.State == "":
			return nil, fmt.Errorf("%q lacks state=ready or state=present", text)
		case external && (d.Kind == "" || d.Name == ""):
			return nil, fmt.Errorf("%q lacks kind= or name=, and an object outside of the release has to be named", text)
		}
		return []Dependency{d}, nil
	}
}

// dependencyResource reads Nelm's kind/name or kind.version.group/name.
func dependencyResource(text string) ([]Dependency, error) {
	d := Dependency{Text: text, State: StateReady, External: true, IsPattern: true}
	kind, name, ok := strings.Cut(strings.TrimSpace(text), "/")
	d.Name = name
	d.Kind, d.Group, d.HasGroup = strings.Cut(kind, ".")
	if !ok || d.Kind == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not an object: write kind/name or kind.version.group/name", text)
	}
	if d.HasGroup {
		d.Version, d.Group, _ = strings.Cut(d.Group, ".")
		if d.Group == "" { // deployments.apps is read as kubectl does
			d.Version, d.Group = "", d.Version
		}
	}
	return []Dependency{d}, nil
}

// namespaceBeside returns the namespace of the object that NAME.external-dependency.werf.io/resource names.
// Another annotation states it.
func namespaceBeside(name string, annotations map[string]string) (namespace string, ok bool) {
	prefix, ok := strings.CutSuffix(name, ".external-dependency.werf.io/resource")
	if !ok {
		return "", false
	}
	namespace, ok = annotations[prefix+".external-dependency.werf.io/namespace"]
	return namespace, ok
}
