package track

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/pods"
)

// FuzzComputeStatus feeds any object, what becomes of it and a pod of it to the rules:
// whatever a controller, a chart or a kubelet writes, the answer is a state and
// not a panic, and a failure has a reason.
func FuzzComputeStatus(f *testing.F) {
	const pod = `{"kind":"Pod","metadata":{"name":"a-1","uid":"1"},"spec":{"containers":[{"name":"x"}]},"status":{"phase":"Pending","containerStatuses":[{"name":"x","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1}}}],"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu."}]}}`
	for _, seed := range [][2]string{
		{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"x"},"status":{"conditions":[{"type":1},null,{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"updatedReplicas":1}}`},
		{`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"status":{"observedGeneration":"9","replicas":1.5}}`,
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a","uid":"2"},"spec":{"updateStrategy":{"rollingUpdate":{"partition":9}}}}`},
		{`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"status":{"conditions":{}}}`,
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"status":{"conditions":[{"type":"FailureTarget","status":"True"}]}}`},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"containerStatuses":[{"name":"x","state":{"waiting":{"reason":"ErrImagePull"}}}]}}`, pod},
		{`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"a"},"status":[]}`, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"type":"LoadBalancer"}}`},
		{`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","annotations":{"deployer.io/ready":"self.a[0] > 1"}},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":"x"}]}}`,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"status":{"phase":"Failed"}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), []byte(pod), "FailedCreate", `pods "a" is forbidden: exceeded quota: q`)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, first, then, pod []byte, reason, message string) {
		var obj, later unstructured.Unstructured
		var p corev1.Pod
		if obj.UnmarshalJSON(first) != nil || obj.IsList() || later.UnmarshalJSON(then) != nil || later.IsList() || json.Unmarshal(pod, &p) != nil {
			t.Skip()
		}
		for _, until := range []Until{UntilReady, UntilComplete, UntilGone} {
			s := newTrackedObject(Target{ID: kube.IDOf(&obj), Baseline: &obj, Changed: true, Until: until}, &Options{}, now)
			for i := range 10 {
				at := now.Add(time.Duration(i) * 5 * time.Minute)
				switch i {
				case 2:
					s.updatePod(pods.Trim(&p))
				case 4:
					s.update(later.DeepCopy(), at)
				case 6:
					s.addEvent(finding.Event{Reason: reason, Message: message, Count: i}, p.UID, at)
				}
				status, _ := s.evaluate(at)
				s.status = status
				if status.State == "" || status.State == Failed && (status.Finding == nil || status.Finding.Class == "") {
					t.Errorf("status = %+v", status)
				}
			}
		}
		Options{}.computeStatus(&obj, now, nil)
	})
}
