package apply

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/apply/provenance"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// A target is one object that the release should have.
type target struct {
	id           kube.ID
	source       string
	obj          *unstructured.Unstructured // as rendered, with its namespace resolved; not to be changed
	mapping      kube.Mapping
	fromCRDs     bool // of crds/: carries no ownership
	isHook       bool
	isPostHook   bool   // it runs when all objects are there
	manifestHash string // of obj and of the policies that shape it
	noKind       error  // the cluster has no such kind, and the object stays behind

	ordering targetOrdering
	waits    waiting
	decided  *Change    // until a plan holds it
	rejected *Rejection // why it can't be decided; nil for a decided one
	progress progress
}

// setDecided says what is decided about a target.
func (t *target) setDecided(c Change) { t.decided, t.rejected = &c, nil }

// rejectedOrDenied returns why an object can't be applied as the chart has it: it is rejected, or the account lacks a permission; nil when
// it can, or isn't decided.
func (t *target) rejectedOrDenied() error {
	switch {
	case t.rejected != nil:
		return t.rejected.Err
	case t.decided != nil && t.decided.denied != nil:
		return t.decided.denied
	}
	return nil
}

// A targetOrdering says what an object is written after.
type targetOrdering struct {
	dependencies []ordering.Dependency // what it says it waits for
	weight       *int                  // that it states
}

// A progress records what has happened to a target since it was first decided.
type progress struct {
	wasAbsent           bool                   // it was observed to be absent, or its kind isn't served
	provenance          *provenance.Provenance // as of the last attempt to write the object
	written             bool                   // an attempt was stored, or may have been
	waitedForFinalizers bool                   // others had their time to let go the object that is being deleted
}

func (t *target) reject(err error) *Rejection {
	return &Rejection{ID: t.id, Source: t.source, Err: err}
}

// A resolver turns manifests into targets.
type resolver struct {
	p                     *planning
	unlistedGroupVersions []string  // that the API server can't list
	refreshKinds          sync.Once // refreshes the list of kinds once
	objectsComeFirst      bool      // the manifests are of hooks whose turn comes when all objects are there
}

// resolve returns the targets of manifests: kinds are found and namespaces filled in.
// Invalid manifests are rejected.
func (r *resolver) resolve(ctx context.Context, manifests []kube.Manifest, fromCRDs bool) ([]*target, error) {
	var out []*target
	for _, m := range manifests {
		t, err := r.newTarget(ctx, m, fromCRDs)
		if rejected, ok := errors.AsType[*Rejection](err); ok {
			r.p.rejected = append(r.p.rejected, *rejected)
		} else if err != nil {
			return nil, err
		} else {
			out = append(out, t)
		}
	}
	return out, kube.ForEach(len(out), runtime.GOMAXPROCS(0), func(i int) error {
		out[i].manifestHash = r.hash(out[i])
		return nil
	})
}

// rejectf returns a Rejection as an error, for errors.As.
func rejectf(id kube.ID, source, field, what, format string, args ...any) error {
	return &Rejection{ID: id, Source: source, Err: &InvalidError{Field: field, Text: fmt.Sprintf(format, args...), Advice: what}}
}

// checkIdentity rejects an object that has no identity or a wrong one.
func checkIdentity(obj *unstructured.Unstructured, source string, fromCRDs bool) error {
	id, gvk := kube.IDOf(obj), obj.GroupVersionKind()
	for _, field := range []string{"name", "namespace"} {
		value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", field)
		name, isText := value.(string)
		if value != nil && !isText {
			return rejectf(id, source, "metadata."+field, "quote it in the template", "is not a string")
		}
		if faults := content.IsPathSegmentName(name); len(faults) > 0 { // no request can name it
			return rejectf(id, source, "metadata."+field, "", "%q %s", name, strings.Join(faults, " and "))
		}
	}
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return rejectf(id, source, "", "", "has no apiVersion and kind")
	case obj.GetName() == "" && (obj.GetGenerateName() == "" || fromCRDs || !decide.IsHook(obj)):
		return rejectf(id, source, "metadata.name", "give it a name; only hooks may have generateName", "is missing")
	}
	return nil
}

func (r *resolver) newTarget(ctx context.Context, m kube.Manifest, fromCRDs bool) (*target, error) {
	obj, source := m.Object, m.Source
	if err := checkIdentity(obj, source, fromCRDs); err != nil {
		return nil, err
	}
	t, gvk := &target{source: source, fromCRDs: fromCRDs, id: kube.IDOf(obj)}, obj.GroupVersionKind()
	mapping, err := r.p.a.cluster.Mapping(ctx, gvk, false)
	released, isReleased := r.p.definitions.kinds[gvk]
	var unknown *kube.NoKindMatchError
	if errors.As(err, &unknown) && !isReleased {
		// Somebody may have created its CRD since the kinds were listed.
		r.refreshKinds.Do(r.p.a.cluster.ForgetKinds)
		mapping, err = r.p.a.cluster.Mapping(ctx, gvk, false)
	}
	switch {
	case errors.As(err, &unknown) && !isReleased:
		mapping = mappingByName(gvk)
		if t.waits.deferral = r.whenKindMayCome(obj, mapping, unknown); t.waits.deferral != nil {
			t.progress.wasAbsent = true // there is nothing of a kind that isn't served
			break
		}
		t.noKind = r.p.definitions.whyUnused(gvk, unknown)
		if !r.goesWithoutKind(ctx, obj) {
			return nil, &Rejection{ID: t.id, Source: source, Err: t.noKind}
		}
		t.waits.deferral = &Deferral{Reason: unknown.Error(), Until: []kube.ID{r.p.prerequisites.expectKind(mapping)}}
	case errors.As(err, &unknown):
		mapping, t.mapping = released, released
		r.p.prerequisites.expect(t.definition())
		t.waits.deferral = t.waits.deferral.with(t.definition(), fmt.Sprintf("kind %s comes with this release; checked against the schema of its CustomResourceDefinition only", gvk.Kind))
	case err != nil:
		return nil, &ObjectError{ID: t.id, Source: source, Doing: "looking for the kind of", Err: err}
	}
	t.mapping, t.obj = mapping, r.inNamespace(obj, mapping)
	t.id = kube.IDOf(t.obj)
	return t, nil
}

// goesWithoutKind reports whether the others go back to an earlier revision although the kind of one of its objects is gone. Where
// only the version is, another one can be stated.
func (r *resolver) goesWithoutKind(ctx context.Context, obj *unstructured.Unstructured) bool {
	if r.p.req.BackTo == 0 || decide.IsHook(obj) {
		return false
	}
	_, err := r.p.a.cluster.Mapping(ctx, obj.GroupVersionKind(), true)
	return errors.As(err, new(*kube.NoKindMatchError))
}

// whenKindMayCome returns what a target has to wait for whose kind neither the cluster nor the release has, and may have then: a
// hook may bring it, or a program of the release. It is nil when nothing can.
func (r *resolver) whenKindMayCome(obj *unstructured.Unstructured, mapping kube.Mapping, unknown *kube.NoKindMatchError) *Deferral {
	switch prerequisites := r.p.prerequisites; {
	case kube.IsBuiltinGroup(mapping.GVK.Group):
	case len(prerequisites.hooks) > 0 && obj != r.p.req.Hooks[0].Object:
		return prerequisites.untilHooksRan(unknown.Error())
	case r.objectsComeFirst:
		return &Deferral{Reason: "the objects come first: " + unknown.Error(), Until: []kube.ID{prerequisites.expectKind(mapping)}}
	}
	return nil
}

// mappingByName guesses how a kind is served that isn't yet.
func mappingByName(gvk schema.GroupVersionKind) kube.Mapping {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return kube.Mapping{GVK: gvk, Resource: resource, Namespaced: true}
}

// targetOfServedKind returns a target that is only for reading an object ahead of time; false
// for an invalid manifest, and where the cluster doesn't serve the kind.
func (r *resolver) targetOfServedKind(ctx context.Context, obj *unstructured.Unstructured, source string) (*target, bool) {
	if obj.GetName() == "" || checkIdentity(obj, source, false) != nil {
		return nil, false
	}
	mapping, err := r.p.a.cluster.Mapping(ctx, obj.GroupVersionKind(), false)
	if err != nil {
		return nil, false
	}
	obj = r.inNamespace(obj, mapping)
	return &target{id: kube.IDOf(obj), source: source, obj: obj, mapping: mapping}, true
}

// refresh looks up the kind of a target again if its CRD has been written in the meantime.
func (r *resolver) refresh(ctx context.Context, t *target) error {
	if !t.waits.deferral.waitsFor(t.definition()) {
		return nil
	}
	mapping, err := r.p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
	if errors.As(err, new(*kube.NoKindMatchError)) {
		r.p.a.cluster.ForgetKinds()
		mapping, err = r.p.a.cluster.Mapping(ctx, t.mapping.GVK, false)
	}
	if unknown, ok := errors.AsType[*kube.NoKindMatchError](err); ok {
		return &Rejection{ID: t.id, Source: t.source, Err: unknown}
	}
	if err != nil {
		return &ObjectError{ID: t.id, Source: t.source, Doing: "looking for the kind of", Err: err}
	}
	t.mapping = mapping
	return nil
}

// inNamespace returns obj with the namespace that the server will see it in: none for a kind of
// cluster scope, the release's when it names none. The release's is set in obj itself, because
// the copies of thousands of objects, with those of earlier revisions, would be held all along.
func (r *resolver) inNamespace(obj *unstructured.Unstructured, m kube.Mapping) *unstructured.Unstructured {
	switch namespace := obj.GetNamespace(); {
	case m.Namespaced && namespace == "":
		obj.SetNamespace(r.p.a.owner.Namespace)
	case !m.Namespaced && namespace != "":
		obj = kube.ShallowCopy(obj)
		obj.SetNamespace("")
	}
	return obj
}

// hashFormat must change when the same manifest and options lead to another request. Then
// older fingerprints no longer match.
const hashFormat = "1"

func (r *resolver) hash(t *target) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", hashFormat, r.p.a.owner, r.p.a.opts.Conflicts, r.p.a.opts.Validation)
	if r.p.a.opts.RevertManual {
		fmt.Fprintln(h, "revert")
	}
	if t.fromCRDs {
		fmt.Fprintln(h, "crds/") // it loses its ownership when it is moved there
	}
	manifest, err := json.Marshal(t.obj.Object)
	if err != nil {
		return "" // no fingerprint: it will be looked at
	}
	h.Write(manifest)
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil)[:12])
}

// rejectDuplicates rejects objects that are in the release more than once: applied in
// turn, the second would remove the fields of the first. A hook may have the name of another one,
// whose object is deleted before its turn.
func (r *resolver) rejectDuplicates(targets []*target) {
	seen := map[kube.ID]*target{}
	for _, t := range targets {
		first, ok := seen[t.id]
		if !ok || t.id.Name == "" || t.isHook {
			seen[t.id] = cmp.Or(first, t)
			continue
		}
		text := "is rendered twice"
		if first.source != "" && first.source != t.source {
			text += ", here and in " + first.source
		}
		r.p.rejected = append(r.p.rejected, *t.reject(&InvalidError{Text: text, Advice: "keep one of the two"}))
	}
}

// kindsNamedBy are the kinds that a reference may mean.
func (r *resolver) kindsNamedBy(ctx context.Context, named annotation.Dependency) ([]kube.Mapping, error) {
	if named.Kind == "" {
		return nil, nil
	}
	all, err := r.p.a.cluster.MappingsFor(ctx, named.Kind)
	for gvk, m := range r.p.definitions.kinds {
		if strings.EqualFold(named.Kind, gvk.Kind) || strings.EqualFold(named.Kind, m.Resource.Resource) {
			all = append(all, m)
		}
	}
	var out []kube.Mapping
	for _, m := range all {
		same := func(n kube.Mapping) bool { return n.GVK.GroupKind() == m.GVK.GroupKind() }
		if (!named.HasGroup || named.Group == m.GVK.Group) && !slices.ContainsFunc(out, same) {
			out = append(out, m)
		}
	}
	return out, err
}

// namespaceForReferences is the namespace that the references of an object mean.
func (r *resolver) namespaceForReferences(id kube.ID) string {
	return cmp.Or(id.Namespace, r.p.a.owner.Namespace)
}
