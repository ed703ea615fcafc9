package apply

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/hide"
)

// Options say how one operation plans and applies. Every zero value is the default.
type Options struct {
	Policies

	// Hidden is what must not be shown in what is told of conflicts; nil is nothing.
	Hidden *hide.Texts

	Parallel int // requests at once; 0 means 16
	// RetryTimeout is how long one object's request is retried while failures
	// pass, at most 2 minutes; 0 means so much. All objects together have twice as
	// much as that for each of Parallel.
	RetryTimeout time.Duration

	// GoneTimeout is how long an object that is being deleted is waited for until
	// it is gone, where another one takes its place; 0 means without end.
	GoneTimeout time.Duration

	refuseNothing bool // of what a chart says by annotations: for drift

	// Warn is told, from any goroutine, of failures that are waited out; nil
	// drops that.
	Warn func(text string)
}

const longestRetry = 2 * time.Minute

func (o Options) withDefaults() Options {
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	set((*string)(&o.Conflicts), string(TakeConflicts))
	set((*string)(&o.Validation), string(ValidationWarn))
	set((*string)(&o.Gate), string(GateStrict))
	set((*string)(&o.CRDs), string(AddCRDs))
	if o.Propagation == "" {
		o.Propagation = metav1.DeletePropagationBackground
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.RetryTimeout <= 0 || o.RetryTimeout > longestRetry {
		o.RetryTimeout = longestRetry
	}
	return o
}

// KeepAnnotation is Helm's, by which an object outlives its release.
const KeepAnnotation = "helm.sh/resource-policy"
