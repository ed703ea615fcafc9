// Package deploy is the order of things: render, record, plan, apply, track, record.
package deploy

import (
	"context"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/chart"
	"deployer/chart/generated"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/release"
	"deployer/track"
)

// Verb is what an operation does to a release.
type Verb string

// The verbs.
const (
	Install   Verb = "install"
	Upgrade   Verb = "upgrade"
	Rollback  Verb = "rollback"
	Uninstall Verb = "uninstall"
	Test      Verb = "test"  // run its tests
	Watch     Verb = "watch" // follow what is there
)

// Policies decide what an operation does. Plan files hold them, in this order: fields
// are added at the end, never renamed. Every zero value is the default.
type Policies struct {
	apply.Policies
	NoHooks bool `json:"no_hooks,omitempty"`
	// MapRemovedAPIs deploys objects whose API version the cluster has removed in
	// the one that took its place, where nothing but the name is different.
	MapRemovedAPIs bool `json:"map_removed_apis,omitempty"`
	// Generated says what becomes of values that templates generate and that an
	// earlier revision has recorded; empty keeps them.
	Generated generated.Policy `json:"generated,omitempty"`
	// AllowStoredHooks lets uninstalls and rollbacks run hooks of records that are
	// cluster-scoped or in another namespace than the release.
	AllowStoredHooks bool `json:"allow_stored_hooks,omitempty"`
}

// Settings are what all operations of one run share. The zero value waits for
// nothing but hooks, for as long as the context allows.
type Settings struct {
	Policies
	Timeout    time.Duration // of each wait, and of failures waited out; 0 means none and two minutes
	Wait       bool          // until what was applied is ready
	WaitJobs   bool          // with Wait, also until Jobs are complete
	MaxHistory int           // revisions to keep; 0 keeps all
	// TakeoverPending recovers records that another tool left pending at once.
	TakeoverPending bool
	Track           track.Options
}

// A Deployer decides and carries out operations on the releases of one
// namespace.
type Deployer struct {
	Cluster   *kube.Cluster
	Namespace string
	Releases  *release.Store
	Settings  Settings
	// Hidden is what must not be shown to anybody, as far as it has been read.
	Hidden *hide.Texts
	// Warn is told, from any goroutine, of failures of the cluster that are
	// waited out; nil drops that.
	Warn func(text string)

	// ForShow says that what is decided is going to be shown, and not carried out.
	ForShow bool

	undoing  bool                // what is carried out undoes a run that failed
	rendered []*helmrelease.Hook // with undoing: the hooks of that run's chart
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

// An Operation is a decision not yet carried out. It is a value: print it,
// compare it, throw it away.
type Operation struct {
	Verb      Verb
	Release   string
	Namespace string

	// Basis is what this was decided on; carried out, it has to be the same.
	Basis Basis
	// Next is what carrying it out will record. For an uninstall, a test or a
	// watch it is the revision as it was read.
	Next *release.Record
	// Target is the revision a rollback goes back to; 0 otherwise.
	Target int
	// Rendered is what else rendering the chart gave; zero but for installs and
	// upgrades.
	Rendered Rendered
	// Removal is how an uninstall is made; zero otherwise.
	Removal Removal

	Plan  *apply.Plan
	Hooks Hooks
	// WaitsFor is what is waited for when all is applied, or of an uninstall deleted;
	// nothing when that wasn't asked for.
	WaitsFor []ordering.Dependency
	// NewNamespace says that the release's namespace has to be created first.
	NewNamespace bool

	Warnings []string
	// Hidden is what must not be shown of all this.
	Hidden *hide.Texts

	earlier       []apply.Revision              // that may have left objects
	contributions map[string]apply.Contribution // what earlier revisions have brought of definitions in crds/
	history       *release.History              // that was decided on; nil for what isn't decided by one
	showLogs      bool                          // test: tell the logs of the pods
}

// Rendered is what a chart was rendered to, beside the manifest of the next record.
type Rendered struct {
	// CRDs are the objects of the chart's crds/ directory.
	CRDs []kube.Manifest
	// ClusterIndependent says that what was rendered can't depend on what the cluster
	// serves or has: an API group that doesn't answer hides nothing from it.
	ClusterIndependent bool
	// Generated are the fields that the templates generate, for a release that has
	// revisions.
	Generated []generated.Value
	// Nondeterminism are the objects that come out otherwise each time they are
	// rendered; nil before FindNondeterminism.
	Nondeterminism map[kube.ID]Nondeterminism

	again func(context.Context) ([]*chart.Rendered, error) // renders the chart again; nil when there is none
}

// Removal is how a release is uninstalled.
type Removal struct {
	KeepHistory bool                       // leaves the records
	Cascade     metav1.DeletionPropagation // how dependents are treated
	Description string                     // the user's text for the record; empty for Helm's
}

// Hooks are the hooks that run before and after the change, in order.
type Hooks struct{ Before, After []*helmrelease.Hook }

// hasPendingRecord tells whether the operation has a record that is pending while it is
// carried out, in which it notes how far it has come.
func (o *Operation) hasPendingRecord() bool {
	return o.Verb == Install || o.Verb == Upgrade || o.Verb == Rollback || o.Verb == Uninstall
}

// hookAttempt names what the hooks of an event are run for, also over several runs
// when some of them die; empty for tests, which run each time.
func (o *Operation) hookAttempt(event helmrelease.HookEvent) string {
	if !o.hasPendingRecord() {
		return ""
	}
	return o.Next.Journal.Attempt + "-" + string(event)
}

// withTimeout bounds ctx by the timeout of one wait.
func (d *Deployer) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Settings.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d.Settings.Timeout)
}

// HasChanges tells whether carrying the operation out would change an object.
// Hooks don't count: they run each time, also when all is as it should be.
func (o *Operation) HasChanges() bool {
	for c := range o.Plan.Changes() {
		if c.Action != apply.Unchanged && c.Action != apply.Keep {
			return true
		}
	}
	return o.NewNamespace
}
