package track_test

import (
	"strings"
	"testing"
	"time"

	"deployer/internal/kube"
	"deployer/track"
)

// TestScaleTargetThatIsNotThere: a misspelt target of an autoscaler is told at once; one that the release declares, or that is in
// the cluster, isn't asked for in vain.
func TestScaleTargetThatIsNotThere(t *testing.T) {
	t.Parallel()
	autoscaler := func(target string) string {
		return "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " + target + "}}}"
	}
	for name, test := range map[string]struct {
		target, note string
		declared     bool
	}{
		"misspelt":                    {target: "wbe", note: "Deployment/wbe, which it scales, isn't there"},
		"of another release":          {target: "web"},
		"of a later wave of this one": {target: "later", declared: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(workload("Deployment", "web", 0, nil, ""))
			opts := track.Options{Declares: func(kube.ID) bool { return test.declared }}
			target := w.apply(autoscaler(test.target))
			if present := opts.ReadyWhenPresent(target.Baseline); present != test.declared {
				t.Errorf("ready when present = %t, want %t: nobody would look at it", present, test.declared)
			}
			o := w.wait(opts, time.Minute, target).ready(10 * time.Second)
			notes := strings.Join(o.reports[len(o.reports)-1].Status.Notes, "; ")
			if (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
				t.Errorf("notes = %q, want %q; it saw %s", notes, test.note, o.story())
			}
		})
	}
}
