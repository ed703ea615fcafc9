// Package finding has the one model of a failure, from a pod's symptom or a rule's verdict to what people and programs read.
//
// Package pods finds what is wrong with a pod; package track merges what its pods and its own status say about an object,
// and what several objects share; package view adds what the release changed, and formats it. Its JSON is a promise, see
// docs/json.md.
package finding

import (
	"encoding/json"
	"fmt"
	"time"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/rules"
)

// A Finding is one reason why objects aren't ready. Fields tagged text:"free" hold text that the cluster wrote.
type Finding struct {
	Class   class.Class `json:"class"`
	Title   string      `json:"title" text:"free"` // heading of the class: "Image can't be pulled"
	Fatal   bool        `json:"fatal"`             // it is final; false: it may heal
	Objects IDs         `json:"objects"`           // that have it; the first is the example that the rest is about
	Message string      `json:"message,omitempty" text:"free"`

	Container   string   `json:"container,omitempty"` // "app", "init:migrate"; empty when it isn't about one
	Image       string   `json:"image,omitempty"`
	Pods        []string `json:"pods,omitempty"`         // new pods that have it, at most 20, in order of name
	PodCount    int      `json:"pod_count,omitempty"`    // how many have it
	PodTotal    int      `json:"pod_total,omitempty"`    // new pods seen
	Nodes       []string `json:"nodes,omitempty"`        // of those pods, in order of name
	SuspectNode string   `json:"suspect_node,omitempty"` // the only node of these pods, while pods on other nodes are ready

	Attempts int    `json:"attempts,omitempty"`       // crashes, pulls or starts that have failed so far
	Limit    int    `json:"attempts_limit,omitempty"` // attempts that make it final; 0 when time alone does
	ExitCode *int32 `json:"exit_code,omitempty"`      // of the container
	Reason   string `json:"reason,omitempty"`         // of its last termination: OOMKilled, Error

	Since   time.Time `json:"since,omitzero"`    // when it was first seen
	FinalAt time.Time `json:"final_at,omitzero"` // when it becomes final if nothing changes; zero when it never does by itself

	Missing       *Missing `json:"missing,omitempty"`            // whose absence is the cause; nil when that isn't known
	Advice        string   `json:"advice,omitempty" text:"free"` // what must be done that a new release alone doesn't: "delete pod web-2 after the fix"
	Blocks        IDs      `json:"blocks,omitempty"`             // objects that aren't ready because of the Objects
	BeforeRelease bool     `json:"before_release,omitempty"`     // it was there before, and the object wasn't changed; what its pods read may have been
	Events        []Event  `json:"events,omitempty"`             // newest last, at most 10
	Logs          []Log    `json:"logs,omitempty"`               // of at most two containers; set when the wait has ended

	Rollout *rules.Rollout `json:"-"` // of the example; nil when it isn't a workload
}

// Of returns a finding of a class.
func Of(c class.Class, message string) Finding {
	return Finding{Class: c, Title: class.InfoOf(c).Title, Message: message}
}

// IsFinal reports whether it can't heal any more at a time.
func (f *Finding) IsFinal(now time.Time) bool { return !f.FinalAt.IsZero() && !now.Before(f.FinalAt) }

// Text is the title with the message.
func (f *Finding) Text() string {
	if f.Message == "" {
		return f.Title
	}
	return f.Title + ": " + f.Message
}

// TextWithPods also names the pods.
func (f *Finding) TextWithPods() string {
	if len(f.Pods) == 0 {
		return f.Text()
	}
	return "pod " + f.Pods[0] + AndMore(f.PodCount-1) + ": " + f.Text()
}

// AndMore follows the first of several names.
func AndMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// IDs are objects. In JSON they are written as people write them: "Kind/namespace/name".
type IDs []kube.ID

// MarshalJSON writes the names: a list also where there are none.
func (ids IDs) MarshalJSON() ([]byte, error) { return json.Marshal(ids.Names()) }

// Names returns the names.
func (ids IDs) Names() []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

// A Missing is what something needs and isn't there, in the same namespace.
type Missing struct {
	Group string `json:"-"` // API group of the kind
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Key   string `json:"key,omitempty"` // of a ConfigMap or Secret that is there; empty when the object is missing
}

// An Event is a Kubernetes event about an object or one of its pods.
type Event struct {
	Type    string    `json:"type"` // Warning or Normal
	Reason  string    `json:"reason"`
	Message string    `json:"message" text:"free"`
	Object  string    `json:"object,omitempty"` // Pod/web-5c7-x2x
	Count   int       `json:"count,omitempty"`
	Last    time.Time `json:"last,omitzero"` // by the cluster's clock
}

// A Log is the end of a container's log.
type Log struct {
	Pod               string   `json:"pod"`
	Container         string   `json:"container"`
	Previous          bool     `json:"previous,omitempty"` // of the run before the present one
	Lines             []string `json:"lines" text:"free"`
	UnavailableReason string   `json:"why,omitempty" text:"free"` // why there are no lines: "no permission to get pods/log"
}
