package ownership

import (
	"bytes"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"deployer/apply/fields"
	"deployer/internal/kube"
)

// Class says who is behind the name of a field manager.
type Class int

// The classes.
const (
	// Controller is every unknown manager: its fields are never taken.
	Controller Class = iota
	// Helm is Helm, and programs that contain it where they have written as Helm: what they own
	// in an object of the release is the chart's, whichever revision stated it.
	Helm
	// Ambiguous are names that may stand for another way of applying the chart, or for
	// anything else. Their fields count as the chart's only if a stored or the new
	// revision declares them.
	Ambiguous
	// Person is a person at work, whose fields stay unless the chart declares them.
	Person
)

// helmManagers: Helm 3 names itself "helm" (since 3.7, commit aeb9479).
var helmManagers = []string{"helm", "Helm"}

// embedderManagers are programs that contain Helm, which names itself after their binary then, and that may also write as
// what they are themselves: Flux's and k3s's helm-controller own the finalizers of HelmReleases and HelmCharts.
var embedderManagers = []string{"helm-controller", "terraform-provider-helm*", "werf*", "pulumi*", "provider-helm*", "crossplane-helm*"}

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
// kubectl; consoles use the browser's or the program's name. The names that client libraries have by default, such as
// node-fetch or OpenAPI-Generator, may be those of any controller, as is rancher, whose users come by the browser.
var personManagers = []string{
	"kubectl", "kubectl-*", "k9s", "Mozilla", "lens", "Lens*",
	"OpenLens*", "headlamp*", "dashboard", "oc", "octant", "freelens*",
}

// Class returns who is behind an entry. A program that contains Helm has written the chart's object if it has applied it, or
// written the release's name on it. So has an unknown program with the release's name, or it restored a backup.
func (e Entry) Class() Class { return classOf(e.FieldManager, e.Set.Has(releaseName)) }

func classOf(by FieldManager, hasReleaseName bool) Class {
	class, isUpdate := ClassOf(by.Manager), by.Operation == metav1.ManagedFieldsOperationUpdate
	switch {
	case matches(embedderManagers, by.Manager) && (!isUpdate || hasReleaseName):
		return Helm
	case class == Controller && isUpdate && by.Subresource == "" && hasReleaseName:
		return Ambiguous
	}
	return class
}

// MayHoldChart reports whether an entry, as the API has it, may have fields of the chart that have to be migrated: it is Helm's.
func MayHoldChart(e metav1.ManagedFieldsEntry) bool {
	named := e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:`+kube.ReleaseNameAnnotation+`"`))
	return classOf(managerOf(e), named) == Helm
}

// MayBeOfHelm reports whether an entry, as the API has it, is of Helm, of a program that contains it, or of a Helm before 3.7.
func MayBeOfHelm(e metav1.ManagedFieldsEntry) bool {
	return e.Subresource == "" && (matches(helmManagers, e.Manager) || matches(embedderManagers, e.Manager) || e.Manager == "Go-http-client")
}

// IsAppliedByOthers reports whether an entry, as the API has it, is of a program that applies objects as its own.
func IsAppliedByOthers(e metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && !IsOurs(e) && !MayBePerson(e.Manager)
}

// withoutOwnMetadata is the part of an entry that a program may have written as Helm: of finalizers, owner references and
// annotations, only what the chart states.
func (e Entry) withoutOwnMetadata(chart *fieldpath.Set) *fieldpath.Set {
	if !matches(embedderManagers, e.Manager) {
		return e.Set
	}
	return fields.Where(e.Set, func(path fieldpath.Path) bool {
		own := len(path) > 1 && fields.IsField(path[0], "metadata") &&
			(fields.IsField(path[1], "finalizers") || fields.IsField(path[1], "ownerReferences") || fields.IsField(path[1], "annotations"))
		return !own || chart.Has(path)
	})
}

var releaseName = fieldpath.MakePathOrDie("metadata", "annotations", kube.ReleaseNameAnnotation)

// IsManual reports whether an entry is what somebody has changed with kubectl or a console.
func (e Entry) IsManual() bool {
	return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && MayBePerson(e.Manager)
}

// HasMade reports whether an entry is of whoever has made an object, not for the release, and has not changed it since: it
// has the defaults of the server too, and is no edit.
func (e Entry) HasMade(obj metav1.Object) bool {
	return e.Class() == Ambiguous && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Time.Equal(obj.GetCreationTimestamp().Time)
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
	case matches(ambiguousManagers, manager), matches(embedderManagers, manager):
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
