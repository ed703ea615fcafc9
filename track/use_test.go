package track_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
)

// TestDeploymentIsFollowed waits until a Deployment has rolled out, as other packages do.
func TestDeploymentIsFollowed(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}
	if _, err := c.Client().AppsV1().Deployments(namespace).Create(ctx, web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	target := track.Target{
		ID:  kube.ID{Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web"},
		GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"),
	}
	ready := false
	err := track.New(kube.New(c.Config(), namespace), track.Options{}).Wait(ctx, []track.Target{target}, func(r track.Event) {
		ready = ready || r.Status.State == track.Ready
	})
	if err != nil {
		t.Fatal(err) // a *track.FailedError says which pod failed and why
	}
	if !ready {
		t.Error("no event says that it is ready")
	}
}
