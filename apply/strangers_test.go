package apply_test

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// neighbours are in the namespace of a story: an object that somebody made by hand,
// and another release with one of its own, which is deployed again now and then.
type neighbours struct {
	*story // whose neighbours they are
	other  story
	was    map[string]string
	lent   bool // a failed run may have adopted something of theirs that isn't given back yet
}

const (
	ofSomebody = "strangers"
	ofOther    = "neighbours"
)

func isForeign(name string) bool { return name == ofSomebody || name == ofOther }

// aConfig is a ConfigMap of others, or what a chart makes of it.
func aConfig(name, value, more string) string {
	return fmt.Sprintf("\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %[1]s, labels: {%[3]s: l}}\ndata: {k: %[2]s, %[3]s: x}\n", name, value, more)
}

// surround puts neighbours into the namespace.
func (s *story) surround() *neighbours {
	s.t.Helper()
	n := &neighbours{story: s, other: *s, was: map[string]string{}}
	n.other.owner.Release = "other"
	s.post(s.manifests(aConfig(ofSomebody, "theirs", "a"))[0].Object, "somebody")
	n.deployOther()
	n.was = n.content()
	return n
}

// deployOther deploys the other release once more. What isn't its own at the moment
// can't be.
func (n *neighbours) deployOther() {
	n.t.Helper()
	if !n.lent {
		n.other.deploy(aConfig(ofOther, "theirs", "a"))
	}
}

// content is what the objects of others are, and whose their fields.
func (n *neighbours) content() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for _, name := range []string{ofSomebody, ofOther} {
		obj := n.get("v1", "ConfigMap", name)
		if obj == nil {
			out[name] = "gone"
			continue
		}
		data, _, _ := unstructured.NestedStringMap(obj.Object, "data")
		out[name] = fmt.Sprint(obj.GetUID(), data, obj.GetLabels(), obj.GetAnnotations(), managers(obj))
	}
	return out
}

// adoptInVain carries out some of a release that has what is of others, with leave
// to adopt it, and records that it failed.
func (n *neighbours) adoptInVain(chart string, l *lot) string {
	n.t.Helper()
	n.opts.TakeOwnership, n.opts.TakeOwnershipFrom = true, []string{n.other.owner.String()}
	defer func() { n.opts.TakeOwnership, n.opts.TakeOwnershipFrom = false, nil }()
	n.lent = true
	for _, name := range [][]string{{ofSomebody}, {ofOther}, {ofSomebody, ofOther}}[l.IntN(3)] {
		chart += aConfig(name, "ours", "c")
	}
	return n.interrupted(chart, l)
}

// asBefore checks that others have what they had, and nothing to do.
func (n *neighbours) asBefore() {
	n.t.Helper()
	now := n.content()
	for _, name := range slices.Sorted(maps.Keys(n.was)) {
		if now[name] != n.was[name] {
			n.t.Errorf("ConfigMap/%s of others was\n%s\nand is\n%s", name, n.was[name], now[name])
		}
	}
	n.other.expect(n.other.plan(aConfig(ofOther, "theirs", "a")))
}

// noteProvenance notes for the record of a revision where its objects came from,
// as its run does: by what was carried out of the plan, and by what was planned.
func (s *story) noteProvenance(planned []apply.Change, done []apply.Change, final bool) {
	now := map[kube.ID]apply.Change{}
	for _, c := range done {
		now[c.ID] = c
	}
	s.provenance = map[string]provenance.Provenance{}
	for _, c := range planned {
		carried, ok := now[c.ID]
		if ok {
			c = carried
		}
		var p provenance.Provenance
		switch {
		case ok && (c.Action == decide.Delete || c.Action == decide.GiveBack):
			continue
		case ok && c.Applied != nil:
			p.UID = string(c.Applied.GetUID())
		}
		p.Created = ok && (c.Action == decide.Create || c.Action == decide.Recreate)
		if from := c.Provenance; from != nil {
			p.Created = p.Created || from.Created
			if from.Adopted != nil {
				adopted := *from.Adopted
				p.UID, p.Adopted = from.UID, &adopted
				p.Adopted.Final = p.Adopted.Final || final
				if p.Adopted.Revision == 0 {
					p.Adopted.Revision = s.next()
				}
			}
		}
		if p.Created || p.Adopted != nil {
			s.provenance[apply.Key(c.ID)] = p
		}
	}
}

// next is the number of the revision that comes next.
func (s *story) next() int {
	if len(s.past) == 0 {
		return 1
	}
	return s.past[len(s.past)-1].Revision + 1
}
