package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
)

func TestUnlikeServer(t *testing.T) {
	networking := k8sschema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	for version, unlike := range map[string]bool{
		"v1.29.15": true, "v1.30.14+k3s1": true, "v1.30.2-eks-036c24b": true,
		"v1.31.0": false, "v1.36.3": false, "v2.0.0": false, "": false, "unknown": false,
	} {
		if got := GroupVersionsUnlike(version)[networking]; got != unlike {
			t.Errorf("UnlikeServer(%q) has %s: %v, want %v", version, networking, got, unlike)
		}
	}
}

// The API server merges objects as the schemas here say, or its own are used. This finds
// differences when it is run against older API servers, too: make test-skew.
func TestTypesMergeAsOnTheServer(t *testing.T) {
	c := kubetest.Start(t)
	cluster := kube.New(c.Config(), "default")
	server, err := cluster.ServerInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		mapping, err := cluster.Mapping(t.Context(), gvk, false)
		if err != nil || GroupVersionsUnlike(server.Version)[gvk.GroupVersion()] {
			continue
		}
		theirs, err := cluster.TypeConverter(t.Context(), gvk.GroupVersion())
		if err != nil {
			t.Fatal(err)
		}
		a, b := typeOf(ours, gvk), typeOf(theirs, gvk)
		if a == nil || b == nil {
			continue
		}
		compared++
		d := differ{a: a.schema, b: b.schema, seen: map[string]bool{}, skipStatus: mapping.HasStatus}
		d.compare("", a.ref, b.ref)
		for _, text := range d.found {
			t.Errorf("%s%s", gvk.Kind, text)
		}
	}
	if compared < 40 {
		t.Errorf("only %d kinds could be compared", compared)
	}
}

type typeIn struct {
	schema *schema.Schema
	ref    schema.TypeRef
}

// typeOf finds the type of a kind; nil when there is none.
func typeOf(conv managedfields.TypeConverter, gvk k8sschema.GroupVersionKind) *typeIn {
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(gvk)
	v, err := conv.ObjectToTyped(empty)
	if err != nil {
		return nil
	}
	return &typeIn{v.Schema(), v.TypeRef()}
}

// A differ finds the maps and lists of one type that two schemas merge differently.
type differ struct {
	a, b       *schema.Schema
	seen       map[string]bool
	skipStatus bool // charts don't state it
	found      []string
}

func (d *differ) compare(path string, ra, rb schema.TypeRef) {
	if ra.NamedType != nil {
		if d.seen[*ra.NamedType] {
			return
		}
		d.seen[*ra.NamedType] = true
	}
	a, inA := d.a.Resolve(ra)
	b, inB := d.b.Resolve(rb)
	switch {
	case !inA || !inB:
		d.found = append(d.found, path+": has no type")
	case a.Map != nil && b.Map != nil:
		d.note(path, a.Map.ElementRelationship, b.Map.ElementRelationship)
		for _, f := range a.Map.Fields {
			if g, ok := b.Map.FindField(f.Name); ok && !(d.skipStatus && path == "" && f.Name == "status") {
				d.compare(path+"."+f.Name, f.Type, g.Type)
			}
		}
		if none := (schema.TypeRef{}); a.Map.ElementType != none && b.Map.ElementType != none {
			d.compare(path+".*", a.Map.ElementType, b.Map.ElementType)
		}
	case a.List != nil && b.List != nil:
		d.note(path, a.List.ElementRelationship, b.List.ElementRelationship)
		if !slices.Equal(a.List.Keys, b.List.Keys) {
			d.found = append(d.found, fmt.Sprintf("%s: keys %s here, %s there", path, strings.Join(a.List.Keys, ","), strings.Join(b.List.Keys, ",")))
		}
		d.compare(path+"[]", a.List.ElementType, b.List.ElementType)
	case a.Scalar == nil || b.Scalar == nil:
		d.found = append(d.found, path+": has another structure")
	}
}

func (d *differ) note(path string, a, b schema.ElementRelationship) {
	if a != b {
		d.found = append(d.found, fmt.Sprintf("%s: %q here, %q there", path, a, b))
	}
}
