package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"deployer/apply"
	"deployer/apply/decide"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/view/viewtest"
	"deployer/track"
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
		if got, is := relativePath(test.path, test.container, aboutClasses[test.of]); is != (test.want != "") || is && got != test.want {
			t.Errorf("%s: %q, %t, want %q", name, got, is, test.want)
		}
	}
}

// TestWhatPodsReadIsToBlame: a container that crashes may do so for what it reads. A Secret's values are nobody's business.
func TestWhatPodsReadIsToBlame(t *testing.T) {
	state := newState(time.Now)
	update := func(before, after string) {
		live, desired := viewtest.Object(t, before), viewtest.Object(t, after)
		id := kube.IDOf(desired)
		op := &deploy.Operation{Plan: &apply.Plan{Waves: []apply.Wave{{Changes: []apply.Change{{ID: id, Action: decide.Update, Live: live, Desired: desired}}}}}}
		state.changes[id] = viewtest.Compare(t, op, 1).Plan.Waves[0].Changes[0]
	}
	config := "{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: prod}, %s: {key: %s}}"
	for kind, data := range map[string]string{"ConfigMap": "data", "Secret": "stringData"} {
		for _, name := range []string{"conf", "other"} {
			update(fmt.Sprintf(config, kind, name, data, "before"), fmt.Sprintf(config, kind, name, data, "after"))
		}
	}
	web := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}, spec: {template: {metadata: {annotations: {checksum: %s}}, spec: {" +
		"volumes: [{name: a, projected: {sources: [{secret: {name: conf}}]}}], containers: [{name: app, image: a, envFrom: [{configMapRef: {name: conf}}]}]}}}}"
	update(fmt.Sprintf(web, "before"), fmt.Sprintf(web, "after"))
	for of, want := range map[class.Class][]string{
		class.CrashLoop:     {`ConfigMap/conf data.key: "before" -> "after"`, "Secret/conf stringData.key: changed (hidden)"},
		class.Unschedulable: nil,
	} {
		if got := state.changesToBlame(track.Finding{Class: of, Container: "app", Objects: []kube.ID{viewtest.WebID()}}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
}

// TestWhatPodsReadChangesTheCause: of an object that the release hasn't changed, a report doesn't say that it failed before the
// release where what its pods read has changed, whether the plan has compared the object or knew it by its fingerprint.
func TestWhatPodsReadChangesTheCause(t *testing.T) {
	const before = "it failed before this release, which didn't change it"
	web := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: app, image: a, envFrom: [{configMapRef: {name: %s}}]}]}}}}`
	for _, compared := range []bool{true, false} {
		for reads, want := range map[string]string{"web": "nothing of it is available", "other": before} {
			manifest := fmt.Sprintf(web, reads)
			unchanged := apply.Change{ID: viewtest.WebID(), Action: decide.Unchanged, Live: viewtest.Object(t, manifest)}
			if compared {
				unchanged.Desired = unchanged.Live
			}
			op := viewtest.Upgrade(t)
			op.Next.Manifest, op.Plan.Waves[1].Changes[0] = manifest, unchanged
			state := newState(time.Now)
			state.handle(deploy.Event{Event: track.Event{Kind: deploy.Began}, Operation: op})
			got := state.cause(track.Finding{Class: class.CrashLoop, Container: "app", BeforeRelease: true, Objects: []kube.ID{viewtest.WebID()}, Rollout: &track.Rollout{Desired: 1}})
			if got.Impact != want || got.BeforeRelease != (want == before) || (len(got.Changed) == 0) != got.BeforeRelease {
				t.Errorf("compared %t, reads %s: %q, before the release %t, changed %q", compared, reads, got.Impact, got.BeforeRelease, got.Changed)
			}
		}
	}
}
