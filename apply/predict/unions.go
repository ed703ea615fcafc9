package predict

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"deployer/apply/builtin"
	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/ownership"
)

// checkUnion finds the members of a union that can't be there any more because of what the chart has there, or no longer
// has. now is the value of the union's type at path in the predicted object.
func (f *collisionFinder) checkUnion(u builtin.Union, path fieldpath.Path, now map[string]any) {
	desired := mapAt(f.p.Desired.Object, path)
	stated := u.MembersOf(desired)
	at := func(name string) fieldpath.Path { return extended(path, fieldpath.FieldNameElement(name)) }
	discriminator := u.Discriminator
	isExcluded := func(member string) bool { return !u.Allows(member, now[discriminator]) }
	switch {
	case discriminator != "" && desired[discriminator] == nil && slices.ContainsFunc(stated, isExcluded) && (!u.Pruned || f.p.relinquished.Has(at(discriminator))):
		// The value of another member, whose default is that of the chart's, or which was left to others.
		f.addLeftover(at(discriminator), at(stated[slices.IndexFunc(stated, isExcluded)]), false)
	case u.Pruned:
	case discriminator != "":
		for _, member := range u.MembersOf(now) {
			if isExcluded(member) && !slices.Contains(stated, member) {
				f.addLeftover(at(member), at(discriminator), f.p.allowedLast(u, path, member))
			}
		}
	case len(stated) > 0:
		for _, member := range u.MembersOf(now) {
			if !slices.Contains(stated, member) {
				f.addLeftover(at(member), at(stated[0]), false)
			}
		}
	default:
		f.addRemnants(u, path, now)
	}
}

// checkItems finds the members in items of a list that the value of the discriminator doesn't allow, if that was left to others.
func (f *collisionFinder) checkItems(u builtin.Union, path fieldpath.Path, now map[string]any, t *schema.Map) {
	discriminator := extended(path, fieldpath.FieldNameElement(u.Discriminator))
	for _, item := range f.items([]string{u.List}, path, now, t) {
		for _, member := range u.MembersOf(item.stated) {
			if f.p.relinquished.Has(discriminator) && !u.Allows(member, now[u.Discriminator]) {
				f.addLeftover(discriminator, extended(item.path, fieldpath.FieldNameElement(member)), false)
			}
		}
	}
}

// addRemnants finds what is left of a member of which the chart has dropped its part without stating another member. Nothing
// can be made of it. The whole value goes if the chart has nothing of it any more, and it has no other member.
func (f *collisionFinder) addRemnants(u builtin.Union, path fieldpath.Path, now map[string]any) {
	live := mapAt(f.p.Live.Object.Object, path)
	members := u.MembersOf(now)
	var remnants []fieldpath.Path
	for _, member := range members {
		if compare.Satisfies(live[member], now[member]) && !fields.Equal(live[member], now[member]) {
			remnants = append(remnants, extended(path, fieldpath.FieldNameElement(member)))
		}
	}
	if len(remnants) > 0 && len(remnants) == len(members) && !fields.Has(f.p.Desired.Object, path) {
		remnants = []fieldpath.Path{path}
	}
	for _, remnant := range remnants {
		f.addLeftover(remnant, nil, true)
	}
}

// mapAt returns the map at a path; nil if there is none.
func mapAt(obj map[string]any, path fieldpath.Path) map[string]any {
	v, _ := fields.Value(obj, path)
	m, _ := v.(map[string]any)
	return m
}

// addLeftover adds a member of a union that has to go. If others have put it in, and not the release, or it was
// left to them, the policy for conflicts decides.
func (f *collisionFinder) addLeftover(theirs, ours fieldpath.Path, released bool) {
	col := Collision{Theirs: theirs.Copy(), Ours: ours, Relinquishable: ours, Why: "can't be combined with"}
	var owns bool
	owns, col.Owners = f.p.ownersWithin(theirs)
	if released || owns && !f.p.relinquished.Has(theirs) || len(col.Owners) == 0 {
		f.settled = append(f.settled, col)
		return
	}
	f.open = append(f.open, col)
}

// allowedLast reports whether the latest revision had a value of the discriminator that allows a member.
func (p *Prediction) allowedLast(u builtin.Union, path fieldpath.Path, member string) bool {
	if len(p.declared) == 0 {
		return false
	}
	last := mapAt(p.declared[len(p.declared)-1].Object, path)
	return last != nil && u.Allows(member, last[u.Discriminator])
}

// ownersWithin returns who else than the release owns something at a path, and whether the release has put it there.
func (p *Prediction) ownersWithin(path fieldpath.Path) (released bool, others []ownership.FieldManager) {
	declared := func(r Declared) bool { return fields.HasIn(r.Fields, path) }
	if n := len(p.declared); n > 0 {
		released = declared(p.declared[n-1])
	}
	for _, e := range p.Live.Entries {
		switch class := e.Class(); {
		case !fields.Owns(e.Set, path):
		case class == ownership.Helm, class == ownership.Ambiguous && slices.ContainsFunc(p.declared, declared):
			released = true
		default:
			others = append(others, e.FieldManager)
		}
	}
	return released, others
}

// removeLeftovers takes the former members of unions out of the predicted object, with everything in them, and notes
// what else collides.
func (p *Prediction) removeLeftovers() bool {
	p.Overridden = nil
	found := p.findCollisions()
	for _, l := range found.settled {
		fields.Remove(p.Predicted.Object, l.Theirs)
		p.removeEmptied(l.Theirs[:len(l.Theirs)-1])
		if len(l.Owners) > 0 {
			p.Overridden = append(p.Overridden, l)
		}
	}
	p.Collisions = found.open
	if len(found.settled) > 0 {
		p.Collisions = p.findCollisions().open // without them
	}
	return len(found.settled) > 0
}

// removeEmptied removes what has nothing in it any more and isn't the chart's, and its parents.
func (p *Prediction) removeEmptied(path fieldpath.Path) {
	for ; len(path) > 0 && !fields.Has(p.Desired.Object, path); path = path[:len(path)-1] {
		switch v, _ := fields.Value(p.Predicted.Object, path); v := v.(type) {
		case map[string]any:
			rest := maps.Clone(v)
			if key := path[len(path)-1].Key; key != nil {
				for _, field := range *key {
					delete(rest, field.Name)
				}
			}
			if len(rest) > 0 {
				return
			}
		case []any:
			if len(v) > 0 {
				return
			}
		}
		fields.Remove(p.Predicted.Object, path)
	}
}
