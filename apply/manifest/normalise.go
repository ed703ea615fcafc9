// Package manifest turns a rendered object into one that server-side apply accepts, and
// says what it had to change. It makes no requests.
//
// Helm 3 sends manifests by POST and PATCH, which accept much that server-side apply
// rejects: unknown fields, nulls, duplicate list items, write-only fields. This package
// repairs those; what is ambiguous is an error.
package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/internal/kube"
)

// UnknownFieldPolicy says what to do with fields that the schema doesn't have.
type UnknownFieldPolicy int

// The policies.
const (
	Drop         UnknownFieldPolicy = iota // drop them and note it
	Refuse                                 // a problem
	DropSilently                           // drop them
)

// Rules are the rules for Normalise.
type Rules struct {
	Type           typed.ParseableType // zero when the kind has no known schema
	UnknownFields  UnknownFieldPolicy
	Status         bool // the kind has a status subresource, so status is dropped
	DropDuplicates bool // leave out the items listed in Result.Duplicates
}

// A Note is something that was changed, or that can't be.
type Note struct {
	Path string // spec.template.spec.containers[0].env[2]
	Text string
}

func (n Note) String() string {
	if n.Path == "" {
		return n.Text
	}
	return n.Path + ": " + n.Text
}

// Result is a normalised object and what there is to say about it. With
// Problems, Object must not be applied.
type Result struct {
	Object         *unstructured.Unstructured
	Notes          []Note // changed, and worth telling
	Problems       []Note // ambiguous or wrong
	Duplicates     []Note // different list items with the same key, which only POST or PUT accept
	SchemaMismatch bool   // there are fields the schema doesn't have, or values of other types
}

// Normalise returns a copy of obj that says the same and can be applied. It
// leaves namespaces and ownership to the caller. Values of Secrets don't appear
// in notes or problems.
func Normalise(obj *unstructured.Unstructured, rules Rules) Result {
	out := obj.DeepCopy()
	n := &normaliser{rules: rules, Result: Result{Object: out}}
	n.normaliseMetadata(out)
	n.normaliseByKind(out)
	if rules.Type.Schema != nil {
		n.normaliseValue("", out.Object, rules.Type.TypeRef)
	}
	dropCreationTimestamps(out.Object)
	return n.Result
}

type normaliser struct {
	rules Rules
	Result
}

func (n *normaliser) addNote(path, format string, args ...any) {
	n.Notes = append(n.Notes, Note{path, fmt.Sprintf(format, args...)})
}

func (n *normaliser) addProblem(path, format string, args ...any) {
	n.Problems = append(n.Problems, Note{path, fmt.Sprintf(format, args...)})
}

func (n *normaliser) normaliseMetadata(obj *unstructured.Unstructured) {
	if meta, ok := obj.Object["metadata"].(map[string]any); ok {
		for _, name := range kube.ServerMetadata() {
			delete(meta, name)
		}
		for _, name := range []string{"labels", "annotations"} {
			if _, isMap := meta[name].(map[string]any); !isMap && meta[name] != nil {
				n.addProblem("metadata."+name, "is a %s, should be a map", typeName(meta[name]))
				delete(meta, name)
			}
			n.normaliseStrings(meta, "metadata", name)
		}
	}
	if n.rules.Status {
		delete(obj.Object, "status")
	}
}

// dropCreationTimestamps removes creationTimestamp: null, which Go programs
// write into templates of pods and claims too.
func dropCreationTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok {
			if t, has := meta["creationTimestamp"]; has && t == nil {
				delete(meta, "creationTimestamp")
			}
		}
		for _, child := range v {
			dropCreationTimestamps(child)
		}
	case []any:
		for _, child := range v {
			dropCreationTimestamps(child)
		}
	}
}
