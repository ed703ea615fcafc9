package apply

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations by which an object says when its turn comes.
const (
	DependsOnAnnotation = "deployer.io/depends-on"            // objects of the release, or that are there already
	ExternalAnnotation  = "deployer.io/external-dependencies" // objects that somebody else makes, maybe later
	WeightAnnotation    = "deployer.io/weight"                // a number: after all that have a lower one
)

// Nelm's words for the same.
// https://github.com/werf/nelm/blob/main/docs/reference.md
const (
	werfWeight        = "werf.io/weight"
	werfDependency    = "werf.io/deploy-dependency-"   // and a name
	werfExternal      = "werf.io/external-dependency-" // and a name
	werfDependencyOld = ".dependency.werf.io"          // behind a name
	werfExternalOld   = ".external-dependency.werf.io" // behind a name
	werfExternalName  = werfExternalOld + "/resource"  // behind a name; its namespace is at "/namespace"
)

// State is what an object has to be for another one's turn to come.
type State string

// The states.
const (
	Ready   State = "ready"   // as tracking judges it: a Job is complete, a Deployment rolled out
	Present State = "present" // applied; or there, if it isn't the release's
	Gone    State = "gone"    // deleted, where objects are deleted in turn
)

// wishes are what an object says about its turn.
type wishes struct {
	refs     []reference
	weight   *int
	problems []string
}

// A reference names objects that another one waits for. An empty field of a
// loose one matches anything.
type reference struct {
	from      string // annotation
	text      string // as written there
	kind      string // or what else people call it: plural, short name
	group     string
	version   string
	namespace string // empty: that of the object that waits
	name      string
	grouped   bool // group is said, even if it is the empty one
	state     State
	outside   bool // somebody else makes it, maybe later
	loose     bool // of Nelm: as many objects as fit
}

func (r reference) String() string { return r.from + ": " + r.text }

// wishesOf reads an object's annotations.
func wishesOf(obj *unstructured.Unstructured) wishes {
	var w wishes
	said := obj.GetAnnotations()
	keys := make([]string, 0, len(said))
	for key := range said {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		w.read(key, said[key], said)
	}
	// With Nelm dependencies count and not the weight; ours both do.
	if w.weight == nil && len(w.refs) == 0 {
		w.weigh(said, werfWeight)
	}
	return w
}

func (w *wishes) read(key, value string, said map[string]string) {
	switch {
	case key == DependsOnAnnotation || key == ExternalAnnotation:
		for _, text := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
			w.add(parseReference(key, text))
		}
	case key == WeightAnnotation:
		w.weigh(said, key)
	case strings.HasSuffix(key, werfExternalName):
		w.add(parseResource(key, value, said[strings.TrimSuffix(key, "/resource")+"/namespace"]))
	case strings.HasSuffix(key, werfExternalOld), strings.HasPrefix(key, werfExternal):
		w.add(parseProperties(key, value, true))
	case strings.HasSuffix(key, werfDependencyOld), strings.HasPrefix(key, werfDependency):
		w.add(parseProperties(key, value, false))
	}
}

func (w *wishes) add(r reference, problem string) {
	if problem != "" {
		w.problems = append(w.problems, problem)
		return
	}
	w.refs = append(w.refs, r)
}

func (w *wishes) weigh(said map[string]string, key string) {
	value, ok := said[key]
	if !ok {
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		w.problems = append(w.problems, fmt.Sprintf("%s: %q is not a whole number", key, value))
		return
	}
	w.weight = &n
}

// parseReference reads kind/name, kind/namespace/name or group/kind/namespace/name,
// each with =ready or =present behind it. The kind may have its group behind it,
// as with kubectl: deployment.apps.
func parseReference(from, text string) (reference, string) {
	r := reference{from: from, text: text, state: Ready, outside: from == ExternalAnnotation}
	object, state, stated := strings.Cut(text, "=")
	if stated {
		r.state = State(state)
	}
	if r.state != Ready && r.state != Present {
		return r, fmt.Sprintf("%s: the state in %q is neither ready nor present", from, text)
	}
	if !r.object(object) {
		return r, fmt.Sprintf("%s: %q is not an object: write kind/name, kind/namespace/name or group/kind/namespace/name,"+
			" with =present behind it if it need not be ready", from, text)
	}
	return r, ""
}

// object reads the name of an object, as parseReference has it; false when it is none.
func (r *reference) object(text string) bool {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		r.kind, r.name = parts[0], parts[1]
	case 3:
		r.kind, r.namespace, r.name = parts[0], parts[1], parts[2]
	case 4:
		r.group, r.kind, r.namespace, r.name, r.grouped = parts[0], parts[1], parts[2], parts[3], true
	}
	if kind, group, ok := strings.Cut(r.kind, "."); ok && !r.grouped {
		r.kind, r.group, r.grouped = kind, group, true
	}
	return r.kind != "" && r.name != "" && (len(parts) != 3 || r.namespace != "")
}

// parseProperties reads state=ready,kind=Deployment,name=web and the like.
func parseProperties(from, text string, outside bool) (reference, string) {
	r := reference{from: from, text: text, outside: outside, loose: true}
	if outside {
		r.state = Ready
	}
	fields := map[string]*string{"kind": &r.kind, "group": &r.group, "version": &r.version, "namespace": &r.namespace, "name": &r.name}
	some := false
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		field := fields[key]
		switch {
		case key == "state" && (value == string(Ready) || value == string(Present)):
			r.state = State(value)
		case key == "state":
			return r, fmt.Sprintf("%s: the state in %q is neither ready nor present", from, text)
		case field == nil || value == "":
			return r, fmt.Sprintf("%s: %q in %q is none of state=, kind=, name=, namespace=, group= and version= with a value", from, pair, text)
		default:
			*field, some = value, true
		}
	}
	r.grouped = r.group != ""
	switch {
	case !some:
		return r, fmt.Sprintf("%s: %q names no object", from, text)
	case r.state == "":
		return r, fmt.Sprintf("%s: %q lacks state=ready or state=present", from, text)
	case outside && (r.kind == "" || r.name == ""):
		return r, fmt.Sprintf("%s: %q lacks kind= or name=, and an object outside of the release has to be named", from, text)
	}
	return r, ""
}

// parseResource reads kind/name or kind.version.group/name.
func parseResource(from, text, namespace string) (reference, string) {
	r := reference{from: from, text: text, namespace: namespace, state: Ready, outside: true, loose: true}
	kind, name, ok := strings.Cut(strings.TrimSpace(text), "/")
	r.name = name
	r.kind, r.group, r.grouped = strings.Cut(kind, ".")
	if !ok || r.kind == "" || name == "" || strings.Contains(name, "/") {
		return r, fmt.Sprintf("%s: %q is not an object: write kind/name or kind.version.group/name", from, text)
	}
	if r.grouped {
		r.version, r.group, _ = strings.Cut(r.group, ".")
		if r.group == "" { // deployments.apps is read as kubectl does
			r.version, r.group = "", r.version
		}
	}
	return r, ""
}
