package track

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// FuzzJudge feeds any object to the rules: whatever a controller or a chart
// writes, the answer is a state and not a panic.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"x"},"status":{"conditions":[{"type":1},null,{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`,
		`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"status":{"observedGeneration":"9","replicas":1.5}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"status":{"conditions":{}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"containerStatuses":[{"name":"x","state":{"waiting":{"reason":"ErrImagePull"}}}]}}`,
		`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"a"},"status":[]}`,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","annotations":{"deployer.io/ready":"self.a[0] > 1"}},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":"x"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		var obj unstructured.Unstructured
		if obj.UnmarshalJSON(data) != nil || obj.IsList() {
			t.Skip()
		}
		for _, until := range []Until{UntilReady, UntilComplete, UntilGone} {
			s := newSubject(Target{ID: kube.IDOf(&obj), Baseline: &obj, Changed: true, Until: until}, &Options{}, now)
			s.see(obj.DeepCopy(), now)
			for i := range 5 {
				if status := s.judge(now.Add(time.Duration(i) * 10 * time.Minute)); status.State == "" {
					t.Errorf("no state for %s", data)
				}
			}
		}
		Options{}.Compute(&obj, now)
	})
}
