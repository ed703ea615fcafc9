package pods

import (
	"testing"

	"deployer/track/class"
)

func TestPullClass(t *testing.T) {
	for message, want := range map[string]class.Class{
		`failed to resolve reference "r.io/x:1": r.io/x:1: not found`:                          class.ImagePermanent,
		`failed to authorize: 401 Unauthorized`:                                                class.ImagePermanent,
		`no match for platform in manifest: not found`:                                         class.ImagePermanent,
		`dial tcp: lookup registry.example.com: no such host`:                                  class.ImageTransient,
		`failed to do request: Head "https://r/timeout:1": dial tcp 10.0.0.1:443: i/o timeout`: class.ImageTransient,
		`failed to resolve reference "r.io/timeout/x:1": pull access denied`:                   class.ImagePermanent,
		`unexpected status code 503 Service Unavailable`:                                       class.ImageTransient,
		`429 Too Many Requests - toomanyrequests: You have reached your pull rate limit`:       class.ImageTransient,
		`something that nobody has seen before`:                                                class.ImageTransient,
	} {
		if got := pullClass("ErrImagePull", message); got != want {
			t.Errorf("pullClass(%q) = %s, want %s", message, got, want)
		}
	}
}

func TestStructural(t *testing.T) {
	for message, want := range map[string]bool{
		"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.": true,
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.":                                                              false,
		"0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 node(s) didn't match Pod's node affinity/selector.":                                          true,
		"0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.":                                                                     false,
		"0/1 nodes are available: 1 node(s) had untolerated taint(s).":                                                                                                   false,
		"0/1 nodes are available: 1 Insufficient memory.":                                                                                                                false,
		`0/1 nodes are available: persistentvolumeclaim "x" not found.`:                                                                                                  true,
		"no nodes available to schedule pods":                                                                                                                            false,
		"":                                                                                                                                                               false,
	} {
		if got := Structural(message); got != want {
			t.Errorf("Structural(%q) = %t, want %t", message, got, want)
		}
	}
}

func TestCreation(t *testing.T) {
	for message, want := range map[string]class.Class{
		`pods "web-5c7-abcde" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`: class.PodSecurity,
		`pods "web-5c7-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`:         class.Quota,
		`pods "web-0" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`:                         class.LimitRange,
		`admission webhook "x.example.com" denied the request: no`:                                                       class.AdmissionDenied,
		`pods "web-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:                   class.AdmissionDenied,
		`Internal error occurred: failed calling webhook "x": connection refused`:                                        class.CreateTransient,
		`pods "web-0" is forbidden: error looking up service account prod/web: serviceaccount "web" not found`:           class.ServiceAccount,
		`pods "web-0" is forbidden: no PriorityClass with name high was found`:                                           class.PriorityClass,
		`Pod "web-0" is invalid: spec.containers[0].image: Required value`:                                               class.InvalidPod,
		`pods "web-0" is forbidden: unable to create new content in namespace a because it is being terminated`:          class.Terminating,
		`Timeout: request did not complete within requested timeout`:                                                     class.CreateTransient,
	} {
		if got := Creation(message); got != want {
			t.Errorf("Creation(%q) = %s, want %s", message, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	for message, want := range map[string][2]string{
		`secret "db" not found`:                                               {"Secret", "db"},
		`configmap "app" not found`:                                           {"ConfigMap", "app"},
		`couldn't find key password in Secret prod/db`:                        {"Secret", "db"},
		`MountVolume.SetUp failed for volume "c" : configmap "app" not found`: {"ConfigMap", "app"},
		`0/1 nodes are available: persistentvolumeclaim "data" not found.`:    {"PersistentVolumeClaim", "data"},
	} {
		if kind, name, ok := Missing(message); !ok || [2]string{kind, name} != want {
			t.Errorf("Missing(%q) = %s %s, want %v", message, kind, name, want)
		}
	}
	if _, _, ok := Missing("i/o timeout"); ok {
		t.Error("Missing found something in a timeout")
	}
}
