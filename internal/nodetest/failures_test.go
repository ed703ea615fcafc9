package nodetest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFailuresNameTheirCause installs Deployments that can't become ready. Each
// has to end by itself, within limit and so long before the timeout, and to say why.
func TestFailuresNameTheirCause(t *testing.T) {
	for name, test := range map[string]struct {
		pod  string
		says []string
	}{
		"crash loop": {
			"containers:\n" + shell("app", "echo boom; exit 3") + lateProbe,
			[]string{"crash", "exit code 3", "boom"},
		},
		"command that isn't there": {
			"containers:\n- {name: app, image: \"deployer.test/busybox:1\", command: [no-such-command]}\n",
			[]string{"no-such-command", "executable file not found"},
		},
		"command that a shell doesn't find": {
			"containers:\n" + shell("app", "no-such-command") + lateProbe,
			[]string{"127", "no-such-command: not found"},
		},
		"missing ConfigMap": {
			"containers:\n" + shell("app", "sleep 1000") + "  envFrom: [{configMapRef: {name: settings}}]\n",
			[]string{"CreateContainerConfigError", `configmap "settings" not found`},
		},
		"missing Secret": {
			"containers:\n" + shell("app", "sleep 1000") + "  env: [{name: A, valueFrom: {secretKeyRef: {name: nosuch, key: a}}}]\n",
			[]string{"CreateContainerConfigError", `secret "nosuch" not found`},
		},
		"missing key of a ConfigMap": {
			"containers:\n" + shell("app", "sleep 1000") + "  env: [{name: A, valueFrom: {configMapKeyRef: {name: kube-root-ca.crt, key: nosuch}}}]\n",
			[]string{"config_error", "couldn't find key nosuch in ConfigMap", "kubectl -n"},
		},
		"missing key of a ConfigMap of the release": {
			"containers:\n" + shell("app", "sleep 1000") + "  env: [{name: A, valueFrom: {configMapKeyRef: {name: own, key: nosuch}}}]\n",
			[]string{"config_error", "couldn't find key nosuch in ConfigMap"},
		},
		"missing key of a mounted Secret of the release": {
			"containers:\n" + shell("app", "sleep 1000") + "  volumeMounts: [{name: s, mountPath: /s}]\n" +
				"volumes: [{name: s, secret: {secretName: own, items: [{key: nosuch, path: a}]}}]\n",
			[]string{"mount_missing_object", "non-existent secret key: nosuch"},
		},
		"exec format error": {
			"containers:\n- name: app\n  image: deployer.test/busybox:1\n  command: [/s/run]\n  volumeMounts: [{name: s, mountPath: /s}]\n" +
				lateProbe + "volumes: [{name: s, configMap: {name: own, defaultMode: 0755}}]\n",
			[]string{"exec format error"},
		},
		"no node fits": {
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}\ncontainers:\n" + shell("app", "sleep 1000"),
			[]string{"unschedulable_structural", "didn't match Pod's node affinity/selector"},
		},
		"out of memory": {
			"containers:\n- name: app\n  image: deployer.test/busybox:1\n  command: [dd, if=/dev/zero, of=/dev/null, bs=200M]\n" +
				"  resources: {limits: {memory: 20Mi}}\n" + lateProbe,
			[]string{"OOMKilled", "20Mi"},
		},
		"init container": {
			"initContainers:\n" + shell("prepare", "echo no database; exit 4") + "containers:\n" + shell("app", "sleep 1000"),
			[]string{"prepare", "4", "no database"},
		},
		"liveness probe": {
			"containers:\n" + shell("app", "echo started; sleep 1000") +
				"  livenessProbe: {exec: {command: [sh, -c, \"echo stuck; false\"]}, periodSeconds: 1, failureThreshold: 1}\n" + lateProbe,
			[]string{"iveness", "stuck"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("templates/own.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {run: not a program}}\n"+
				"---\n{apiVersion: v1, kind: Secret, metadata: {name: own}, stringData: {a: b}}\n")
			w.write("templates/web.yaml", deployment(test.pod))
			r := w.deployer(1, append(test.says, "Deployment/"+w.ns+"/web"), "install", "web", w.chart)
			t.Logf("%s", r.took.Round(time.Millisecond))
		})
	}
}

// TestCrashWithoutProbe is the same crash loop in a container without a readiness
// probe, which Kubernetes takes for ready from its start to its end.
func TestCrashWithoutProbe(t *testing.T) {
	w := newQuietWorld(t)
	w.write("templates/web.yaml", deployment("containers:\n"+shell("app", "echo boom; exit 3")))
	w.deployer(1, []string{"exit code 3", "boom"}, "install", "web", w.chart)
}

// TestImageThatTheRegistryDoesNotHave asks a registry that answers. Its second answer is the last
// one that is waited for; when the kubelet asks again is its own affair, ten to fifteen seconds
// after the first time, and later if other pods' images are in its queue.
// k8s.io/kubernetes/pkg/kubelet/pod_workers.go, completeWork
func TestImageThatTheRegistryDoesNotHave(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var attempts []time.Time
	registry := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusNotFound)
		_, _ = answer.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`))
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, time.Now())
	}))
	t.Cleanup(registry.Close)
	image := strings.TrimPrefix(registry.URL, "http://") + "/shop/app:1.9"
	w.write("templates/web.yaml", deployment("containers:\n- {name: app, image: \""+image+"\"}\n"))
	began := time.Now()
	r := w.deployer(1, []string{image, "image_pull_permanent", "not found"}, "install", "web", w.chart)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%s; the registry was asked", r.took.Round(time.Millisecond))
	for _, at := range attempts {
		t.Logf("after %s", at.Sub(began).Round(time.Millisecond))
	}
	if len(attempts) > 2 {
		t.Errorf("the kubelet asked the registry %d times before the verdict, want at most 2:\n%s", len(attempts), r)
	}
}

// TestRegistryThatDoesNotAnswer may heal by itself: the run waits until its
// timeout, and then says what it waited for.
func TestRegistryThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", deployment("containers:\n- {name: app, image: \"registry.invalid/shop/app:1.9\"}\n"))
	r := w.deployer(1, []string{"registry.invalid/shop/app:1.9", "image_pull_transient"}, "install", "web", w.chart, "--timeout", "20s")
	if r.took < 20*time.Second {
		t.Errorf("it took %s, not 20 s:\n%s", r.took, r)
	}
}

// TestReadinessProbeThatFails is never a failure before the deadline: the report
// then has what the probe said, and the log.
func TestReadinessProbeThatFails(t *testing.T) {
	w := newWorld(t)
	w.write("templates/web.yaml", deployment("containers:\n"+shell("app", "echo waiting for a licence; sleep 1000")+
		"  readinessProbe: {exec: {command: [sh, -c, \"echo no licence; false\"]}, periodSeconds: 1, failureThreshold: 3}\n"))
	r := w.deployer(1, []string{"TIMED OUT", "readiness_probe", "no licence", "waiting for a licence"}, "install", "web", w.chart, "--timeout", "25s")
	if r.took < 25*time.Second {
		t.Errorf("it took %s, not 25 s:\n%s", r.took, r)
	}
}
