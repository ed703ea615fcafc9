package apply

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/hide"
)

// Options say how one operation plans and applies. Every zero value is the default.
type Options struct {
	Policies

	// Hidden has the texts that must not be shown in conflicts, and is told those of live
	// objects; nil hides nothing.
	Hidden *hide.Texts

	Parallel int // requests at once; 0 means as many as kube.Cluster.RequestsAtOnce says
	// RetryTimeout limits the retries of one object's request while failures are
	// transient; 0 means 2 minutes, which is also the maximum. All objects together have
	// a budget of 2 * Parallel * RetryTimeout, with 16 for a Parallel of 0.
	RetryTimeout time.Duration

	// GoneTimeout limits each wait for a deleted object to be gone: before its replacement is
	// created, before the next deletion in order, and for hooks. 0 means no limit.
	GoneTimeout time.Duration

	refuseNothing bool // ignore policies in annotations that would reject objects: for drift

	// Warn is called, from any goroutine, for failures that are retried, and for warnings that
	// aren't in the plan because they come later; nil ignores them.
	Warn func(text string)
}

const longestRetry = 2 * time.Minute

func (o Options) withDefaults() Options {
	o.Conflicts = cmp.Or(o.Conflicts, TakeConflicts)
	o.Validation = cmp.Or(o.Validation, ValidationWarn)
	o.Gate = cmp.Or(o.Gate, GateStrict)
	o.CRDs = cmp.Or(o.CRDs, AddCRDs)
	o.Propagation = cmp.Or(o.Propagation, metav1.DeletePropagationBackground)
	if o.RetryTimeout <= 0 || o.RetryTimeout > longestRetry {
		o.RetryTimeout = longestRetry
	}
	return o
}
