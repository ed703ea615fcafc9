package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/apply/predict"
	"deployer/apply/verify"
)

// Facts are what the rules decide about an object by, besides its manifest, the request and the options.
type facts struct {
	observation
	attempts    int                         // how often the object has changed while it was decided about
	desired     *unstructured.Unstructured  // what the manifest comes to by the schema
	replacement replacement                 // why the object is written whole
	converter   managedfields.TypeConverter // has the schema
	isServed    bool                        // of a definition that can't be read: its kinds are there

	// What only some decisions need.
	now            answer[observation]                   // what is there, of an object that seemed to be absent
	inOtherVersion answer[*metav1.PartialObjectMetadata] // what there is of an object whose version comes with the release
	update         answer[updateFacts]                   // of an object that is there
	unforced       answer[[]metav1.StatusCause]          // why the API server wouldn't take fields from others
	trials         []tried                               // in order
	version        answer[map[string]any]                // of the definition of a custom resource
	adviceFirst    answer[string]                        // what somebody has to do before the object can be recreated; empty for nothing
	isValid        answer[bool]                          // in another namespace, of an object whose own comes with the release
	givenBack      answer[Change]                        // what an object becomes that is given back
	holder         answer[string]                        // of what the API server refuses an object for
}

// factsOf collects what a decision begins with. The error is a *Rejection if the manifest can't be applied.
func (p *planning) factsOf(ctx context.Context, t *target, s observation, attempts int) (*facts, error) {
	f := &facts{observation: s, attempts: attempts}
	var err error
	if f.desired, f.replacement, err = p.normalise(ctx, t); err != nil {
		return f, err
	}
	if f.converter, _, err = p.schemas.of(ctx, t.mapping.GVK); err != nil {
		return f, &ObjectError{ID: t.id, Source: t.source, Doing: "checking", Err: err}
	}
	f.isServed = s.forbidden && t.id.IsCRD() && p.definitions.isServed(ctx, t)
	return f, nil
}

// changedByServer lists the fields of a new object whose applied values the server changes; none when the object can't be
// read by its schema: the server has accepted it.
func changedByServer(conv managedfields.TypeConverter, desired, result *unstructured.Unstructured) []compare.FieldChange {
	if compare.Satisfies(result.Object, desired.Object) {
		return nil
	}
	all, err := compare.Fields(conv, compare.States{Before: desired, After: result, Desired: desired})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(f compare.FieldChange) bool { return f.Type == compare.Added })
}

// updateFacts are what an update of a live object is decided by besides.
type updateFacts struct {
	live          *compare.Live // nil: the schema wasn't the server's, and the decision begins again
	isMisfit      bool          // the live object doesn't fit its schema
	unconverted   bool          // not all of it can be read yet: nobody converts it
	declared      []predict.Declared
	olderDeclared []predict.Declared                    // by older revisions, if somebody may have brought something back
	views         map[string]*unstructured.Unstructured // of the object, by API version: see otherViews
	served        map[string]bool                       // the API versions in which fields are owned, whether the server still has them
	scaling       scaling
}

// Scaling says where an object has its number of replicas, and what sets it.
type scaling struct {
	path fieldpath.Path         // nil for what has none
	by   ownership.FieldManager // zero when only people, charts and what doesn't exist any more have: it is a field as any other
	// stopped says that it is zero, at which the HorizontalPodAutoscaler would leave it that comes with the release.
	stopped bool
}

// declaredByOlder returns what revisions declared that aren't looked at otherwise, if somebody has written what no other did:
// kubectl rollout undo brings an old state back.
func (p *planning) declaredByOlder(ctx context.Context, t *target, f *facts, u updateFacts) ([]predict.Declared, error) {
	bringsBack := func(known *fieldpath.Set) bool {
		return slices.ContainsFunc(u.live.Entries, func(e ownership.Entry) bool { return e.MayBringBack(known) })
	}
	if p.req.Older == nil || !bringsBack(fieldpath.NewSet()) {
		return nil, nil // most objects have only been written by programs
	}
	known, err := compare.FieldSet(u.live.Converter, f.desired)
	if err != nil {
		return nil, nil // the prediction has the error
	}
	for _, d := range u.declared {
		known = known.Union(d.Fields)
	}
	if !bringsBack(known) {
		return nil, nil
	}
	older, err := p.older.get(struct{}{}, func() (*releaseHistory, error) {
		revisions, err := p.req.Older(ctx)
		if err != nil {
			return nil, err
		}
		return p.resolver.indexRevisions(ctx, revisions)
	})
	if err != nil {
		return nil, err
	}
	return p.declaredFieldsOf(ctx, t, u.live.Converter, older.objects[t.id]), nil
}

// factsOfUpdate asks for the facts of an update, and notes where the schema that is built in isn't the server's.
func (p *planning) factsOfUpdate(t *target, f *facts) func(context.Context) (updateFacts, error) {
	return func(ctx context.Context) (u updateFacts, err error) {
		u.live, err = compare.NewLive(f.converter, f.full)
		switch isBuiltin := p.schemas.isBuiltin(t.mapping.GVK); {
		case err == nil:
		case isBuiltin && verify.Read(err).Detail == verify.UnknownField: // the server is of a newer Kubernetes
			p.schemas.distrust(t.mapping.GVK.GroupVersion())
			return updateFacts{}, nil
		case !isBuiltin: // its definition has changed since it was stored, or will
			u.isMisfit = true
			u.live, err = compare.NewLive(managedfields.NewDeducedTypeConverter(), f.full)
		}
		if err != nil {
			return u, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
		}
		u.declared = p.declaredFieldsOf(ctx, t, u.live.Converter, p.history.objects[t.id])
		if u.olderDeclared, err = p.declaredByOlder(ctx, t, f, u); err != nil {
			return u, err
		}
		if u.views, u.unconverted, err = p.a.otherViews(ctx, t, u.live); err != nil || u.unconverted {
			return u, err
		}
		u.served = map[string]bool{}
		for _, e := range u.live.Entries {
			u.served[e.APIVersion] = p.definitions.servesVersion(ctx, t, e.APIVersion)
		}
		if !t.mapping.HasScale {
			return u, nil
		}
		if u.scaling.path, err = p.autoscalers.replicasPath(ctx, t); err != nil {
			return u, err
		}
		switch n, _ := fields.Value(f.full.Object, u.scaling.path); {
		case fields.Has(f.desired.Object, u.scaling.path):
			u.scaling.by, err = p.autoscalers.scaledBy(ctx, t, u.live.Entries, u.scaling.path)
		case fields.Equal(n, int64(0)):
			u.scaling.stopped, err = p.autoscalers.startsScaling(ctx, t)
		}
		return u, err
	}
}
