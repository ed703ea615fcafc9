// Package planfile saves a decided operation in a file and later checks whether it still
// fits the cluster.
//
// Save writes the file of an operation and Read reads it. Open verifies that the file is
// genuine and belongs to this cluster. Decide decides the operation again and reports all
// differences. None of them changes the cluster. docs/plan-file.md describes the format.
package planfile

import (
	"time"

	"deployer/apply/decide"
	"deployer/internal/deploy"
)

// Version is the version of the format that is written. Older ones are read.
const Version = 1

// A File is one plan. Its JSON is the format's: fields are added, never renamed
// or retyped.
type File struct {
	Tool    string    `json:"tool"` // deployer and its version
	Created time.Time `json:"created"`

	Cluster Cluster `json:"cluster"`

	Verb            deploy.Verb       `json:"verb"`
	Release         string            `json:"release"`
	Namespace       string            `json:"namespace"`
	CreateNamespace bool              `json:"create_namespace,omitempty"` // it didn't exist and has to be created
	Revision        int               `json:"revision,omitempty"`         // that is to be recorded; of an uninstall the latest
	Target          int               `json:"target,omitempty"`           // that a rollback goes back to
	KeepHistory     bool              `json:"keep_history,omitempty"`
	Description     string            `json:"description,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"` // of the next record
	Reuse           string            `json:"reuse,omitempty"`  // how the values of the base are used again; see chart.ReuseMode
	Base            *Base             `json:"base,omitempty"`   // the latest revision; nil before the first
	Records         []Record          `json:"records,omitempty"`

	// Policies are those that the plan was made with. They decide what is done. How a run
	// is tracked (timeouts, waiting) is chosen when the plan is carried out.
	Policies deploy.Policies `json:"policies"`

	Objects []Object          `json:"objects"`
	Parts   map[string]string `json:"parts"` // keyed digests of what the next record consists of
	Content Content           `json:"content"`

	// Shown is the plan as it was printed, by format. Nothing confidential is
	// in it.
	Shown map[string]string `json:"shown"`

	digest string // of the file as it was read or written
	seal   string
	line   []byte // the JSON of all fields above, as it is
}

// Digest returns "sha256:" and the hexadecimal digest of the file. It is empty until the
// file was written or read.
func (f *File) Digest() string { return f.digest }

// A Base is the revision that a plan starts from.
type Base struct {
	Revision int    `json:"revision"`
	Status   string `json:"status"`
}

// A Record is one of the release's records when the plan was made. Older files have none.
type Record struct {
	Revision  int    `json:"revision"`
	Status    string `json:"status"`
	UIDDigest string `json:"identity"` // salted
}

// An Object is the planned change of one object, and what that depends on. Digests are
// keyed: without the key, values can't be guessed.
type Object struct {
	Object string        `json:"object"` // Deployment/prod/web
	Group  string        `json:"group,omitempty"`
	Step   deploy.Step   `json:"stage"` // crds, apply, prune or hooks
	Action decide.Action `json:"action"`
	UID    string        `json:"uid,omitempty"` // of the live object
	// DesiredDigest is the digest of the desired object; empty when nothing is sent, and
	// for an object that was recognised by its fingerprint.
	DesiredDigest string `json:"want,omitempty"`
	// Fields are the fields that change. For a new object they are those whose values the
	// server changes.
	Fields []Field `json:"fields,omitempty"`
	// Unverified says that the server could not be asked.
	Unverified bool `json:"unverified,omitempty"`
}

// A Field is one field that changes.
type Field struct {
	Path   string   `json:"path"`
	ID     string   `json:"id,omitempty"`     // keyed digest of a path with items of lists, which may be hidden in Path
	Before string   `json:"before,omitempty"` // digest of the live value; empty when there is none
	After  string   `json:"after,omitempty"`  // digest of the new value; empty when removed, and when the server chooses it
	Owners []string `json:"owners,omitempty"` // managers that own it, as in managedFields

	// From and To are the values as they are shown; empty where they are
	// confidential.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Content is the content of the next revision.
type Content struct {
	Mode ContentMode `json:"how"`
	Data []byte      `json:"data,omitempty"`
}

// ContentMode says where the content comes from when a plan is carried out.
type ContentMode string

// The choices.
const (
	ContentPlain      ContentMode = "clear"  // the file has it
	ContentEncrypted  ContentMode = "age"    // the file has it, encrypted
	ContentRerendered ContentMode = "render" // it is rendered again, and must be the same
	ContentStored     ContentMode = "stored" // a stored revision has it, which must be the same
)
