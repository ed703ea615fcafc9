package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/manifest"
	"deployer/apply/ownership"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/hide"
	"deployer/internal/kube"
)

// policy returns the conflict policy of an object: its annotation's, or else the
// option's.
func (p *planning) policy(t *target) (ConflictPolicy, error) {
	word, stated, errs := annotation.Conflicts.Read(t.obj.GetAnnotations())
	switch {
	case len(errs) > 0 && !p.a.opts.refuseNothing:
		return "", rejectf(t.id, t.source, "metadata.annotations["+errs[0].Name+"]", "use take, fail or yield", "%v", errs[0].Err)
	case !stated, p.a.opts.refuseNothing && word == string(FailOnConflict):
		return p.a.opts.Conflicts, nil
	}
	return ConflictPolicy(word), nil
}

// decideConflicts decides about the fields that other managers set to other values, and
// returns the refused ones.
func (p *planning) decideConflicts(t *target, cmp *comparison, c *Change, policy ConflictPolicy) ([]FieldConflict, error) {
	desired, err := compare.Typed(cmp.conv, cmp.desired)
	if err != nil {
		return nil, t.reject(&InvalidError{Text: verify.Conceal(t.obj, err.Error())})
	}
	conflicts, err := ownership.Conflicts(cmp.live, desired, cmp.entries)
	if err != nil {
		return nil, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	var refused []FieldConflict
	for _, con := range conflicts {
		// Equal to people, but not to the schema: numbers of different types.
		before, has := fields.Value(c.Live.Object, con.Path)
		after, stated := fields.Value(cmp.desired.Object, con.Path)
		if has == stated && fields.Equal(before, after) {
			continue
		}
		if con.By.Class() == ownership.Ambiguous && cmp.hasDeclaredValue(con.Path, before) {
			continue // nobody changed it: the chart's own value of an earlier revision
		}
		f := conflictOf(t, con, c.Live, cmp.desired)
		f.Before, f.After = p.a.opts.Hidden.HideTextPair(f.Before, f.After)
		f.Outcome = policy.outcome()
		switch policy {
		case FailOnConflict:
			refused = append(refused, f)
		case YieldConflicts:
			cmp.relinquishField(con.Path)
		default:
			if cmp.isRepeatedConflict(con, after) {
				p.warnings.add(t.id, t.source, "%s changed %s since the last release and may change it again: leave it out of the chart, or annotate the object with %s: yield",
					con.By.Manager, f.Path, annotation.Conflicts.Name)
			}
		}
		c.Conflicts = append(c.Conflicts, f)
	}
	return refused, nil
}

// isRepeatedConflict reports whether a controller has, since our last apply, changed a
// field whose wanted value an earlier release had already set.
func (c *comparison) isRepeatedConflict(con ownership.Conflict, wanted any) bool {
	ours := ownership.ApplyEntry(c.entries)
	return ours != nil && con.By.Class() == ownership.Controller && !con.By.Time.Before(ours.Time) && c.hasDeclaredValue(con.Path, wanted)
}

func conflictOf(t *target, con ownership.Conflict, live, desired *unstructured.Unstructured) FieldConflict {
	f := FieldConflict{
		Path:  fields.String(con.Path),
		Owner: con.By.Owner(),
		path:  con.Path,
	}
	secret := hide.ConfidentialFields(live, desired, t.obj)
	f.Path = secret.HidePath(f.Path, nil)
	f.Before, f.After = shown(live, con.Path, secret), shown(desired, con.Path, secret)
	return f
}

// shown writes a value for people, unless it is confidential.
func shown(obj *unstructured.Unstructured, path fieldpath.Path, secret hide.Fields) string {
	v, ok := fields.Value(obj.Object, path)
	if ok && secret.HasHiddenWithin(fields.Names(path)) {
		return "(hidden)"
	}
	return fields.Text(v, ok)
}

// relinquishField leaves a field to its owner: it is neither applied nor removed.
func (c *comparison) relinquishField(path fieldpath.Path) {
	fields.Remove(c.desired.Object, path)
	c.relinquish.Insert(path)
	c.liveSet.Iterate(func(p fieldpath.Path) {
		if len(p) > len(path) && path.Equals(p[:len(path)]) {
			c.relinquish.Insert(p.Copy())
		}
	})
}

// relinquishClusterFilled keeps ownership of the fields that the cluster fills from being
// migrated to us: the apply would then remove them.
func (c *comparison) relinquishClusterFilled(t *target) {
	aggregated := t.id.Kind == "ClusterRole" && c.desired.Object["aggregationRule"] != nil
	bundled := manifest.HasCABundle(t.id.GroupKind())
	c.liveSet.Iterate(func(p fieldpath.Path) {
		top, name := fieldName(p[0]), fieldName(p[len(p)-1])
		switch {
		case aggregated && top == "rules", bundled && name == "caBundle", t.mapping.HasStatus && top == "status", name == kube.RestartedAtAnnotation:
			c.relinquish.Insert(p.Copy())
		}
	})
}

func fieldName(e fieldpath.PathElement) string {
	if e.FieldName == nil {
		return ""
	}
	return *e.FieldName
}

// isItemOrMapKey says that a path is an item of a list or a key of a free map, as
// against a field of a structure.
func isItemOrMapKey(v *typed.TypedValue, path fieldpath.Path) bool {
	ref := v.TypeRef()
	for i, e := range path {
		atom, ok := v.Schema().Resolve(ref)
		if !ok {
			return true
		}
		switch {
		case e.FieldName == nil:
			if i == len(path)-1 || atom.List == nil {
				return true
			}
			ref = atom.List.ElementType
		case atom.Map == nil:
			return true
		default:
			f, named := atom.Map.FindField(*e.FieldName)
			if !named {
				if i == len(path)-1 || isNone(atom.Map.ElementType) {
					return true
				}
				ref = atom.Map.ElementType
				continue
			}
			ref = f.Type
		}
	}
	return false
}

func isNone(ref schema.TypeRef) bool {
	return ref.NamedType == nil && ref.Inlined == (schema.Atom{})
}
