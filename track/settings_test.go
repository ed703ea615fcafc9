package track

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"deployer/internal/annotation"
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

// TestEachAnnotation holds what each annotation does to the settings, and that none
// is forgotten here.
func TestEachAnnotation(t *testing.T) {
	is := func(m LogMode) func(settings) bool {
		return func(s settings) bool { return s.logs.mode == m }
	}
	mode := func(m failMode) func(settings) bool { return func(s settings) bool { return s.failMode == m } }
	only := func(s settings) bool { return s.logs.wantsContainer("app") && !s.logs.wantsContainer("side") }
	lines := func(s settings) bool { return s.logs.wantsLine("app", "ERR 1") && !s.logs.wantsLine("app", "ok") }
	its := func(s settings) bool {
		return lines(s) && s.logs.wantsLine("side", "ok") && s.logs.wantsLine("side", "ERR 1")
	}
	events := func(s settings) bool { return s.showEvents }
	sensitive := func(s settings) bool { return s.sensitive }
	five := func(s settings) bool { return *s.failuresAllowed == 5 }
	twoPods := func(s settings) bool { return s.logs.maxPods == 2 }
	patience := func(s settings) bool { return s.noProgressTimeout == 3*time.Minute }
	tested := map[string]bool{"deployer.io/instances-ready": true, "deployer.io/instances-failed": true} // of definitions
	for _, test := range []struct {
		name, value string
		holds       func(settings) bool
	}{
		{"deployer.io/track", "none", func(s settings) bool { return s.isSkipped() }},
		{"deployer.io/track", "apply", func(s settings) bool { return s.isSkipped() }},
		{"deployer.io/track", "background", func(s settings) bool { return s.isBackground() }},
		{"deployer.io/track-as", "job", func(s settings) bool { return s.trackAs == "job" }},
		{"deployer.io/track-as", "service", func(s settings) bool { return s.trackAs == "service" }},
		{"deployer.io/timeout", "90s", func(s settings) bool { return s.timeout == 90*time.Second }},
		{"deployer.io/no-progress-timeout", "3m", patience},
		{"deployer.io/rollout-required", "80%", func(s settings) bool { return s.rolloutRequired == "80%" }},
		{"deployer.io/failures-allowed", "5", five},
		{"deployer.io/fail-mode", "warn", mode("warn")},
		{"deployer.io/fail-mode", "ignore", mode("ignore")},
		{"deployer.io/fail-mode", "late", mode("late")},
		{"deployer.io/logs", "all", is(LogsLive)},
		{"deployer.io/logs", "none", is(LogsNone)},
		{"deployer.io/logs-containers", "app, other", only},
		{"deployer.io/logs-skip-containers", "side", only},
		{"deployer.io/logs-pods", "2", twoPods},
		{"deployer.io/logs-pods", "0", is(LogsNone)},
		{"deployer.io/logs-regex", "^ERR", lines},
		{"deployer.io/logs-skip-regex", "^ok", lines},
		{"deployer.io/logs-regex-for-app", "^ERR", its},
		{"deployer.io/logs-skip-regex-for-app", "^ok", its},
		{"deployer.io/events", "true", events},
		{"deployer.io/sensitive", "true", sensitive},
		{"deployer.io/ready", "self.a == 1", func(s settings) bool { return s.rule != nil }},
		{"deployer.io/failed", "self.a == 1", func(s settings) bool { return s.rule != nil }},
		{"werf.io/track-termination-mode", "NonBlocking", func(s settings) bool { return s.isBackground() }},
		{"werf.io/fail-mode", "HopeUntilEndOfDeployProcess", mode("late")},
		{"werf.io/fail-mode", "IgnoreAndContinueDeployProcess", mode("ignore")},
		{"werf.io/failures-allowed-per-replica", "5", five},
		{"werf.io/no-activity-timeout", "3m", patience},
		{"werf.io/ignore-readiness-probe-fails-for-app", "1m", mode("")}, // probes don't fail anything
		{"werf.io/log-regex", "^ERR", lines},
		{"werf.io/log-regex-skip", "^ok", lines},
		{"werf.io/log-regex-for-app", "^ERR", its},
		{"werf.io/log-regex-skip-for-app", "^ok", its},
		{"werf.io/skip-logs", "true", is(LogsNone)},
		{"werf.io/skip-logs-for-containers", "side", only},
		{"werf.io/show-logs-only-for-containers", "app", only},
		{"werf.io/show-logs-only-for-number-of-replicas", "2", twoPods},
		{"werf.io/show-service-messages", "true", events},
		{"werf.io/sensitive", "true", sensitive},
	} {
		s := settingsOf(annotated(test.name, test.value))
		if !test.holds(s) || len(s.warnings.unreadable)+len(s.warnings.ineffective) > 0 {
			t.Errorf("%s: %s gives %+v", test.name, test.value, s)
		}
		tested[strings.TrimSuffix(test.name, "app")] = true
	}
	for _, info := range annotation.All() {
		for _, name := range append([]string{info.Name}, info.Aliases...) {
			if slices.Contains(info.Packages, "track") && !tested[strings.TrimSuffix(name, "*")] {
				t.Errorf("%s isn't tested", name)
			}
		}
	}
}

func TestOurAnnotationsHaveTheLastWord(t *testing.T) {
	s := settingsOf(annotated("werf.io/fail-mode", "IgnoreAndContinueDeployProcess", "deployer.io/fail-mode", "fail"))
	if s.failMode != "fail" {
		t.Errorf("settings = %+v", s)
	}
}

func TestUnreadableSettings(t *testing.T) {
	s := settingsOf(annotated("deployer.io/timeout", "soon", "deployer.io/ready", "self.", "deployer.io/fail-mode", "maybe"))
	if len(s.warnings.unreadable) != 3 || !strings.Contains(strings.Join(s.warnings.unreadable, "\n"), `"maybe" is not one of fail, ignore, late, warn`) {
		t.Errorf("unread = %q", s.warnings.unreadable)
	}
}

func TestAnnotationsOfOtherParts(t *testing.T) {
	s := settingsOf(annotated("deployer.io/sensitive-paths", "data.a", "werf.io/sensitive-paths", "data.b", "deployer.io/depends-on", "job/a"))
	if len(s.warnings.ineffective) > 0 {
		t.Errorf("told to have no effect: %q", s.warnings.ineffective)
	}
}

func TestAnnotationsWithoutEffect(t *testing.T) {
	s := settingsOf(annotated("werf.io/weight", "1", "werf.io/replicas-on-creation", "2", "werf.io/deploy-dependency-db", "state=ready", "deployer.io/time-out", "1m", "example.com/x", "y"))
	if len(s.warnings.ineffective) != 2 {
		t.Fatalf("unknown = %q, want two", s.warnings.ineffective)
	}
	for i, want := range []string{"deployer.io/time-out is not known", "leave spec.replicas out"} {
		if !strings.Contains(s.warnings.ineffective[i], want) {
			t.Errorf("unknown = %q, want %q", s.warnings.ineffective[i], want)
		}
	}
}

// Each annotation that is only for some kinds is told on others, and on these not.
func TestAnnotationsThatAKindDoesNotSupport(t *testing.T) {
	on := func(apiVersion, kind, key, value string) []string {
		o := annotated(key, value)
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		return settingsOf(o).warnings.ineffective
	}
	for _, test := range []struct{ key, value, yes, no string }{
		{"deployer.io/rollout-required", "80%", "apps/v1 StatefulSet", "batch/v1 Job"},
		{"deployer.io/rollout-required", "80%", "apps/v1 DaemonSet", "apps/v1 ReplicaSet"},
		{"deployer.io/rollout-required", "80%", "apps/v1 Deployment", "example.com/v1 Deployment"},
		{"deployer.io/track-as", "job", "v1 Pod", "batch/v1 Job"},
		{"deployer.io/failures-allowed", "3", "apps/v1 ReplicaSet", "batch/v1 Job"},
		{"werf.io/failures-allowed-per-replica", "3", "v1 Pod", "v1 ConfigMap"},
		{"deployer.io/logs", "all", "batch/v1 Job", "batch/v1 CronJob"},
		{"deployer.io/logs-regex-for-app", "x", "apps/v1 Deployment", "v1 ConfigMap"},
		{"werf.io/log-regex-skip-for-app", "x", "apps/v1 Deployment", "v1 Service"},
		{"werf.io/skip-logs", "true", "apps/v1 Deployment", "v1 Service"},
		{"deployer.io/instances-ready", "true", "apiextensions.k8s.io/v1 CustomResourceDefinition", "v1 Service"},
		{"deployer.io/timeout", "9s", "v1 ConfigMap", ""},
		{"deployer.io/fail-mode", "warn", "example.com/v1 Thing", ""},
	} {
		version, kind, _ := strings.Cut(test.yes, " ")
		if got := on(version, kind, test.key, test.value); len(got) > 0 {
			t.Errorf("%s on %s is told to have no effect: %q", test.key, test.yes, got)
		}
		if test.no == "" {
			continue
		}
		version, kind, _ = strings.Cut(test.no, " ")
		got := strings.Join(on(version, kind, test.key, test.value), "\n")
		if want := "annotation " + test.key + " has no effect on objects of kind " + kind + ": it is for "; !strings.HasPrefix(got, want) {
			t.Errorf("%s on %s: %q, want %q", test.key, test.no, got, want)
		}
	}
}
