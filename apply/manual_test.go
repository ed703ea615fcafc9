package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// What people have added stays and is told in every release, or goes
// when that is asked for. Labels, annotations and restarts are nobody's business.
func TestAddedByHand(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("helm3=", legacy), func(t *testing.T) {
			s := begin(t)
			s.install(small, legacy)
			s.patch("apps/v1", "Deployment", "web", types.StrategicMergePatchType, `{"metadata":{"labels":{"by":"hand"}},"spec":{"minReadySeconds":3,"template":{
				"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}},
				"spec":{"terminationGracePeriodSeconds":7,"containers":[{"name":"app","env":[{"name":"MINE","value":"1"}]},{"name":"debug","image":"d:1"}]}}}}`, "kubectl-edit")
			s.patch("apps/v1", "Deployment", "web", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"priority":5}}}}`, "some-controller")
			const added = `kubectl-edit added spec.minReadySeconds, spec.template.spec.containers[name="app"].env[name="MINE"],` +
				` spec.template.spec.containers[name="debug"], spec.template.spec.terminationGracePeriodSeconds, which stays`
			g := s.generation("apps/v1", "Deployment", "web")
			for range 2 {
				p := s.deploy(small)
				s.expect(p)
				if got := warnings(p); !strings.Contains(got, added) {
					t.Errorf("warnings\n%s\nwant\n%s", got, added)
				}
			}
			if now := s.generation("apps/v1", "Deployment", "web"); now != g {
				t.Errorf("generation %d, was %d", now, g)
			}

			s.opts.RevertManual = true
			p := s.deploy(small)
			s.expect(p, "update Deployment/web")
			if strings.Contains(warnings(p), "kubectl-edit") {
				t.Errorf("warnings: %s", warnings(p))
			}
			d := s.get("apps/v1", "Deployment", "web")
			pod := at(d, "spec.template.spec").(map[string]any)
			if names(pod["containers"]) != "app" || names(at(d, "spec.template.spec.containers.app.env")) != "A" ||
				pod["terminationGracePeriodSeconds"] != int64(30) || at(d, "spec.minReadySeconds") != nil {
				t.Errorf("left: %v", d.Object["spec"])
			}
			if d.GetLabels()["by"] != "hand" || at(d, "spec.template.metadata.annotations.kubectl\\kubernetes\\io/restartedAt") != "now" || pod["priority"] != int64(5) {
				t.Errorf("gone: %v", d.Object)
			}
			s.expect(s.deploy(small))
		})
	}
}

// A release that reverts looks at objects that one that doesn't has recognised.
func TestRevertingAfterAMark(t *testing.T) {
	s := begin(t)
	s.deploy(config("a"))
	s.patch("v1", "ConfigMap", "a", types.MergePatchType, `{"data":{"mine":"1"}}`, "kubectl-edit")
	s.deploy(config("a"))
	s.opts.RevertManual = true
	s.expect(s.deploy(config("a")), "update ConfigMap/a")
	s.expect(s.deploy(config("a")))
}

// A variable that the chart takes from elsewhere and kubectl set env gave a
// value, or the other way round, is the chart's again.
func TestVariableSetByHand(t *testing.T) {
	t.Parallel()
	for stated, edited := range map[string]string{
		"valueFrom: {fieldRef: {fieldPath: metadata.name}}": `{"name":"A","value":"x","valueFrom":null}`,
		"value: x": `{"name":"A","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`,
	} {
		s := newStory(t)
		chart := pod(", env: [{name: A, "+stated+"}]", "")
		s.deploy(chart)
		want := s.content(chart)
		s.patch("apps/v1", "Deployment", "x", types.StrategicMergePatchType,
			`{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[`+edited+`]}]}}}}`, "kubectl-set")
		s.expect(s.deploy(chart), "update Deployment/x")
		if got := s.content(chart); got != want {
			t.Errorf("%s after %s: %s", stated, edited, got)
		}
		s.expect(s.deploy(chart))
	}
}
