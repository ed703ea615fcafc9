package apply

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/decide"
	"deployer/internal/hide"
)

// Options say how one operation plans and applies. Every zero value is the default.
type Options struct {
	Policies

	// Hidden has the texts that must not be shown in conflicts, and is told those of live
	// objects; nil hides nothing.
	Hidden *hide.Texts

	// RetryTimeout limits the retries of one object's request while failures are
	// transient; 0 means 2 minutes, which is also the maximum. All objects together have
	// a budget of 32 times as long.
	RetryTimeout time.Duration

	// GoneTimeout limits each wait for a deleted object to be gone: before its replacement is
	// created, before the next deletion in order, and for hooks. 0 means no limit.
	GoneTimeout time.Duration

	// Warn is called, from any goroutine, for failures that are retried, and for warnings that
	// aren't in the plan because they come later; nil ignores them.
	Warn func(text string)
}

const longestRetry = 2 * time.Minute

func (o Options) withDefaults() Options {
	o.Conflicts = cmp.Or(o.Conflicts, decide.TakeConflicts)
	o.Validation = cmp.Or(o.Validation, ValidationWarn)
	o.Gate = cmp.Or(o.Gate, GateStrict)
	o.CRDs = cmp.Or(o.CRDs, AddCRDs)
	o.Propagation = cmp.Or(o.Propagation, metav1.DeletePropagationBackground)
	if o.RetryTimeout <= 0 || o.RetryTimeout > longestRetry {
		o.RetryTimeout = longestRetry
	}
	return o
}

// Policies decide what is done to objects. Every zero value is the default. Plan
// files hold them: fields are added, never renamed.
type Policies struct {
	Conflicts  decide.ConflictPolicy `json:"conflicts,omitempty"`
	Validation FieldValidation       `json:"field_validation,omitempty"`
	Gate       Gate                  `json:"gate,omitempty"`
	CRDs       CRDPolicy             `json:"crds,omitempty"`

	// AllowRecreate permits deleting and creating an object again when the server refuses its change because a field is
	// immutable. Jobs need no permission. CustomResourceDefinitions, Namespaces and PersistentVolumes are never recreated.
	// Claims and custom resources also need the annotation deployer.io/recreate: "true"; for other objects that annotation
	// alone is enough, unless they were adopted.
	AllowRecreate bool `json:"allow_recreate,omitempty"`

	// RevertManual removes fields that people have added to objects of the release, such
	// as by kubectl edit, except in metadata. Without it such fields stay, with a
	// warning.
	RevertManual bool `json:"revert_manual_changes,omitempty"`

	TakeOwnership     bool     `json:"take_ownership,omitempty"`      // adopt objects that belong to no release
	TakeOwnershipFrom []string `json:"take_ownership_from,omitempty"` // releases, as "namespace/name", whose objects may be taken; "*" means any
	Adopt             []string `json:"adopt,omitempty"`               // objects that may be adopted from anybody, as "kind/name" or "kind/namespace/name"

	// PruneKinds permits the deletion of those ProtectedKinds that it names when the
	// chart drops them. Uninstall as Helm does it passes all of them.
	PruneKinds []string `json:"prune_kinds,omitempty"`

	// PartialDiscovery permits pruning even if the server couldn't list all its API
	// groups, so that templates may have rendered too little.
	PartialDiscovery bool `json:"partial_discovery,omitempty"`

	// Propagation says how the dependents of pruned objects are deleted; empty means in
	// the background.
	Propagation metav1.DeletionPropagation `json:"cascade,omitempty"`
}

// FieldValidation says what to do with fields that a kind's schema doesn't have.
type FieldValidation string

// The policies. The zero value is ValidationWarn: server-side apply rejects unknown fields, so they
// are dropped here, with a warning, as the API server dropped them for Helm 3.
const (
	ValidationWarn   FieldValidation = "warn"
	ValidationStrict FieldValidation = "strict"
	ValidationIgnore FieldValidation = "ignore"
)

// Gate says how much of the release the server must have accepted in a dry run
// before the first change.
type Gate string

// The modes. The zero value is GateStrict.
const (
	GateStrict     Gate = "strict"      // any rejection stops the release; what couldn't be asked is marked Unverified
	GateBestEffort Gate = "best-effort" // rejections become warnings; the object is tried when its turn comes
	GateOff        Gate = "off"         // no dry run of objects that are to be created; existing ones are still compared
)

// CRDPolicy says what to do with the objects of a chart's crds/ directory.
type CRDPolicy string

// The modes. The zero value is AddCRDs.
const (
	AddCRDs     CRDPolicy = "add"     // create, and update unless that removes what the release didn't add
	UpgradeCRDs CRDPolicy = "upgrade" // create or update
	CreateCRDs  CRDPolicy = "create"  // create missing ones only
	SkipCRDs    CRDPolicy = "skip"
)

// Applies reports whether the objects of crds/ are looked at at all.
func (p CRDPolicy) Applies() bool { return p != SkipCRDs }

// leavesExisting reports whether what exists stays as it is, and needs no permission.
func (p CRDPolicy) leavesExisting() bool { return p == CreateCRDs }

// removesOthers reports whether an update may remove what the release didn't add, and replace what belongs to nobody.
func (p CRDPolicy) removesOthers() bool { return p == UpgradeCRDs }
