package deploy

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func (r *run) reportLogs(ctx context.Context, hooks []ranHook) {
	if !r.op.showLogs {
		return
	}
	ctx = cleanupContext(ctx)
	for _, h := range hooks {
		for _, obj := range h.objects {
			pods, err := r.podsOf(ctx, obj)
			if err != nil {
				r.emit(Warned{Text: fmt.Sprintf("finding the pods of %s: %v", kube.IDOf(obj), err)})
			}
			for _, pod := range pods {
				r.reportLogsOf(ctx, &pod)
			}
		}
	}
}

// reportLogsOf reports the logs of a pod's containers.
func (r *run) reportLogsOf(ctx context.Context, pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		text, err := r.readLog(ctx, pod, c.Name)
		if err != nil {
			r.emit(Warned{Text: fmt.Sprintf("reading the log of Pod/%s/%s: %v", pod.Namespace, pod.Name, err)})
			continue
		}
		log := PodLog{Pod: pod.Name, Container: c.Name, Text: text}
		if len(pod.Spec.Containers) == 1 {
			log.Container = ""
		}
		r.emit(PodLogged{Log: log})
	}
}

// podsOf returns the pods of a hook's object: a Pod itself, or those of a Job.
func (r *run) podsOf(ctx context.Context, obj *unstructured.Unstructured) ([]corev1.Pod, error) {
	typed, err := r.Cluster.Typed()
	if err != nil {
		return nil, err
	}
	pods := typed.CoreV1().Pods(obj.GetNamespace())
	switch kube.IDOf(obj).GroupKind() {
	case kube.PodKind:
		pod, err := pods.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*pod}, nil
	case kube.JobKind:
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(obj.GetUID())})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	return nil, nil
}

func (r *run) readLog(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	typed, err := r.Cluster.Typed()
	if err != nil {
		return "", err
	}
	limit := int64(maxPodLog)
	logs := typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, LimitBytes: &limit})
	data, err := logs.DoRaw(ctx)
	return string(data), err
}
