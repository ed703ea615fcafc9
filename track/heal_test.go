package track_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
	"deployer/track"
	"deployer/track/class"
)

// TestWhatHealsIsNoFailure: what somebody or something else brings in time is waited for.
func TestWhatHealsIsNoFailure(t *testing.T) {
	t.Parallel()
	waitsFor := func(secret string, wait time.Duration) string {
		return workload("Deployment", "web", 1, kubetest.Script{
			{Phase: "Pending", State: kubetest.Waiting("CreateContainerConfigError", `secret "`+secret+`" not found`)}, {After: wait, Ready: true}}, "")
	}
	t.Run("Secret of an operator after twenty seconds", func(t *testing.T) {
		w := newWorld(t)
		thing := w.apply("{apiVersion: " + w.define("") + "/v1, kind: Thing, metadata: {name: db}, spec: {users: [{secretName: logins}]}}")
		w.wait(track.Options{}, time.Minute, thing, w.apply(waitsFor("logins", 22*time.Second))).ready(40 * time.Second)
	})
	t.Run("Secret that is there before the kubelet looks again", func(t *testing.T) {
		w := newWorld(t)
		written := false
		w.waitWith(track.Options{}, time.Minute, func(r track.Event) {
			if written || r.Kind != track.ProblemSeen {
				return
			}
			written = true
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "logins"}}
			if _, err := w.c.Client().CoreV1().Secrets(w.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}, w.apply(waitsFor("logins", 18*time.Second))).ready(40 * time.Second)
	})
	t.Run("application that crashes twice", func(t *testing.T) {
		w := newWorld(t)
		script := append(kubetest.Crash()[:4:4], kubetest.Step{After: 8 * time.Second, Ready: true, Restarts: 2, Last: kubetest.Terminated(1, "Error")})
		o := w.wait(track.Options{}, time.Minute, w.apply(workload("Deployment", "web", 1, script, ""))).ready(40 * time.Second)
		if !strings.Contains(o.story(), string(class.CrashLoop)) {
			t.Errorf("it was not seen to crash; it saw %s", o.story())
		}
	})
}
