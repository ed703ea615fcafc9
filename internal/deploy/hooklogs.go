package deploy

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"deployer/internal/kube"
)

// maxPodLog bounds what is read of one container's log, in bytes.
const maxPodLog = 16 << 20

// A PodLog is what one container of a hook has written.
type PodLog struct {
	Pod       string
	Container string // empty when the pod has only one
	Text      string
}

// reportLogs reports the logs of the hooks' pods, as long as these exist. A log that
// can't be read is only a warning: the hooks have ended.
func (r *hookRunner) reportLogs(ctx context.Context, hooks []ranHook) {
	typed, err := r.Cluster.Typed()
	if !r.op.showLogs || err != nil {
		return // without a connection no hook has run
	}
	ctx = cleanupContext(ctx)
	for _, h := range hooks {
		for _, obj := range h.objects {
			pods, err := podsOf(ctx, typed.CoreV1().Pods(obj.GetNamespace()), obj)
			if err != nil {
				r.warn(fmt.Sprintf("finding the pods of %s: %v", kube.IDOf(obj), err))
			}
			for _, pod := range pods {
				r.reportLogsOf(ctx, typed.CoreV1().Pods(pod.Namespace), &pod)
			}
		}
	}
}

func (r *hookRunner) reportLogsOf(ctx context.Context, client corev1client.PodInterface, pod *corev1.Pod) {
	limit := int64(maxPodLog)
	for _, c := range pod.Spec.Containers {
		text, err := client.GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name, LimitBytes: &limit}).DoRaw(ctx)
		if err != nil {
			r.warn(fmt.Sprintf("reading the log of Pod/%s/%s: %v", pod.Namespace, pod.Name, err))
			continue
		}
		log := PodLog{Pod: pod.Name, Container: c.Name, Text: string(text)}
		if len(pod.Spec.Containers) == 1 {
			log.Container = ""
		}
		r.tell(PodLogged, Event{PodLog: log})
	}
}

// podsOf returns the pods of a hook's object: a Pod itself, or those of a Job.
func podsOf(ctx context.Context, client corev1client.PodInterface, obj *unstructured.Unstructured) ([]corev1.Pod, error) {
	switch kube.IDOf(obj).GroupKind() {
	case kube.PodKind:
		pod, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*pod}, nil
	case kube.JobKind:
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(obj.GetUID())})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	return nil, nil
}
