package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
)

// An outcome of a Deployment is what the seconds of a step are counted from, in place of its start.
type outcome struct {
	isSeen func(*appsv1.Deployment) bool
	fails  bool // the program, then
}

var ready = &outcome{isSeen: func(d *appsv1.Deployment) bool {
	return d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
}}

var failed = &outcome{fails: true, isSeen: func(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse ||
			c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
	})
}}

// lastToCome watches the Deployments of a namespace. The function that it returns waits until all that have changed since have
// come to the outcome, and gives the moment at which the last one has.
func (w *world) lastToCome(ctx context.Context, namespace string, isSeen func(*appsv1.Deployment) bool) (func() (time.Time, error), error) {
	list, err := w.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	watcher, err := w.client.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	ended, moments := make(chan struct{}), make(chan time.Time)
	go func() {
		defer close(moments)
		pending, end, last := sets.New[string](), ended, time.Time{}
		for end != nil || pending.Len() > 0 {
			select {
			case <-end:
				end = nil
			case event, ok := <-watcher.ResultChan():
				d, isDeployment := event.Object.(*appsv1.Deployment)
				switch {
				case !ok || !isDeployment || event.Type == watch.Deleted:
					return
				case d.Status.ObservedGeneration < d.Generation || !isSeen(d):
					pending.Insert(d.Name)
				case pending.Has(d.Name):
					pending.Delete(d.Name)
					last = time.Now()
				}
			}
		}
		moments <- last
	}()
	return func() (time.Time, error) {
		defer watcher.Stop()
		close(ended)
		if last := <-moments; !last.IsZero() {
			return last, nil
		}
		return time.Time{}, fmt.Errorf("no Deployment of %s has changed, or the watch has ended", namespace)
	}, nil
}

// waiting is a release with n Deployments, all of which each upgrade changes.
func waiting(chart string, n int, name string, from *outcome, most float64, values ...string) section {
	s := section{name: "wait", title: fmt.Sprintf("waiting for %d Deployments; seconds from their outcome to the program's end", n), lives: 1, waits: 20, steps: []step{install("", chart)}}
	for i := range s.waits {
		upgrade := append([]string{"upgrade", "bench", chart, "--timeout=2m", "--set", fmt.Sprint("run=", i+1)}, values...)
		s.steps = append(s.steps, step{name: name, deployer: upgrade, from: from})
	}
	s.steps[1] = s.steps[1].within(atMost(wall, most))
	return s
}

// waitChart is a chart with n Deployments, whose pods are ready at once, never, or refused. With a readiness probe, being ready
// once is enough.
func waitChart(n int) map[string]string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: w-%[1]d}
spec:
  progressDeadlineSeconds: {{ .Values.deadline }}
  selector: {matchLabels: {app: w-%[1]d}}
  template:
    metadata: {labels: {app: w-%[1]d}, annotations: {run: "{{ .Values.run }}", sim.deployer/steps: '[{"state":{"running":{}},"ready":{{ .Values.ready }}}]'}}
    spec:
      serviceAccountName: {{ .Values.account }}
      containers: [{name: main, image: "registry.example/app:1", readinessProbe: {tcpSocket: {port: 80}}}]
`, i)
	}
	return map[string]string{"values.yaml": "{run: 0, deadline: 600, account: default, ready: true}", "templates/workloads.yaml": text.String()}
}
