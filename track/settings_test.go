package track

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func normalisedYAML(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	return normalised(t, o)
}

func annotated(kv ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	all := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		all[kv[i]] = kv[i+1]
	}
	o.SetAnnotations(all)
	return o
}

func TestSettings(t *testing.T) {
	s := settingsOf(annotated("deployer.io/timeout", "90s", "deployer.io/rollout-required", "80%", "deployer.io/fail-mode", "late",
		"deployer.io/logs-containers", "app, side", "deployer.io/logs-regex-for-app", "^ERR", "deployer.io/ready", "self.a == 1"))
	if s.Timeout != 90*time.Second || s.Required != "80%" || s.Mode != failLate || s.Override == nil || len(s.Unread) > 0 {
		t.Errorf("settings = %+v", s)
	}
	if !s.wantsContainer("side") || s.wantsContainer("other") || s.wants("app", "ok") || !s.wants("app", "ERR 1") || !s.wants("side", "ok") {
		t.Error("the log filters are not followed")
	}
}

func TestNelmSettings(t *testing.T) {
	s := settingsOf(annotated("werf.io/failures-allowed-per-replica", "5", "werf.io/no-activity-timeout", "3m",
		"werf.io/track-termination-mode", "NonBlocking", "werf.io/skip-logs", "true", "werf.io/log-regex", "^x",
		"werf.io/fail-mode", "IgnoreAndContinueDeployProcess", "deployer.io/fail-mode", "fail",
		"werf.io/ignore-readiness-probe-fails-for-app", "1m", "deployer.io/conflicts", "take"))
	if s.Allowed == nil || *s.Allowed != 5 || s.NoProgress != 3*time.Minute || !s.Background || s.Logs == nil || *s.Logs != LogsNone {
		t.Errorf("settings = %+v", s)
	}
	if s.Mode != failRelease || len(s.Unread)+len(s.Unknown) > 0 {
		t.Errorf("settings = %+v, want our own annotation to win", s)
	}
}

func TestUnreadableSettings(t *testing.T) {
	s := settingsOf(annotated("deployer.io/timeout", "soon", "deployer.io/ready", "self.", "deployer.io/fail-mode", "maybe"))
	if len(s.Unread) != 3 || !strings.Contains(strings.Join(s.Unread, "\n"), `"maybe" is none of fail, ignore, late, warn`) {
		t.Errorf("unread = %q", s.Unread)
	}
}

func TestAnnotationsOfOtherParts(t *testing.T) {
	s := settingsOf(annotated("deployer.io/sensitive-paths", "data.a", "werf.io/sensitive-paths", "data.b", "deployer.io/depends-on", "job/a"))
	if len(s.Unknown) > 0 {
		t.Errorf("told to have no effect: %q", s.Unknown)
	}
}

func TestAnnotationsWithoutEffect(t *testing.T) {
	s := settingsOf(annotated("werf.io/weight", "1", "werf.io/replicas-on-creation", "2", "werf.io/deploy-dependency-db", "state=ready", "deployer.io/time-out", "1m", "example.com/x", "y"))
	if len(s.Unknown) != 2 {
		t.Fatalf("unknown = %q, want two", s.Unknown)
	}
	for i, want := range []string{"leave spec.replicas out", "deployer.io/time-out is not known"} {
		if !strings.Contains(s.Unknown[i], want) {
			t.Errorf("unknown = %q, want %q", s.Unknown[i], want)
		}
	}
}
