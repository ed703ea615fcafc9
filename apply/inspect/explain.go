package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/ownership"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// A Request asks about the fields of one object that a revision applied.
type Request struct {
	Applied  apply.Request    // as for DriftOf
	Deployed int              // the number of the revision
	Stored   []apply.Revision // all revisions there are, oldest first; hooks are among their objects
	Object   string           // KIND/NAME, as people write it
	Field    string           // a path; empty for all fields except status, identity and bookkeeping
}

// An Explanation says who set the fields of an object.
type Explanation struct {
	Object DriftedObject // its State is Changed, or says why there are no fields
	Fields []FieldExplanation
	// PolicyAnnotation is the annotation by which the object states its own policy for
	// conflicts, which overrides that of an upgrade; empty if it states none.
	PolicyAnnotation string
}

// A FieldExplanation is one field: its value, its owners, the revision that declared it,
// and what an upgrade with the same manifest would do to it.
type FieldExplanation struct {
	Path    string
	Names   []string
	Live    any // nil when the object lacks it
	HasLive bool

	Owners []ownership.FieldManager // newest first; empty for a value that the server has set
	// Revision is the revision that introduced this value: the first of the consecutive
	// stored revisions that state it; 0 when none does. Source is its template. Earlier
	// says that this is the oldest stored revision, so an older one may have introduced
	// the value.
	Revision int
	Source   string
	Earlier  bool

	Outcome      decide.FieldOutcome
	Predicted    any // the value that it gets, if that is a different one
	HasPredicted bool
}

// A NoObjectError says that a revision has no object of a name, or several.
type NoObjectError struct {
	Object   string
	Revision int
	Fitting  []kube.ID // several; else none fits
	Others   []kube.ID // what the revision has
}

func (e *NoObjectError) Error() string {
	if len(e.Fitting) > 0 {
		return fmt.Sprintf("%q is one of several objects", e.Object)
	}
	return fmt.Sprintf("revision %d has no object %q", e.Revision, e.Object)
}

// Hint says what to do about it.
func (e *NoObjectError) Hint() string {
	if len(e.Fitting) > 0 {
		return "name one of them: " + someOf(e.Fitting)
	}
	return "write KIND/NAME or KIND/NAMESPACE/NAME; it has " + someOf(e.Others)
}

func someOf(ids []kube.ID) string {
	const most = 20
	names := make([]string, 0, most+1)
	for _, id := range ids[:min(most, len(ids))] {
		names = append(names, id.String())
	}
	if more := len(ids) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// A NoFieldError says that an object has no field of a path.
type NoFieldError struct {
	Object kube.ID
	Field  string
	At     string   // the part of the path that exists; empty for the object itself
	Near   []string // the fields there
}

func (e *NoFieldError) Error() string { return fmt.Sprintf("%s has no field %s", e.Object, e.Field) }

// Hint says what to do about it.
func (e *NoFieldError) Hint() string {
	at := "at its top"
	if e.At != "" {
		at = "in " + e.At
	}
	return fmt.Sprintf("%s there are %s", at, strings.Join(e.Near, ", "))
}

// Explain explains the fields of an object of a release. It changes nothing. The error is
// a *NoObjectError or a *NoFieldError when there is no such object or field.
func Explain(ctx context.Context, a *apply.Applier, req Request) (*Explanation, error) {
	query, err := fields.ParseQuery(req.Field)
	if err != nil {
		return nil, err
	}
	inspection, err := a.Inspect(ctx, req.Applied)
	if err != nil {
		return nil, err
	}
	named, all, err := inspection.Named(ctx, req.Object)
	if err != nil {
		return nil, err
	}
	if len(named) != 1 {
		return nil, &NoObjectError{Object: req.Object, Revision: req.Deployed, Fitting: named, Others: all}
	}
	o, err := inspection.One(ctx, named[0])
	if err != nil {
		return nil, err
	}
	e := &Explanation{Object: stateOf(o, inspection.Release())}
	if e.Object.State != DriftChanged || o.Predicted == nil {
		return e, nil
	}
	if _, declared, _ := annotation.Conflicts.Read(o.Declared.GetAnnotations()); declared {
		e.PolicyAnnotation = annotation.Conflicts.Name
	}
	x, err := newExplainer(ctx, inspection, o, req)
	if err != nil {
		return nil, err
	}
	e.Fields, err = x.fieldsNamed(query, req.Field)
	return e, err
}

// explainer explains the fields of one object.
type explainer struct {
	object   *apply.Inspected
	deployed int                    // the revision it is looked at from
	stored   []apply.DeclaredObject // what each stored revision declares of it
	leaves   *fieldpath.Set
}

func newExplainer(ctx context.Context, inspection *apply.Inspection, o *apply.Inspected, req Request) (*explainer, error) {
	x := &explainer{object: o, deployed: req.Deployed}
	var err error
	if x.leaves, err = o.Leaves(); err != nil {
		return nil, &apply.ObjectError{ID: o.ID, Source: o.Source, Doing: "explaining", Err: err}
	}
	x.stored, err = inspection.DeclaredIn(ctx, o, req.Stored)
	return x, err
}

// fieldsNamed explains the fields that a query names.
func (x *explainer) fieldsNamed(query fields.Query, asked string) ([]FieldExplanation, error) {
	var out []FieldExplanation
	var near *NoFieldError
	far := 0
	for path := range x.leaves.All() {
		obj := x.object.Live.Object
		if !fields.Has(obj, path) {
			obj = x.object.Predicted.Object
		}
		n := query.MatchedElements(obj, path)
		switch {
		case n == len(query) && (n > 0 || !isBookkeeping(path) && !isIdentity(path)):
			out = append(out, x.explain(path))
		case len(out) > 0 || n == len(query) || n >= len(path):
		case near == nil || n > far:
			near, far = &NoFieldError{Object: x.object.ID, Field: asked, At: fields.String(path[:n]), Near: []string{fields.String(path[n : n+1])}}, n
		case n == far && fields.String(path[:n]) == near.At:
			near.Near = append(near.Near, fields.String(path[n:n+1]))
		}
	}
	if len(out) == 0 && near != nil {
		near.Near = slices.Compact(near.Near)
		return nil, near
	}
	return out, nil
}

// isIdentity reports whether a field is what an object is called by.
func isIdentity(path fieldpath.Path) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, fields.String(path))
}

func (x *explainer) explain(path fieldpath.Path) FieldExplanation {
	f := FieldExplanation{Path: fields.String(path), Names: fields.Names(path)}
	f.Live, f.HasLive = fields.Value(x.object.Live.Object, path)
	for _, e := range x.object.ByFields.Entries {
		// The owner of a map doesn't own its fields.
		if f.HasLive && fields.HasIn(e.Set, path) {
			f.Owners = append(f.Owners, e.FieldManager)
		}
	}
	slices.SortStableFunc(f.Owners, func(a, b ownership.FieldManager) int { return b.Time.Compare(a.Time) })
	f.Outcome = x.object.FateOf(path)
	switch f.Outcome {
	case decide.OutcomeTaken, decide.OutcomeSet, decide.OutcomeRefused, decide.OutcomeYielded:
		f.Predicted, f.HasPredicted = fields.Value(x.object.Declared.Object, path)
		if !f.HasPredicted {
			f.Predicted, f.HasPredicted = fields.Value(x.object.Predicted.Object, path)
		}
	}
	if f.HasLive {
		x.attributeRevision(&f, path)
	}
	return f
}

// attributeRevision finds the revision that first gave a field the value it has. The value comes
// from the deployed revision if that declares it, else from the newest one that does.
func (x *explainer) attributeRevision(f *FieldExplanation, path fieldpath.Path) {
	declaredBefore := false
	for i, r := range x.stored {
		declared := x.isDeclaredIn(r, f, path)
		if declared && !declaredBefore {
			f.Revision, f.Source = r.Revision, r.Source
			f.Earlier = i == 0 && r.Revision > 1
		}
		if declared && r.Revision == x.deployed {
			return
		}
		declaredBefore = declared
	}
}

// isDeclaredIn reports whether a stored revision declares a field's live value, or declares the
// same as the deployed one and the server takes that for equal to the live value.
func (x *explainer) isDeclaredIn(r apply.DeclaredObject, f *FieldExplanation, path fieldpath.Path) bool {
	declared, ok := fields.Value(r.Object.Object, path)
	if !ok {
		return false
	}
	desired, kept := fields.Value(x.object.Desired.Object, path)
	return fields.Equal(declared, f.Live) || f.Outcome == decide.OutcomeKept && kept && fields.Equal(declared, desired)
}
