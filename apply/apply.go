// Package apply works out what has to change in the cluster, and changes it,
// by Kubernetes server-side apply.
//
// Plan reads and asks the server to dry-run; it changes nothing. Run, CreateHook
// and DeleteHook change things. Nothing else in the package writes.
package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/managedfields"

	"deployer/apply/builtin"
	"deployer/internal/kube"
)

// Manager is our field manager. Helm 4 and Nelm use the same, so a change of
// tool never makes a second applier.
const Manager = "helm"

// Owner is the release on whose behalf objects are applied. It is written on
// every object exactly as Helm writes it: label app.kubernetes.io/managed-by=Helm,
// annotations meta.helm.sh/release-name and meta.helm.sh/release-namespace.
// Objects of a namespaced kind that name no namespace belong to Namespace.
type Owner struct{ Release, Namespace string }

// String gives namespace/release.
func (o Owner) String() string { return o.Namespace + "/" + o.Release }

// An Applier plans and applies the objects of one release. It keeps no state
// between calls except what the Cluster caches, what objects have in common and
// how long it has waited for failures to pass, and is safe for concurrent use.
type Applier struct {
	cluster *kube.Cluster
	owner   Owner
	opts    Options
	builtin func() (managedfields.TypeConverter, error)
	shared  *sharing
	budget  *budget
	told    *sync.Map // failures that were told of by Options.Warn

	adopting func(context.Context, Change) error // see Announcing; nil records nothing
}

// New returns an Applier; it does no network I/O.
func New(c *kube.Cluster, owner Owner, opts Options) *Applier {
	opts = opts.withDefaults()
	return &Applier{
		cluster: c, owner: owner, opts: opts,
		builtin: sync.OnceValues(builtin.TypeConverter),
		shared:  newSharing(),
		budget:  &budget{left: 2 * time.Duration(opts.Parallel) * opts.RetryTimeout},
		told:    &sync.Map{},
	}
}
