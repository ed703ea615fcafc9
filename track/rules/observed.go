package rules

import "time"

// controllerStartTimeout is how long a controller that was restarted has to look at an object whose status was
// there before. A new leader may have to wait for the lease of the one before.
// k8s.io/client-go/tools/leaderelection: leases of 15 seconds, by default
const controllerStartTimeout = 20 * time.Second

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
		limit = max(limit, controllerStartTimeout)
		if in.Workloads.ReadySince.After(from) {
			from = in.Workloads.ReadySince
		}
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
