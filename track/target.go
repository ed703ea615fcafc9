package track

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
)

// Until is the state that a target has to reach.
type Until string

// The states to wait for.
const (
	UntilReady    Until = ""         // ready by the rules of its kind
	UntilComplete Until = "complete" // a hook: Job complete, Pod succeeded; other kinds as UntilReady
	UntilGone     Until = "gone"     // deleted
	UntilPresent  Until = "present"  // there, in whatever state
)

// LogMode says which logs of a target's pods are wanted. The object's annotation
// deployer.io/logs overrides it.
type LogMode string

// The log modes.
const (
	LogsDefault LogMode = ""       // LogsLive for Jobs, LogsFailed for others
	LogsFailed  LogMode = "failed" // the last lines of failed containers, in the report of the failure
	LogsLive    LogMode = "live"   // each line as it is written, in addition to LogsFailed
	LogsNone    LogMode = "none"
)

// A Target is an object to wait for.
type Target struct {
	ID    kube.ID
	GVK   schema.GroupVersionKind // as applied; the baseline's when empty
	Until Until

	// Baseline is the object as the apply's response showed it. For UntilGone
	// it is the object as last seen, of which only the uid matters; nil then
	// means any object of the name. In all other cases nil means that nothing
	// is known, and the object is read first.
	Baseline *unstructured.Unstructured
	// Changed is false when the apply changed nothing. The baseline is then
	// evaluated at once, and conditions in it are not taken for old ones.
	Changed bool
	// Previous is the live object before this release; nil when it is new or
	// not known.
	Previous *unstructured.Unstructured

	// MayAppearLater says that somebody else may create the object later. While it doesn't exist it
	// is waited for, and failures that may heal don't fail it.
	MayAppearLater bool

	Logs LogMode
}
