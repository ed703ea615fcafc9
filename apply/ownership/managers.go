package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/internal/kube"
)

// Class says who is behind the name of a field manager.
type Class int

// The classes.
const (
	// Controller is every unknown manager: its fields are never taken.
	Controller Class = iota
	// Helm is Helm and programs that contain it: what they own in an object of the
	// release is the chart's, whichever revision stated it.
	Helm
	// Ambiguous are names that may stand for another way of applying the chart, or for
	// anything else. Their fields count as the chart's only if a stored or the new
	// revision declares them.
	Ambiguous
	// Person is a person at work, whose fields stay unless the chart declares them.
	Person
)

// helmManagers: Helm 3 names itself "helm" (since 3.7, commit aeb9479); embedders get
// the base name of their binary. Nelm and werf before it used their own names.
var helmManagers = []string{"helm", "Helm", "helm-controller", "terraform-provider-helm*", "werf*"}

// ambiguousManagers: Go-http-client is what helm before 3.7 was called by the API server,
// and what any Go program without a name is called. before-first-apply is
// written by the API server itself when managedFields were empty and covers
// everything, controllers' fields too. ancient-changes is where it merges the
// oldest entries of objects with more than ten.
// k8s.io/apimachinery/pkg/util/managedfields/internal/{skipnonapplied,capmanagers}.go
var ambiguousManagers = []string{
	"Go-http-client", "before-first-apply", "ancient-changes", "unknown",
	"kubectl-client-side-apply", "kubectl-create", "kubectl-replace", "kubectl-last-applied",
}

// personManagers: kubectl's commands name themselves kubectl-VERB, scale is plain
// kubectl; consoles use the browser's or the program's name.
var personManagers = []string{
	"kubectl", "kubectl-*", "k9s", "rancher", "Mozilla", "node-fetch", "lens", "Lens*",
	"OpenLens*", "headlamp*", "dashboard", "oc", "octant", "freelens*",
}

// Class returns who is behind an entry. An unknown program that has written the release's
// name on the object has written the chart's object: it contains Helm under its own name,
// or restored a backup.
func (e Entry) Class() Class {
	class := ClassOf(e.Manager)
	if class == Controller && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && e.Set.Has(releaseName) {
		return Ambiguous
	}
	return class
}

var releaseName = fieldpath.MakePathOrDie("metadata", "annotations", kube.ReleaseNameAnnotation)

// IsManual reports whether an entry is what somebody has changed with kubectl or a console.
func (e Entry) IsManual() bool {
	return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && MayBePerson(e.Manager)
}

// MayBePerson reports whether a manager's name stands for somebody who used kubectl or a
// console, be it kubectl apply, of which ClassOf can't tell whose object it wrote.
func MayBePerson(manager string) bool {
	return ClassOf(manager) == Person || strings.HasPrefix(manager, "kubectl-")
}

// ClassOf says which class a manager is of by its name.
func ClassOf(manager string) Class {
	switch {
	case matches(helmManagers, manager):
		return Helm
	case matches(ambiguousManagers, manager):
		return Ambiguous
	case matches(personManagers, manager):
		return Person
	}
	return Controller
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(name, prefix) || p == name {
			return true
		}
	}
	return false
}
