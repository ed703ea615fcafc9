package apply_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object that goes between the decision about it and the request that was
// decided on, as a Job does by its TTL, is decided about again: what the chart
// has is there in the end, what it drops is not.
func TestObjectsThatVanish(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  suspend: true\n  template:\n    spec: {restartPolicy: Never, containers: [{name: c, image: \"c:1\", env: [{name: A, value: x}]}]}\n"
	doubled := strings.Replace(job, "{name: A, value: x}", "{name: A, value: x}, {name: A, value: x}", 1)
	for _, tt := range []struct {
		name         string
		helm3        bool
		before, next string
	}{
		{"applied", false, job, strings.Replace(job, "suspend: true", "suspend: false", 1)},
		{"recreated", false, job, strings.Replace(job, "c:1", "c:2", 1)},
		{"taken over", true, job, job},
		{"taken over and changed", true, job, strings.Replace(job, "suspend: true", "suspend: false", 1)},
		{"repaired", true, doubled, strings.Replace(job, "suspend: true", "suspend: false", 1)},
		{"taken over and recreated", true, job, strings.Replace(job, "c:1", "c:2", 1)},
		{"pruned", false, job, config("other")},
	} {
		for _, when := range []string{"before it is asked about", "before it is written"} {
			t.Run(tt.name+" "+when, func(t *testing.T) {
				s := begin(t)
				if s.deploy(config("a")); tt.helm3 {
					s.helm3Install(tt.before)
					s.record("deployed", config("a")+"\n---\n"+tt.before)
				} else {
					s.deploy(config("a") + "\n---\n" + tt.before)
				}
				jobs := s.client("batch/v1", "Job")
				uid := s.get("batch/v1", "Job", "once").GetUID()
				var gone sync.Once
				s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/jobs/once") && real(r) == (when == "before it is written") {
						gone.Do(func() {
							background := metav1.DeletePropagationBackground
							if err := jobs.Delete(bg, "once", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
								t.Error(err)
							}
						})
					}
					return nil, nil
				}})
				s.deploy(config("a") + "\n---\n" + tt.next)
				live := s.get("batch/v1", "Job", "once")
				if tt.name == "pruned" {
					if live != nil {
						t.Errorf("still there")
					}
					return
				}
				if live == nil || live.GetUID() == uid {
					t.Fatalf("want a new Job, there is %v", live)
				}
				want := s.manifests(tt.next)[0].Object
				for _, path := range []string{"spec.suspend", "spec.template.spec.containers.c.image"} {
					if got := at(live, path); got != at(want, path) {
						t.Errorf("%s is %v, want %v", path, got, at(want, path))
					}
				}
			})
		}
	}
}

// TestPatchesOfFieldsThatVanish fails if a race counts as a rejection: the server answers
// that a JSON patch is invalid, not that there is a conflict, if somebody has removed what the patch
// removes.
func TestPatchesOfFieldsThatVanish(t *testing.T) {
	t.Parallel()
	chart := strings.Replace(scaled, "image: nginx:1", "image: nginx:1, env: [{name: A, value: x}]", 1)
	before := strings.Replace(chart, "{name: A, value: x}", "{name: A, value: x}, {name: A, value: x}", 1)
	before = strings.Replace(before, "metadata: {name: web}", "metadata: {name: web, finalizers: [example.com/held]}", 1)
	for _, when := range []string{"before it is asked about", "before it is written"} {
		t.Run(when, func(t *testing.T) {
			s := begin(t)
			s.helm3Install(before)
			s.record("deployed", before)
			deployments := s.client("apps/v1", "Deployment")
			var race sync.Once
			s.through(&faulty{before: func(r *http.Request) (*http.Response, error) {
				if r.Header.Get("Content-Type") == string(jsonPatch) && real(r) == (when == "before it is written") {
					race.Do(func() {
						if _, err := deployments.Patch(bg, "web", merge, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
							t.Error(err)
						}
					})
				}
				return nil, nil
			}})
			s.deploy(chart)
			race.Do(func() { t.Error("no JSON patch was sent") })
			if got := names(at(s.get("apps/v1", "Deployment", "web"), "spec.template.spec.containers.app.env")); got != "A" {
				t.Errorf("env: %s", got)
			}
		})
	}
}
