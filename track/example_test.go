package track_test

import (
	"context"
	"fmt"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
	"deployer/internal/kubetest"
	"deployer/track"
)

// Wait until a Deployment has rolled out.
func Example() {
	config, namespace, remove := kubetest.Example()
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.AppsV1().Deployments(namespace).Create(ctx, web, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	target := track.Target{
		ID:  kube.ID{Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web"},
		GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"),
	}
	ready := false
	err := track.New(kube.New(config, namespace), track.Options{}).Wait(ctx, []track.Target{target}, func(r track.Event) {
		ready = ready || r.Status.State == track.Ready
	})
	if err != nil {
		log.Fatal(err) // a *track.FailedError says which pod failed and why
	}
	fmt.Println("ready:", ready)
	// Output:
	// ready: true
}
