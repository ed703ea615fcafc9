package apply

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Policies decide what is done to objects. Every zero value is the default. Plan
// files hold them: fields are added, never renamed.
type Policies struct {
	Conflicts  ConflictPolicy  `json:"conflicts,omitempty"`
	Validation FieldValidation `json:"field_validation,omitempty"`
	Gate       Gate            `json:"gate,omitempty"`
	CRDs       CRDs            `json:"crds,omitempty"`

	// AllowRecreate lets objects whose change the server refuses because a
	// field is immutable be deleted and created again. Jobs need no permission.
	// CustomResourceDefinitions, Namespaces and PersistentVolumes never are; a
	// PersistentVolumeClaim only if it also says deployer.io/recreate: "true".
	// That annotation on an object permits it for other kinds by itself.
	AllowRecreate bool `json:"allow_recreate,omitempty"`

	// RevertManual removes what people have added to objects of the release by
	// kubectl edit and the like, other than labels, annotations and what else is
	// in metadata. Without it such fields stay, with a warning.
	RevertManual bool `json:"revert_manual_changes,omitempty"`

	TakeOwnership     bool     `json:"take_ownership,omitempty"`      // adopt objects that belong to no release
	TakeOwnershipFrom []string `json:"take_ownership_from,omitempty"` // releases, as "namespace/name", whose objects may be taken; "*" means any
	Adopt             []string `json:"adopt,omitempty"`               // objects that may be adopted from anybody, as "kind/name" or "kind/namespace/name"

	// PruneKinds permits the deletion of those ProtectedKinds that it names when the
	// chart drops them. Uninstall as Helm does it passes all of them.
	PruneKinds []string `json:"prune_kinds,omitempty"`

	// PartialDiscovery permits pruning although the server couldn't list all
	// its API groups, so that templates may have rendered less than they should.
	PartialDiscovery bool `json:"partial_discovery,omitempty"`

	// Propagation is what becomes of the dependents of pruned objects. Empty
	// means that they are deleted in the background.
	Propagation metav1.DeletionPropagation `json:"cascade,omitempty"`
}

// ConflictPolicy says what to do with a field that the chart states and somebody
// else has set to another value. The annotation deployer.io/conflicts on an
// object, with one of the same words, wins over the option.
// The number of replicas of an autoscaled workload always yields.
type ConflictPolicy string

// The policies. The zero value is Take.
const (
	TakeConflicts  ConflictPolicy = "take"  // the chart's value wins; the plan names who loses what
	FailOnConflict ConflictPolicy = "fail"  // refuse before the first change
	YieldConflicts ConflictPolicy = "yield" // leave the field, and its ownership, to whoever set it
)

// FieldValidation says what to do with fields that a kind's schema doesn't have.
type FieldValidation string

// The policies. The zero value is Warn: server-side apply knows no leniency, so
// what Helm 3 sent and the API server dropped is dropped here, with a warning.
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
	GateBestEffort Gate = "best-effort" // rejections become warnings and are met again when the object's turn comes
	GateOff        Gate = "off"         // no dry run of objects that are to be created; existing ones are still compared
)

// CRDs says what to do with the objects of a chart's crds/ directory.
type CRDs string

// The modes. The zero value is AddCRDs.
const (
	AddCRDs     CRDs = "add"     // create, and update unless that takes away what the release didn't bring
	UpgradeCRDs CRDs = "upgrade" // create or update
	CreateCRDs  CRDs = "create"  // leave those that exist alone, as Helm 3 does
	SkipCRDs    CRDs = "skip"
)
