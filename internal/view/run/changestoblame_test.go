package run

import (
	"testing"

	"deployer/track/class"
)

// TestWhatIsToBlame: of what a release changed, a report shows what may cause the failure, without the way to it.
func TestWhatIsToBlame(t *testing.T) {
	for name, test := range map[string]struct {
		path, container string
		of              class.Class
		want            string // empty: it isn't shown
	}{
		"image":                      {`spec.template.spec.containers[name="app"].image`, "app", class.ImagePullPermanent, "image"},
		"image of another container": {`spec.template.spec.containers[name="db"].image`, "app", class.ImagePullPermanent, ""},
		"of an init container":       {`spec.template.spec.initContainers[name="migrate"].command`, "migrate", class.BadCommand, "command"},
		"own restart policy":         {`spec.template.spec.containers[name="app"].restartPolicy`, "app", class.ContainerEnded, "restartPolicy"},
		"gate":                       {"spec.template.spec.schedulingGates[0].name", "", class.SchedulingGated, "schedulingGates[0].name"},
		"label that a policy wants":  {"spec.template.metadata.labels.team", "", class.AdmissionDenied, "metadata.labels.team"},
		"host network by a policy":   {"spec.template.spec.hostNetwork", "", class.AdmissionDenied, "hostNetwork"},
		"label of a crash":           {"spec.template.metadata.labels.team", "app", class.CrashLoop, ""},
		"replicas and a quota":       {"spec.replicas", "", class.QuotaExceeded, "spec.replicas"},
		"replicas and a crash":       {"spec.replicas", "app", class.CrashLoop, ""},
		"claims of devices":          {"spec.template.spec.resourceClaims[0].resourceClaimName", "", class.ResourceClaimUnallocated, "resourceClaims[0].resourceClaimName"},
	} {
		if got, is := relativePath(test.path, test.container, test.of); is != (test.want != "") || is && got != test.want {
			t.Errorf("%s: %q, %t, want %q", name, got, is, test.want)
		}
	}
}
