// Package deploy is the order of things: render, record, plan, apply, track, record.
package deploy

import (
	"context"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/ordering"
	"deployer/chart"
	"deployer/chart/retain"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/release"
	"deployer/track"
)

// Policies decide what an operation does. Plan files hold them, in this order: fields
// are added at the end, never renamed. Every zero value is the default.
type Policies struct {
	apply.Policies
	NoHooks bool `json:"no_hooks,omitempty"`
	// MapRemovedAPIs replaces API versions that the cluster has removed by their
	// replacement APIs, if only the version's name differs.
	MapRemovedAPIs bool `json:"map_removed_apis,omitempty"`
	// Generated says what to do with generated values that an earlier revision has
	// recorded; empty keeps them.
	Generated retain.Policy `json:"generated,omitempty"`
	// AllowStoredHooks lets uninstalls, rollbacks and tests run hooks of records that are
	// cluster-scoped or in another namespace than the release, and rollbacks create such objects.
	AllowStoredHooks bool `json:"allow_stored_hooks,omitempty"`
}

// Settings are shared by all operations of one run. With the zero value only hooks are
// waited for, as long as the context allows.
type Settings struct {
	Policies
	Timeout    time.Duration // of each wait, and of retries; 0 means no limit for waits and two minutes for retries
	Wait       bool          // until what was applied is ready
	WaitJobs   bool          // with Wait, also until Jobs are complete
	MaxHistory int           // revisions to keep; 0 keeps all
	// TakeoverPending recovers what another tool left pending, whatever its age.
	TakeoverPending bool
	NoLock          bool // take no Lease: only the release record keeps other runs out
	Track           track.Options
}

// A Deployer decides and carries out operations on the releases of one
// namespace.
type Deployer struct {
	Cluster   *kube.Cluster
	Namespace string
	Releases  *release.Store
	Settings  Settings
	// Hidden has the confidential values that have been read so far.
	Hidden *hide.Texts
	// Warn is called, from any goroutine, for failures of the cluster that are retried, and
	// for warnings that come while a plan is carried out; nil ignores them.
	Warn func(text string)

	// ForShow says that what is decided is going to be shown, and not carried out.
	ForShow bool
}

// New returns a deployer for the releases that are stored in namespace.
func New(cluster *kube.Cluster, namespace string, settings Settings) *Deployer {
	return &Deployer{
		Cluster:   cluster,
		Namespace: namespace,
		Releases:  release.NewStore(cluster, namespace),
		Settings:  settings,
		Hidden:    &hide.Texts{},
	}
}

// An Operation is a decision that hasn't been carried out. Its exported fields can be shown and compared; the deployer that made it
// can carry it out.
type Operation struct {
	Verb      Verb
	Release   string
	Namespace string
	Place     Place

	// Basis is what the decision is based on. It has to be the same when the operation is carried out.
	Basis Basis
	// Next is the record that carrying out the operation writes. For an uninstall, a test
	// or a watch it is the record that was read.
	Next *release.Record
	// Target is the revision a rollback goes back to; 0 otherwise.
	Target int
	// Rendered has the other results of rendering the chart; zero except for installs and
	// upgrades.
	Rendered RenderingDetails
	// Removal says how to uninstall; zero for other operations.
	Removal Removal

	Plan  *apply.Plan
	Hooks Hooks
	// WaitsFor are the objects to wait for when all is applied, or deleted by an
	// uninstall; empty when waiting wasn't requested.
	WaitsFor []ordering.Dependency
	// NewNamespace says that the release's namespace has to be created first.
	NewNamespace bool
	// MadeNamespace says that it has been created, and that no object of the chart is it.
	MadeNamespace bool

	Warnings []string
	// Hidden is what must not be shown of all this.
	Hidden *hide.Texts

	applier       *apply.Applier                     // that has made Plan, and carries it out; nil when there is nothing to plan
	request       *apply.Request                     // that Plan answers, to make it again; nil when nothing can make it stale
	earlier       []apply.Revision                   // that may have left objects
	contributions map[string]definition.Contribution // what earlier revisions have brought of definitions in crds/
	history       *release.History                   // that was decided on; nil when none was read, and when it is carried out
	showLogs      bool                               // for a test: report the logs of the pods
	wait          bool                               // until what was applied is ready, or what was deleted is gone
	undoes        *Operation                         // the failed one that it undoes; nil for every other operation
	unrecorded    bool                               // an uninstall whose record admission refuses to write at the beginning: only its end is tried again
	denied        error                              // permissions that are missing, besides those of Plan; see CheckPermissions
}

// A Place is the cluster that an operation is decided for, in words that people recognise it by. It is only shown: a saved
// plan fits the same cluster under any name.
type Place struct {
	Context string `json:"context,omitempty"` // of the kubeconfig; empty without one, as in a pod
	Server  string `json:"server,omitempty"`  // URL of the API server
}

// InTitle is what a title says of the place, after a comma; empty if it isn't known.
func (p Place) InTitle() string {
	switch {
	case p.Context != "" && p.Server != "":
		return ", context " + p.Context + " (" + p.Server + ")"
	case p.Context != "":
		return ", context " + p.Context
	case p.Server != "":
		return ", cluster " + p.Server
	}
	return ""
}

// Place is the cluster that the deployer works in.
func (d *Deployer) Place() Place {
	if d.Cluster == nil {
		return Place{}
	}
	return Place{Context: d.Cluster.Context(), Server: d.Cluster.Host()}
}

// RenderingDetails is the result of rendering a chart, without the manifest and hooks of the next
// record.
type RenderingDetails struct {
	// CRDs are the objects of the chart's crds/ directory.
	CRDs []kube.Manifest
	// ClusterIndependent says that the output can't depend on the cluster's capabilities
	// or objects: it is complete even if an API group doesn't answer.
	ClusterIndependent bool
	// Generated are the fields that the templates generate, for a release that has
	// revisions.
	Generated []retain.Value
	// Nondeterminism has the objects that differ between renderings; nil before
	// PrepareToShow.
	Nondeterminism map[kube.ID]Nondeterminism

	rerender func(context.Context) ([]*chart.Rendered, error) // renders the chart again; nil when there is none
}

// Removal is how a release is uninstalled.
type Removal struct {
	KeepHistory bool                       // leaves the records
	Cascade     metav1.DeletionPropagation // how dependents are treated
	Description string                     // the user's text for the record; empty for Helm's
}

// Hooks are the hooks that run before and after the change, in order.
type Hooks struct{ Before, After []*helmrelease.Hook }

// hasPendingRecord reports whether the operation has a pending record while it runs,
// which notes its progress.
func (o *Operation) hasPendingRecord() bool { return verbs[o.Verb].running != "" }

// notesProgress reports whether the pending record notes the progress: not if admission refuses to change it.
func (o *Operation) notesProgress() bool { return o.hasPendingRecord() && !o.unrecorded }

// hookAttempt names the attempt that the hooks of an event belong to. Runs that continue
// a dead run share its attempt. Empty for tests, which run each time.
func (o *Operation) hookAttempt(event helmrelease.HookEvent) string {
	if !o.hasPendingRecord() {
		return ""
	}
	return o.Next.Journal.Attempt + "-" + string(event)
}

// HasChanges reports whether carrying out the operation would change an object. Hooks
// don't count: they run each time.
func (o *Operation) HasChanges() bool {
	for c := range o.Plan.Changes() {
		if c.Action != decide.Unchanged && c.Action != decide.Keep {
			return true
		}
	}
	return o.NewNamespace
}

// A Basis is what a decision was based on. The decision holds as long as the basis is the
// same.
type Basis struct {
	// Records is the identity of all records of the release; unknown for an
	// operation that isn't decided yet.
	Records        release.Identity
	Verb           Verb
	Latest         *release.Summary  // the latest revision; nil before the first
	Revisions      []release.Summary // all there are, oldest first
	ReusedRevision int               // revision whose values are reused
}

// differsFrom reports whether the basis differs in a way that a user cares about.
func (b Basis) differsFrom(from Basis) bool {
	return b.Verb != from.Verb || b.describeLatest() != from.describeLatest() || b.ReusedRevision != from.ReusedRevision
}

func (b Basis) describeLatest() string {
	if b.Latest == nil {
		return "no revision"
	}
	return fmt.Sprintf("revision %d, which is %s", b.Latest.Revision, b.Latest.Status)
}

// String describes the basis.
func (b Basis) String() string {
	text := fmt.Sprintf("%s based on %s", b.Verb, b.describeLatest())
	if b.ReusedRevision != 0 {
		text += fmt.Sprintf(", with the values of revision %d", b.ReusedRevision)
	}
	return text
}
