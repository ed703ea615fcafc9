package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"deployer/track/class"
	"deployer/track/finding"
)

func TestPullClass(t *testing.T) {
	for _, test := range []struct {
		image, message string
		want           class.Class
	}{
		{"x:1", `failed to resolve reference "r.io/x:1": r.io/x:1: not found`, class.ImagePullPermanent},
		{"x:1", `failed to authorize: 401 Unauthorized`, class.ImagePullPermanent},
		{"x:1", `no match for platform in manifest: not found`, class.ImagePullPermanent},
		{"x:1", `dial tcp: lookup registry.example.com: no such host`, class.ImagePullTransient},
		{"r/timeout:1", `failed to do request: Head "https://r/timeout:1": dial tcp 10.0.0.1:443: i/o timeout`, class.ImagePullTransient},
		{"r.io/timeout/x:1", `failed to resolve reference "r.io/timeout/x:1": pull access denied`, class.ImagePullPermanent},
		{"shop/geofence:503", `failed to resolve reference "docker.io/shop/geofence:503": docker.io/shop/geofence:503: not found`, class.ImagePullPermanent},
		{"forbidden-city:1", `failed to do request for forbidden-city:1: nobody has seen this before`, class.ImagePullTransient},
		{"x:1", `unexpected status code 503 Service Unavailable`, class.ImagePullTransient},
		{"x:1", `429 Too Many Requests - toomanyrequests: You have reached your pull rate limit`, class.ImagePullTransient},
		{"x:1", `something that nobody has seen before`, class.ImagePullTransient},
	} {
		if got := pullClass("ErrImagePull", test.message, test.image); got != test.want {
			t.Errorf("pullClass(%q) of %s = %s, want %s", test.message, test.image, got, test.want)
		}
	}
}

// TestRegistryLacks: only a registry that says that it hasn't got the tag says so.
func TestRegistryLacks(t *testing.T) {
	for message, want := range map[string]bool{
		`failed to resolve reference "r.io/x:1": r.io/x:1: not found`:                                   true,
		`reading manifest 1 in r.io/x: manifest unknown`:                                                true,
		`The repository with name 'x' does not exist in the registry with id '1'`:                       true,
		`name unknown: repository name not known to registry`:                                           true,
		`no match for platform in manifest: not found`:                                                  true,
		`pull access denied, repository does not exist or may require authorization: server message`:    false,
		`failed to authorize: failed to fetch anonymous token: unexpected status: 404 Not Found`:        false,
		`failed to copy: httpReadSeeker: failed open: content at https://r.io/v2/x/blobs/1 not found`:   false,
		`failed to authorize: 401 Unauthorized`:                                                         false,
		`failed to extract layer sha256:1: mount callback failed: no such file or directory: not found`: false,
	} {
		if got := registryLacks(message, "r.io/x:1"); got != want {
			t.Errorf("registryLacks(%q) = %t, want %t", message, got, want)
		}
	}
}

// TestNeverExecuted: the whole log is one line of runc's, and not of the program.
func TestNeverExecuted(t *testing.T) {
	for line, want := range map[string]bool{
		`exec /app/run: exec format error`:                                        true,
		`exec /start.sh: no such file or directory`:                               true,
		`standard_init_linux.go:228: exec user process caused: exec format error`: true,
		`fork/exec /bin/x: exec format error`:                                     false,
		`exec: "x": executable file not found in $PATH`:                           false,
		`could not start worker: exec /app/run: exec format error`:                false,
		`exec /app/run: exec format error, retrying`:                              false,
		``: false,
	} {
		if got := neverExecuted().MatchString(line); got != want {
			t.Errorf("neverExecuted(%q) = %t, want %t", line, got, want)
		}
	}
}

func TestToThePoint(t *testing.T) {
	for message, want := range map[string]string{
		`Back-off pulling image "r/x:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "r/x:1": failed to resolve reference "r/x:1": r/x:1: not found`: `failed to resolve reference "r/x:1": r/x:1: not found`,
		`Back-off pulling image "r/x:1"`: `Back-off pulling image "r/x:1"`,
		`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "serve": executable file not found in $PATH`: `exec: "serve": executable file not found in $PATH`,
		`rpc error: code = Unavailable desc = connection error`: `rpc error: code = Unavailable desc = connection error`,
		`secret "db" not found`:                                 `secret "db" not found`,
	} {
		if got := withoutPrefixes(message); got != want {
			t.Errorf("toThePoint(%q) = %q, want %q", message, got, want)
		}
	}
}

func TestStructural(t *testing.T) {
	for message, want := range map[string]bool{
		"0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.":                                         true,
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.":                     false,
		"0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 node(s) didn't match Pod's node affinity/selector.": true,
		"0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.":                            false,
		"0/1 nodes are available: 1 node(s) had untolerated taint(s).":                                                          false,
		"0/1 nodes are available: 1 Insufficient memory.":                                                                       false,
		`0/1 nodes are available: persistentvolumeclaim "x" not found.`:                                                         true,
		"no nodes available to schedule pods":                                                                                   false,
		"":                                                                                                                      false,
	} {
		if got := excludesEveryNode(message); got != want {
			t.Errorf("Structural(%q) = %t, want %t", message, got, want)
		}
	}
}

func TestCreation(t *testing.T) {
	for message, want := range map[string]class.Class{
		`pods "web-5c7-abcde" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`:                                                                                            class.PodSecurity,
		`pods "web-5c7-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`:                                                                                                    class.QuotaExceeded,
		`pods "web-0" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`:                                                                                                                    class.LimitRangeViolated,
		`pods "web-0" is forbidden: status unknown for quota: q, resources: pods`:                                                                                                                                   class.PodCreateTransient,
		`pods "web-0" is forbidden: not yet ready to handle request`:                                                                                                                                                class.PodCreateTransient,
		`pods "web-0" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]`:                                                                                                          class.QuotaExceeded,
		`admission webhook "x.example.com" denied the request: no`:                                                                                                                                                  class.AdmissionDenied,
		`pods "web-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:                                                                                                              class.AdmissionDenied,
		`Internal error occurred: failed calling webhook "x": connection refused`:                                                                                                                                   class.PodCreateTransient,
		`admission webhook "mutate.kyverno.svc-fail" denied the request: policy Pod/prod/web- for resource error: verify-image: failed to verify image r/x:1: Get "https://r/v2/": dial tcp: lookup r: i/o timeout`: class.PodCreateTransient,
		`admission webhook "x.example.com" denied the request: probes need a timeout`:                                                                                                                               class.AdmissionDenied,
		`pods "web-0" is forbidden: error looking up service account prod/web: serviceaccount "web" not found`:                                                                                                      class.ServiceAccountMissing,
		`pods "web-0" is forbidden: no PriorityClass with name high was found`:                                                                                                                                      class.PriorityClassMissing,
		`Pod "web-0" is invalid: spec.containers[0].image: Required value`:                                                                                                                                          class.InvalidPod,
		`pods "web-0" is forbidden: unable to create new content in namespace a because it is being terminated`:                                                                                                     class.Terminating,
		`Timeout: request did not complete within requested timeout`:                                                                                                                                                class.PodCreateTransient,
	} {
		if got := CreationFailureClass(message); got != want {
			t.Errorf("Creation(%q) = %s, want %s", message, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	pod := Trim(&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db", Items: []corev1.KeyToPath{{Key: "ca"}, {Key: "crt"}}}}},
		{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}, Items: []corev1.KeyToPath{{Key: "log"}, {Key: "both"}}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}, Items: []corev1.KeyToPath{{Key: "both"}}}},
		}}}},
	}}})
	for message, want := range map[string]finding.Missing{
		`secret "db" not found`:                                                                           {Kind: "Secret", Name: "db"},
		`configmap "app" not found`:                                                                       {Kind: "ConfigMap", Name: "app"},
		`couldn't find key password in Secret prod/db`:                                                    {Kind: "Secret", Name: "db", Key: "password"},
		`MountVolume.SetUp failed for volume "c" : configmap "app" not found`:                             {Kind: "ConfigMap", Name: "app"},
		`0/1 nodes are available: persistentvolumeclaim "data" not found.`:                                {Kind: "PersistentVolumeClaim", Name: "data"},
		`MountVolume.SetUp failed for volume "s" : references non-existent secret key: crt`:               {Kind: "Secret", Name: "db", Key: "crt"},
		`MountVolume.SetUp failed for volume "all" : [configmap references non-existent config key: log]`: {Kind: "ConfigMap", Name: "app", Key: "log"},
	} {
		if got, ok := pod.Missing(message); !ok || got != want {
			t.Errorf("Missing(%q) = %+v, want %+v", message, got, want)
		}
	}
	for _, message := range []string{"i/o timeout",
		`MountVolume.SetUp failed for volume "all" : configmap references non-existent config key: both`, // of which one, nobody can tell
		`MountVolume.SetUp failed for volume "gone" : references non-existent secret key: crt`,
	} {
		if got, ok := pod.Missing(message); ok {
			t.Errorf("Missing(%q) = %+v, want none", message, got)
		}
	}
}
