package rules

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whether a status is about the object as it is now, is decided in this file. A status may be that of before the change, or of
// an operator that this release restarts; it may never be written; and a failure of before may already be cured.

const (
	// controllerStartTimeout is how long a controller that was restarted has to look at an object whose status was
	// there before. A new leader may have to wait for the lease of the one before.
	// k8s.io/client-go/tools/leaderelection: leases of 15 seconds, by default
	controllerStartTimeout = 20 * time.Second
	// failedBeforeGrace is how long a controller has to get over a failure from before the release. What the release
	// changed elsewhere, such as a Secret or a workload, may be the cure.
	failedBeforeGrace = time.Minute
	workloadsRecheck  = 5 * time.Second // between two checks whether workloads are ready
)

// whenObserved gives the verdict on a status, unless that may still be about the object before the change.
//
// A controller that writes no observedGeneration has a moment to write something. If workloads of the release
// are being restarted, one of them may be that controller: what was written before they are ready is no news, and
// if nothing is written soon after that, the object is ready without proof.
func whenObserved(in Input, limit time.Duration, verdict func() Verdict) Verdict {
	seen, known := generationObserved(in.Object)
	switch {
	case !seen:
		return progressing(notObserved)
	case known || !in.Changed:
		return verdict()
	}
	wasThere := in.Baseline != nil && hasStatus(in.Baseline)
	if wasThere && in.Workloads.Busy {
		v := progressing("waiting for the controller, which may be one of the workloads that aren't ready")
		v.RecheckAfter = workloadsRecheck
		return v
	}
	if statusWritten(in) {
		return verdict()
	}
	from, restarted := in.AppliedAt, wasThere && !in.Workloads.ReadySince.IsZero()
	if restarted {
		limit, from = max(limit, controllerStartTimeout), in.settledAt()
	}
	if left := limit - in.Now.Sub(from); left > 0 {
		v := progressing("waiting for the controller")
		v.RecheckAfter = left
		return v
	}
	v := verdict()
	if restarted && v.Phase == Ready {
		v.Unverified, v.Notes = true, append(v.Notes, "unverified: its status is the one of before the change")
	}
	return v
}

// unverifiedAfter makes an object that no controller appears to manage ready without proof
// after some time. The time begins when the workloads of the release are ready, because one
// of them may be the controller. An unchanged object gets no such time, unless it is that young.
func unverifiedAfter(in Input, v Verdict, limit time.Duration, note string) Verdict {
	if in.Workloads.Busy {
		v.RecheckAfter = workloadsRecheck
		return v
	}
	from := in.settledAt()
	isNew := in.Changed || in.Object.GetCreationTimestamp().After(in.AppliedAt.Add(-limit))
	if left := limit - in.Now.Sub(from); left > 0 && isNew {
		v.RecheckAfter = left
		return v
	}
	return Verdict{Phase: Ready, Unverified: true, Message: note, Notes: []string{note}}
}

// settledAt is when the object was applied, or when the workloads became ready of which one may be its controller.
func (in *Input) settledAt() time.Time {
	if in.Workloads.ReadySince.After(in.AppliedAt) {
		return in.Workloads.ReadySince
	}
	return in.AppliedAt
}

// failedSince gives the verdict on a failure that a status tells of, if that was there before the change.
func failedSince(in Input, v Verdict) Verdict {
	switch {
	case !hasStatus(in.Object) || statusWritten(in):
	case in.Workloads.Busy: // one of them may be its controller, or the cure
		return Verdict{Message: v.Message, RecheckAfter: workloadsRecheck}
	default:
		v.Grace = max(v.Grace, failedBeforeGrace)
	}
	return v
}

// isOfEarlierGeneration reports whether a failure is one of the object before the change. A status that was written
// since counts even if its generation is an earlier one: not every controller writes that when it fails.
func isOfEarlierGeneration(in Input) bool {
	seen, _ := generationObserved(in.Object)
	return !seen && in.Changed && hasStatus(in.Object) && !statusWritten(in)
}

// generationObserved reports whether the controller has seen the object's present
// generation. known is false when it doesn't say which one it has seen.
func generationObserved(obj *unstructured.Unstructured) (seen, known bool) {
	got, known := observedGeneration(obj)
	return !known || got >= obj.GetGeneration(), known
}

// observedGeneration returns the generation that the controller says it has seen. known is false when it doesn't say.
func observedGeneration(obj *unstructured.Unstructured) (got int64, known bool) {
	got, known = number(field(obj.Object, "status", "observedGeneration"))
	if !known {
		forEachCondition(obj.Object["status"], "", func(c map[string]any, _ string) {
			if g, has := number(c["observedGeneration"]); has && g > 0 && (!known || g > got) {
				got, known = g, true
			}
		})
	}
	return got, known
}

// isOutOfDate reports whether a condition says that it is about an earlier generation of its object, whatever
// other conditions are about.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
func isOutOfDate(obj *unstructured.Unstructured, c map[string]any) bool {
	g, known := number(c["observedGeneration"])
	return known && g > 0 && g < obj.GetGeneration()
}

// ChangeObserved reports whether the controller says that it has seen an object as this run left it, which is the baseline; nil is the
// present one. Later generations are others', who may write them faster than a status can follow: each annotation of a Deployment makes one.
func ChangeObserved(obj, baseline *unstructured.Unstructured) bool {
	needed := obj.GetGeneration()
	if baseline != nil && baseline.GetGeneration() > 0 {
		needed = min(needed, baseline.GetGeneration())
	}
	got, known := observedGeneration(obj)
	return known && got >= needed
}

// isFresh reports whether a condition was written after the baseline. Times are
// compared with the baseline's times only: both are the cluster's.
func isFresh(in Input, c map[string]any) bool {
	if !in.Changed || in.Baseline == nil {
		return true
	}
	old := Condition(in.Baseline, text(c, "type"))
	if old == nil {
		return true
	}
	for _, key := range []string{"status", "reason", "message", "lastUpdateTime", "lastTransitionTime"} {
		if text(old, key) != text(c, key) {
			return true
		}
	}
	was, _ := number(old["observedGeneration"])
	now, known := number(c["observedGeneration"])
	return known && now != was && now >= in.Baseline.GetGeneration()
}

// LastWritten returns the newest time of an object's managed fields, by the cluster's clock;
// zero when they have none.
func LastWritten(obj *unstructured.Unstructured) time.Time {
	var last time.Time
	for _, f := range obj.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// statusWritten reports whether a controller wrote the status after our own write: it
// differs, or the managed fields of both objects, which carry the server's times, say so.
func statusWritten(in Input) bool {
	if in.Baseline == nil || !reflect.DeepEqual(in.Baseline.Object["status"], in.Object.Object["status"]) {
		return true
	}
	applied := LastWritten(in.Baseline)
	return slices.ContainsFunc(in.Object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Subresource == "status" && f.Time != nil && f.Time.After(applied)
	})
}
