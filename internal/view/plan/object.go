package plan

import (
	"fmt"
	"slices"
	"strings"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/chart/retain"
	"deployer/internal/deploy"
	"deployer/internal/view/diff"
)

func objectsOf(changes []apply.Change, describe func(apply.Change) object) []object {
	out := make([]object, 0, len(changes))
	for _, c := range changes {
		out = append(out, describe(c))
	}
	return out
}

// outlineOf is what happens to an object, without its content.
func outlineOf(c apply.Change) object {
	return object{
		Object: c.ID.String(), Group: c.ID.Group, Action: c.Action, Source: c.Source, Reason: c.Reason,
		Unverified: c.Unverified, TakenFrom: c.TakenFrom, After: dependenciesOf(c.DependsOn), Weight: c.Weight, Conflicts: slices.Clone(c.Conflicts),
	}
}

func objectOf(c apply.Change, nondeterminism deploy.Nondeterminism, made []retain.Value) object {
	o := outlineOf(c)
	o.Generated = made
	switch c.Action {
	case decide.Create:
		o.Manifest = diff.ShownManifest(diff.RestrictToDesired(c.After(), c.Desired))
	case decide.Update, decide.Recreate:
		o.Fields = diff.Fields(c, diff.NewNondeterminism(nondeterminism.Rendered, nondeterminism.Others...))
		for i := range o.Fields {
			if slices.ContainsFunc(made, func(v retain.Value) bool { return v.Kept() && v.Path == o.Fields[i].Path }) {
				o.Fields[i].Random = false // somebody has changed it, and it is put back
			}
		}
		o.Random = len(o.Fields) > 0 && !slices.ContainsFunc(o.Fields, func(f diff.Field) bool { return !f.Random })
	case decide.GiveBack:
		c.Desired = nil // it becomes what it was, and not what the chart states
		o.Fields = diff.Fields(c, nil)
	case decide.Unchanged:
		o.TakenFrom = nil // nothing of it changes
	}
	if nondeterminism.NameDiffers {
		o.Random = true
	}
	o.Impact = impactOf(c)
	return o
}

// generatedText says where a generated value comes from.
func generatedText(g retain.Value) string {
	switch {
	case g.Kept():
		return fmt.Sprintf("%s: generated; kept from revision %d", g.Path, g.Revision)
	case g.Reason != "":
		return fmt.Sprintf("%s: generated; new: %s", g.Path, g.Reason)
	}
	return g.Path + ": generated; new"
}

func dependenciesOf(needs []ordering.Dependency) []dependency {
	var out []dependency
	for _, n := range needs {
		out = append(out, dependency{Object: n.ID.String(), Group: n.ID.Group, State: n.State, Outside: n.Outside})
	}
	return out
}

// recreateImpacts are the effects of deleting and creating an object again. A StatefulSet is
// recreated without deleting its pods.
// https://kubernetes.io/docs/tasks/run-application/delete-stateful-set/
var recreateImpacts = map[string]string{
	"apps/Deployment":           "all its pods stop before new ones start: downtime",
	"apps/DaemonSet":            "all its pods stop before new ones start: downtime",
	"apps/ReplicaSet":           "all its pods stop before new ones start: downtime",
	"apps/StatefulSet":          "its pods and claims stay; the new object adopts them and replaces pods one by one where the template differs",
	"/PersistentVolumeClaim":    "THE DATA OF THE VOLUME IS DESTROYED unless its reclaim policy is Retain",
	"batch/Job":                 "it runs again from the start",
	"/Pod":                      "it stops before the new one starts: downtime",
	"/Service":                  "its cluster address and node ports change, connections break",
	"networking.k8s.io/Ingress": "it serves nothing until its controller has set it up again",
}

// deleteImpacts are the effects of deleting an object.
var deleteImpacts = map[string]string{
	"/PersistentVolumeClaim": recreateImpacts["/PersistentVolumeClaim"],
	"/PersistentVolume":      "THE DATA OF THE VOLUME IS DESTROYED unless its reclaim policy is Retain",
	"/Namespace":             "EVERYTHING IN THE NAMESPACE IS DELETED",
	"apiextensions.k8s.io/CustomResourceDefinition": "ALL OBJECTS OF ITS KIND ARE DELETED, everywhere in the cluster",
	"apps/StatefulSet": "the claims of its volumes stay",
}

// impactOf returns the side effects of a change; empty for none.
func impactOf(c apply.Change) string {
	kind := c.ID.Group + "/" + c.ID.Kind
	switch c.Action {
	case decide.Delete:
		return deleteImpacts[kind]
	case decide.Recreate:
		changesSelector := func(f compare.FieldChange) bool { return strings.HasPrefix(f.Path.String(), ".spec.selector") }
		if kind == "apps/StatefulSet" && slices.ContainsFunc(c.Fields, changesSelector) {
			return "all its pods stop before new ones start, because the new selector doesn't match them: downtime; the claims of its volumes stay"
		}
		if text, ok := recreateImpacts[kind]; ok {
			return text
		}
		return "everything that uses it misses it for a moment"
	}
	return ""
}
