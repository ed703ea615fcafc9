package track

import (
	"cmp"
	"time"

	"deployer/track/rules"
)

// An evaluation computes the status of an object at one time. It also updates the object's
// timers and what is known of its new pods.
type evaluation struct {
	*trackedObject
	now time.Time
}

// ruleInput is what the rule of the object's kind may look at.
func (e evaluation) ruleInput() rules.Input {
	in := rules.Input{Object: e.observed.object, Baseline: e.Baseline, Changed: e.Changed,
		MustComplete: (e.Until == UntilComplete || e.settings.trackAs == "job") && e.settings.trackAs != "service", AppliedAt: e.timers.appliedAt, Now: e.now,
		HasStatusSubresource: e.observed.hasStatusSubresource, RolloutRequired: e.settings.rolloutRequired, Events: e.events.counts, Override: cmp.Or(e.settings.override, e.kindOverride)}
	if e.settings.rolloutRequired != "" && e.knowsNewPods() {
		in.NewReady = e.newPods.ready()
	}
	if e.release.workloads != nil && !e.isWorkload() {
		in.Workloads = e.release.workloads()
	}
	return in
}

// knowsNewPods refreshes the revision first and reports whether the known pods belong to it:
// pods are looked for after the status was computed.
func (t *trackedObject) knowsNewPods() bool {
	_, revision, owner := refreshRevision(t)
	return owner != "" && revision == t.newPods.revision
}
