package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/apply/ordering"
	"deployer/apply/ownership"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// What becomes of a field that nobody contests when a revision is applied again.
// See Taken, Yielded and Refused too.
const (
	OutcomeKept    FieldOutcome = "kept"    // it is as the release states it
	OutcomeSet     FieldOutcome = "set"     // it gets the value that the release states
	OutcomeRemoved FieldOutcome = "removed" // it goes
	OutcomeIgnored FieldOutcome = "ignored" // the release doesn't state it, and leaves it
)

// An ExplainRequest asks about the fields of one object that a revision applied.
type ExplainRequest struct {
	Applied Request    // as for Drift
	Base    int        // the revision
	Stored  []Revision // all revisions there are, oldest first; hooks are among their objects
	Object  string     // KIND/NAME, as people write it
	Field   string     // a path; empty for all fields but status, names and what servers keep
}

// An Explanation is who has made an object what it is.
type Explanation struct {
	Object DriftedObject // its State is Changed, or says why there are no fields
	Fields []FieldExplanation
}

// A FieldExplanation is one field: its value, who owns it, who has stated it, and
// what an upgrade with the same manifest would make of it.
type FieldExplanation struct {
	Path    string
	Names   []string
	Live    any // nil when the object lacks it
	HasLive bool

	Owners []ownership.Owner // newest first; none of what the server has chosen
	// Revision is the first of the unbroken run of stored revisions that state
	// this value, and Source its template; 0 when none does. Earlier says that it
	// is the oldest there is, so that an older one may have been the first.
	Revision int
	Source   string
	Earlier  bool

	Outcome      FieldOutcome
	Predicted    any // the value it gets, where that is another one
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
	At     string   // as far as the path leads; empty when its first step is wrong
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

// Explain finds out who has made an object of a release what it is. It goes the
// way of Drift and changes nothing. The error is a *NoObjectError or a
// *NoFieldError when there is no such thing.
func (a *Applier) Explain(ctx context.Context, q ExplainRequest) (*Explanation, error) {
	query, err := fields.ParseQuery(q.Field)
	if err != nil {
		return nil, err
	}
	d, err := a.beginInspection(ctx, q.Applied, q.Base)
	if err != nil {
		return nil, err
	}
	t, err := d.targetNamed(ctx, q.Object)
	if err != nil {
		return nil, err
	}
	s, err := d.observer.read(ctx, t)
	if err != nil {
		return nil, err
	}
	o, c, err := d.reapply(ctx, t, s)
	e := &Explanation{Object: o}
	if err != nil || o.State != DriftChanged {
		return e, err
	}
	x, err := d.newExplainer(ctx, t, c, q.Stored)
	if err != nil {
		return nil, err
	}
	x.refused = a.opts.Conflicts == FailOnConflict || t.obj.GetAnnotations()[annotation.Conflicts.Name] == string(FailOnConflict)
	e.Fields, err = x.fieldsNamed(query, q.Field)
	return e, err
}

// targetNamed finds the object that people mean.
func (d *inspection) targetNamed(ctx context.Context, text string) (*target, error) {
	missing := &NoObjectError{Object: text, Revision: d.deployedRevision}
	if object, ok := annotation.ParseObject(text); ok {
		r := annotation.Dependency{Object: object, IsPattern: object.Namespace == ""} // in whichever namespace it is
		kinds, err := d.called(ctx, r)
		if err != nil {
			return nil, err
		}
		var found []*target
		for _, t := range d.targets {
			if ordering.Matches(r, t.id, t.mapping.GVK, kinds, d.a.owner.Namespace) {
				found = append(found, t)
				missing.Fitting = append(missing.Fitting, t.id)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	for _, t := range d.targets {
		missing.Others = append(missing.Others, t.id)
	}
	return nil, missing
}

// fieldExplainer is one object being explained.
type fieldExplainer struct {
	*fieldList
	stored  []declaredFields // what each stored revision states of it; nothing where it doesn't
	sources []string         // the templates
	refused bool             // what is contested is refused
	leaves  *fieldpath.Set
}

func (d *inspection) newExplainer(ctx context.Context, t *target, c Change, stored []Revision) (*fieldExplainer, error) {
	failed := func(err error) error {
		return &ObjectError{ID: t.id, Source: t.source, Doing: "explaining", Err: err}
	}
	list, err := d.newFieldList(t, c)
	if err != nil {
		return nil, err
	}
	x := &fieldExplainer{fieldList: list, leaves: fieldpath.NewSet()}
	conv, _, err := d.schemas.of(ctx, t.mapping.GVK)
	if err != nil {
		return nil, err
	}
	for _, obj := range []*unstructured.Unstructured{c.Live, c.Result} {
		v, err := typedOf(conv, withoutManagedFields(obj))
		if err != nil {
			return nil, failed(err)
		}
		set, err := v.ToFieldSet()
		if err != nil {
			return nil, failed(err)
		}
		x.leaves = x.leaves.Union(set)
	}
	x.leaves = x.leaves.Leaves()
	past, err := d.resolver.indexRevisions(ctx, stored)
	if err != nil {
		return nil, err
	}
	declared := past.objects[t.id]
	history := d.declaredFieldsOf(ctx, t, conv, declared)
	for _, r := range stored {
		one, source := declaredFields{number: r.Revision}, ""
		for _, h := range history {
			if h.number == r.Revision {
				one = h
			}
		}
		for _, s := range declared {
			if s.revision == r.Revision {
				source = s.source
			}
		}
		x.stored, x.sources = append(x.stored, one), append(x.sources, source)
	}
	return x, nil
}

// fieldsNamed explains the fields that a query names.
func (x *fieldExplainer) fieldsNamed(query fields.Query, asked string) ([]FieldExplanation, error) {
	var out []FieldExplanation
	var near *NoFieldError
	far := 0
	x.leaves.Iterate(func(path fieldpath.Path) {
		obj := x.c.Live.Object
		if _, has := fields.Value(obj, path); !has {
			obj = x.c.Result.Object
		}
		n := query.Leads(obj, path)
		switch {
		case n == len(query) && (n > 0 || !isBookkeeping(path) && !isIdentity(path)):
			out = append(out, x.explain(path.Copy()))
		case len(out) > 0 || n == len(query) || n >= len(path):
		case near == nil || n > far:
			near, far = &NoFieldError{Object: x.t.id, Field: asked, At: fields.String(path[:n]), Near: []string{fields.String(path[n : n+1])}}, n
		case n == far && fields.String(path[:n]) == near.At:
			near.Near = append(near.Near, fields.String(path[n:n+1]))
		}
	})
	if len(out) == 0 && near != nil {
		near.Near = slices.Compact(near.Near)
		return nil, near
	}
	return out, nil
}

// isIdentity tells whether a field is what an object is called by.
func isIdentity(path fieldpath.Path) bool {
	switch strings.Join(fields.Names(path), ".") {
	case "apiVersion", "kind", "metadata.name", "metadata.namespace":
		return true
	}
	return false
}

func (x *fieldExplainer) explain(path fieldpath.Path) FieldExplanation {
	f := FieldExplanation{Path: fields.String(path), Names: fields.Names(path)}
	f.Live, f.HasLive = fields.Value(x.c.Live.Object, path)
	for _, e := range x.entries {
		// Who owns a map without what is in it doesn't own this.
		if f.HasLive && (e.Set.Has(path) || !fieldsUnder(e.Set, path).Empty()) {
			f.Owners = append(f.Owners, e.Owner())
		}
	}
	slices.SortStableFunc(f.Owners, func(a, b ownership.Owner) int { return b.Time.Compare(a.Time) })
	f.Outcome = x.outcomeOf(path)
	switch f.Outcome {
	case OutcomeTaken, OutcomeSet, OutcomeRefused, OutcomeYielded:
		f.Predicted, f.HasPredicted = fields.Value(x.t.obj.Object, path)
		if !f.HasPredicted {
			f.Predicted, f.HasPredicted = fields.Value(x.c.Result.Object, path)
		}
	}
	if f.HasLive {
		x.attributeRevision(&f, path)
	}
	return f
}

// outcomeOf is what applying again makes of a field.
func (x *fieldExplainer) outcomeOf(path fieldpath.Path) FieldOutcome {
	for _, c := range x.c.Conflicts {
		if c.path != nil && len(c.path) <= len(path) && c.path.Equals(path[:len(c.path)]) {
			if c.Outcome == OutcomeTaken && x.refused {
				return OutcomeRefused
			}
			return c.Outcome
		}
	}
	is, has := fields.Value(x.c.Live.Object, path)
	will, stays := fields.Value(x.c.Result.Object, path)
	_, stated := fields.Value(x.t.obj.Object, path)
	_, sent := fields.Value(x.c.Desired.Object, path)
	switch {
	case has && !stays:
		return OutcomeRemoved
	case has != stays || !equalJSON(is, will):
		return OutcomeSet
	case stated && !sent:
		return OutcomeYielded
	case sent:
		return OutcomeKept
	}
	return OutcomeIgnored
}

// attributeRevision finds the revision that first gave a field the value it has.
func (x *fieldExplainer) attributeRevision(f *FieldExplanation, path fieldpath.Path) {
	i := x.sourceOf(f, path)
	if i < 0 {
		return
	}
	for i > 0 && x.isStatedIn(i-1, f, path) {
		i--
	}
	f.Revision, f.Source = x.stored[i].number, x.sources[i]
	f.Earlier = i == 0 && f.Revision > 1
}

// sourceOf is the place of the stored revision that a value comes from: the
// deployed one if it states it, else the newest one that does; -1 for none.
func (x *fieldExplainer) sourceOf(f *FieldExplanation, path fieldpath.Path) int {
	best := -1
	for i, r := range x.stored {
		if x.isStatedIn(i, f, path) {
			best = i
			if r.number == x.d.deployedRevision {
				break
			}
		}
	}
	return best
}

// isStatedIn tells whether a stored revision states the value that a field has: the
// same, or what the deployed one states where the server takes that for the same.
func (x *fieldExplainer) isStatedIn(i int, f *FieldExplanation, path fieldpath.Path) bool {
	said, ok := fields.Value(x.stored[i].obj, path)
	if !ok {
		return false
	}
	sent, kept := fields.Value(x.c.Desired.Object, path)
	return equalJSON(said, f.Live) || f.Outcome == OutcomeKept && kept && equalJSON(said, sent)
}
