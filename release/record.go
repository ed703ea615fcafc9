// Package release stores the release history: one record per revision, in Secrets that
// the helm binary also reads and writes.
//
// A Store reads records. It can also delete a Lease that is no longer needed.
// All other writes need a Lock, which is the right to change one release:
//
//   - Recover records revisions as failed that killed runs left unfinished.
//   - Begin writes the next revision with a pending status.
//   - Save writes the journal of the run while it works.
//   - Finish records how the revision ended.
//
// docs/release-storage.md describes the format.
package release

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/program"
)

// ApplySSA is the ApplyMethod of revisions deployed by server-side apply.
const ApplySSA = "ssa"

// A Record is one revision of a release. Its JSON is Helm's with additions. Helm ignores
// these, and drops them when it writes the record again. Labels has only the user's
// labels.
type Record struct {
	helmrelease.Release

	// ApplyMethod is "ssa" for revisions deployed by server-side apply, as
	// Helm 4 records it. Empty for revisions of Helm 3.
	ApplyMethod string `json:"apply_method,omitempty"`

	// Slim says that the chart's templates, schema and files were left out to save space.
	// Metadata, values and crds/ remain, so a rollback to the record is possible, but its
	// chart can't be rendered again.
	Slim bool `json:"deployer_slim,omitempty"`

	// Journal says what a run has done so far; nil in records of other tools,
	// and in those that another tool has written again.
	Journal *Journal `json:"deployer,omitempty"`

	stored stored
}

// stored identifies the Secret that a record was read from or last written to. The zero
// value means that it isn't stored. uid and resourceVersion are set or empty together: a write either creates the
// Secret, or replaces this very version. bundles are all that its labels refer to, and are stored before it.
type stored struct {
	namespace       string // of the Secret; not that of the release if another tool has stored it elsewhere
	uid             types.UID
	resourceVersion string
	content         [sha256.Size]byte // of the Secret; labels and annotations, which other programs put on all Secrets, don't count
	created         string            // Helm's label createdAt
	bundles         []bundleRef       // empty for a record in one Secret
	journal         types.UID         // of the Secret with the journal of the run; empty when it has none
	written         time.Time         // the record or its journal, by the server's clock
	lost            int               // how often somebody has deleted the Secret during the run
}

// Journal is what deployer records in addition to Helm. While a run works it is in a Secret of its own, see
// Lock.Save, and afterwards in the record. The fields other than those of RunInfo are its entries, which
// stay in Secrets of their own if there are many.
type Journal struct {
	RunInfo

	Objects map[string]ObjectState `json:"objects,omitempty"` // by apply.Key; as the last apply left them
	Hooks   map[string]string      `json:"hooks,omitempty"`   // hooks finished in this attempt: name to outcome

	// Generated has the generated fields, by apply.Key and path: the revision
	// that a value was kept from, 0 for a new one.
	Generated map[string]map[string]int `json:"generated,omitempty"`

	// Confidential lists texts of Secrets that templates have read, if the manifest, a hook or
	// the notes contain them.
	Confidential []string `json:"confidential,omitempty"`

	// Revisit are the Keys, see package apply, of objects of earlier revisions that were
	// kept for a temporary reason: the next release decides about them again.
	Revisit []string `json:"leftover,omitempty"`

	// Contributions are the release's contributions to the definitions in crds/, by Key of
	// package apply. They are copied from revision to revision; nil in older records.
	Contributions map[string]Contribution `json:"definitions"`
}

// RunInfo says which run wrote a record, and how far it has come. It is always in the Secret that
// Helm sees.
type RunInfo struct {
	Run     string `json:"run"`               // identity of the run
	Attempt string `json:"attempt,omitempty"` // Run of the first of several runs that continue each other's work
	Holder  string `json:"holder,omitempty"`  // who ran it, for people: host, pid, CI job
	Process string `json:"process,omitempty"` // the same for programs; see process
	Leased  bool   `json:"leased,omitempty"`  // the run held the release's Lease
	Step    string `json:"step,omitempty"`    // the current step of the run

	// Interrupted says that the run died and another one recorded its end: the next run
	// may continue its attempt.
	Interrupted bool `json:"interrupted,omitempty"`

	// WasDeployed says that the revision was deployed when its uninstall began: if that failed, its
	// objects may still be in use.
	WasDeployed bool `json:"was_deployed,omitempty"`
}

// A Contribution records how a release left a CustomResourceDefinition that it does not own,
// and which parts the release contributed. See definition.Contribution.
type Contribution struct {
	Left   string   `json:"left"`
	Before string   `json:"before,omitempty"`
	Whole  bool     `json:"whole,omitempty"`
	Places []string `json:"places,omitempty"`
}

// An ObjectState records how a run left one object. An empty UID means that the object was
// planned; the run may or may not have applied it.
type ObjectState struct {
	UID         string `json:"uid"`
	Fingerprint string `json:"print,omitempty"`   // fingerprint of our managed fields; see package apply
	Created     bool   `json:"created,omitempty"` // the release created it, in this revision or before

	// Adopted is set for an object that existed before the release had it; nil for one
	// that the release created, and in records without provenance.
	Adopted *Adoption `json:"adopted,omitempty"`
}

// An Adoption records an object that a release adopted. It is written before the first
// change to the object.
type Adoption struct {
	UID      string `json:"uid"`            // the object's
	Revision int    `json:"revision"`       // that adopted it
	From     string `json:"from,omitempty"` // the release that had it, as "namespace/name"; empty for none
	// Final says that a revision with the object has succeeded: it isn't given
	// back any more.
	Final bool `json:"final,omitempty"`
	// Prior is the former state of the object, as encoded by package apply; it may have
	// confidential values.
	Prior json.RawMessage `json:"prior,omitempty"`
}

// CheckStoredInPlace returns an error if the record is in another namespace than its release. Flux stores it in that of
// the HelmRelease, or in its storageNamespace. deployer reads such a release, and leaves changing it to the tool that has it.
func (rec *Record) CheckStoredInPlace() error {
	stored := rec.stored.namespace
	if stored == "" || stored == rec.Namespace {
		return nil
	}
	return program.WithHint(
		fmt.Errorf("revision %d of release %s is stored in namespace %s, but its objects are in namespace %s, as of a HelmRelease of Flux with targetNamespace or storageNamespace, or of a backup that was restored elsewhere",
			rec.Version, rec.Name, stored, rec.Namespace),
		fmt.Sprintf("change the release with the tool that has it: "+program.Kubectl+" -n %s get helmreleases; a record that belongs to namespace %s can be moved there", stored, rec.Namespace))
}

// isUnfinished reports whether a run is working on a revision of this status, or was when it
// died.
func isUnfinished(s helmrelease.Status) bool {
	return s.IsPending() || s == helmrelease.StatusUninstalling
}
