package kubetest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"deployer/internal/kubetest"
)

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)),
		InitContainers:                []corev1.Container{{Name: "init", Image: "r/init:1"}},
		Containers:                    []corev1.Container{{Name: "main", Image: "r/x:1"}},
	}
}

func createPod(t *testing.T, c *kubetest.Cluster, namespace string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Annotations: annotations},
		Spec:       podSpec(),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a pod: %v", err)
	}
	return pod
}

// describe tells what matters of a pod's status in a few words.
func describe(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		words = append(words, pod.Status.Reason)
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		word := s.Name + ":"
		switch {
		case s.State.Running != nil:
			word += "running"
		case s.State.Waiting != nil:
			word += s.State.Waiting.Reason
		case s.State.Terminated != nil:
			word += fmt.Sprint("exit", s.State.Terminated.ExitCode)
		}
		if s.RestartCount > 0 {
			word += fmt.Sprintf(",rc%d,last%d", s.RestartCount, s.LastTerminationState.Terminated.ExitCode)
		}
		words = append(words, word)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			words = append(words, "READY")
		}
	}
	return strings.Join(words, " ")
}

// follow gives the different statuses that a pod goes through, without what it
// is before its node looks at it, until done.
func follow(t *testing.T, c *kubetest.Cluster, pod *corev1.Pod, done func(seen []string) bool) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watch, err := c.Client().CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	var seen []string
	last := string(corev1.PodPending)
	for event := range watch.ResultChan() {
		now := describe(event.Object.(*corev1.Pod))
		if now == last {
			continue
		}
		last = now
		seen = append(seen, now)
		if done(seen) {
			return seen
		}
	}
	t.Fatalf("in 30 seconds, a pod has only gone through\n  %s", strings.Join(seen, "\n  "))
	return nil
}

// reaches waits until the pod has a status.
func reaches(t *testing.T, c *kubetest.Cluster, pod *corev1.Pod, status string) {
	t.Helper()
	follow(t, c, pod, func(seen []string) bool { return seen[len(seen)-1] == status })
}

func TestPodsAreReadyAtOnce(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	pod := createPod(t, c, c.Namespace(t), nil)
	reaches(t, c, pod, "Running init:exit0 main:running READY")
}

func TestJobsComplete(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	for name, test := range map[string]struct {
		script kubetest.Script
		want   batchv1.JobConditionType
	}{
		"by default":  {nil, batchv1.JobComplete},
		"by a script": {kubetest.Exits(0, 0), batchv1.JobComplete},
		"failing":     {kubetest.Exits(0, 1), batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := corev1.PodTemplateSpec{Spec: podSpec()}
			template.Spec.RestartPolicy = corev1.RestartPolicyNever
			if test.script != nil {
				template.Annotations = test.script.Annotations()
			}
			jobs := c.Client().BatchV1().Jobs(c.Namespace(t))
			_, err := jobs.Create(t.Context(), &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "j"},
				Spec:       batchv1.JobSpec{Template: template, BackoffLimit: new(int32(0))},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c.Eventually(t, 30*time.Second, "the Job", func(ctx context.Context) error {
				job, err := jobs.Get(ctx, "j", metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, condition := range job.Status.Conditions {
					if condition.Type == test.want && condition.Status == corev1.ConditionTrue {
						return nil
					}
				}
				return fmt.Errorf("its conditions are %v, want %s", job.Status.Conditions, test.want)
			})
		})
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	for name, test := range map[string]struct {
		script kubetest.Script
		want   []string
	}{
		"ready after a while": {kubetest.ReadyAfter(200 * time.Millisecond), []string{
			"Running init:exit0 main:running",
			"Running init:exit0 main:running READY",
		}},
		"image missing": {hasten(kubetest.PullPermanent()), []string{
			"Pending init:exit0 main:ErrImagePull",
			"Pending init:exit0 main:ImagePullBackOff",
			"Pending init:exit0 main:ErrImagePull",
			"Pending init:exit0 main:ImagePullBackOff",
		}},
		"crash": {hasten(kubetest.Crash()), []string{
			"Running init:exit0 main:running",
			"Running init:exit0 main:running,rc1,last1",
			"Running init:exit0 main:CrashLoopBackOff,rc1,last1",
			"Running init:exit0 main:running,rc2,last1",
			"Running init:exit0 main:CrashLoopBackOff,rc2,last1",
		}},
		"out of memory": {hasten(kubetest.OOM()), []string{
			"Running init:exit0 main:running",
			"Running init:exit0 main:running,rc1,last137",
		}},
		"init first": {kubetest.Script{{
			Phase: corev1.PodPending, Init: kubetest.Running(),
		}, {
			After: 100 * time.Millisecond, Ready: true,
		}}, []string{
			"Pending init:running main:PodInitializing",
			"Running init:exit0 main:running READY",
		}},
		"evicted": {kubetest.Script{{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory", State: kubetest.Terminated(137, "Error"),
		}}, []string{
			"Failed Evicted init:exit0 main:exit137",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := createPod(t, c, c.Namespace(t), test.script.Annotations())
			got := follow(t, c, pod, func(seen []string) bool { return len(seen) == len(test.want) })
			if !slices.Equal(got, test.want) {
				t.Errorf("%s goes through\n  %s\nwant\n  %s", test.script,
					strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// hasten shortens the pauses of a script.
func hasten(script kubetest.Script) kubetest.Script {
	for i := range script {
		script[i].After /= 20
	}
	return script
}

func TestScriptsKeepTimeWhenOthersUpdateThePod(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	const pause = 2 * time.Second
	pod := createPod(t, c, namespace, kubetest.ReadyAfter(pause).Annotations())
	reaches(t, c, pod, "Running init:exit0 main:running")

	updates := 0 // many in each pause: if the script began anew with each, it would never go on
	pods := c.Client().CoreV1().Pods(namespace)
	c.Eventually(t, time.Minute, "the pod to become ready", func(ctx context.Context) error {
		updates++
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"update":"%d"}}}`, updates)
		now, err := pods.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil || !strings.HasSuffix(describe(now), "READY") {
			return fmt.Errorf("it is %q, %v", describe(now), err)
		}
		return nil
	})
}

func TestDeletionTakesTheTimeAsked(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	const pause = 2 * time.Second
	pod := createPod(t, c, namespace, map[string]string{kubetest.DeleteAfterAnnotation: pause.String()})
	reaches(t, c, pod, "Running init:exit0 main:running READY")

	began := time.Now()
	pods := c.Client().CoreV1().Pods(namespace)
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(30))}); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, 10*pause, "the pod to end", func(ctx context.Context) error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v, %v", now.DeletionTimestamp, err)
	})
	if took := time.Since(began); took < pause {
		t.Errorf("the pod has ended after %s, want %s", took, pause)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	pods := c.Client().CoreV1().Pods(namespace)
	annotations := hasten(kubetest.OOM()).Annotations()
	annotations[kubetest.LogsAnnotation] = "one\ntwo\nthree"
	annotations[kubetest.LogsPreviousAnnotation] = "before\n"
	annotations[kubetest.LogsAnnotation+".init"] = "prepared"
	crashing := createPod(t, c, namespace, annotations)
	missing := createPod(t, c, namespace, hasten(kubetest.PullPermanent()).Annotations())
	reaches(t, c, crashing, "Running init:exit0 main:running,rc1,last137")
	reaches(t, c, missing, "Pending init:exit0 main:ImagePullBackOff")

	for _, test := range []struct {
		pod, want string
		options   corev1.PodLogOptions
	}{
		{crashing.Name, "one\ntwo\nthree\n", corev1.PodLogOptions{}},
		{crashing.Name, "two\nthree\n", corev1.PodLogOptions{TailLines: new(int64(2))}},
		{crashing.Name, "one\ntw", corev1.PodLogOptions{LimitBytes: new(int64(6))}},
		{crashing.Name, "before\n", corev1.PodLogOptions{Previous: true}},
		{crashing.Name, "prepared\n", corev1.PodLogOptions{Container: "init"}},
		{missing.Name, "trying and failing to pull image", corev1.PodLogOptions{}},
		{missing.Name, "previous terminated container \"main\"", corev1.PodLogOptions{Previous: true}},
	} {
		if test.options.Container == "" {
			test.options.Container = "main"
		}
		got, err := readLog(t.Context(), pods.GetLogs(test.pod, &test.options))
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("logs of %s with %+v: %v, want %q", test.pod, test.options, err, test.want)
			}
			continue
		}
		if got != test.want {
			t.Errorf("logs of %s with %+v = %q, want %q", test.pod, test.options, got, test.want)
		}
	}
}

// readLog reads by Stream, as DoRaw drops what the server says about an error.
func readLog(ctx context.Context, request *rest.Request) (string, error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	log, err := io.ReadAll(stream)
	return string(log), err
}

func TestLogsCanBeFollowed(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	namespace := c.Namespace(t)
	pods := c.Client().CoreV1().Pods(namespace)
	pod := createPod(t, c, namespace, map[string]string{kubetest.LogsAnnotation: "one\n"})
	reaches(t, c, pod, "Running init:exit0 main:running READY")

	stream, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: "main", Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	next := func() string {
		if !lines.Scan() {
			return fmt.Sprint("the end, ", lines.Err())
		}
		return lines.Text()
	}
	if got := next(); got != "one" {
		t.Fatalf("the log begins with %q, want one", got)
	}
	patch := []byte(`{"metadata":{"annotations":{"` + kubetest.LogsAnnotation + `":"one\ntwo\n"}}}`)
	_, err = pods.Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if got := next(); err != nil || got != "two" {
		t.Fatalf("the log goes on with %q, %v, want two", got, err)
	}
	err = pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{})
	if got := next(); err != nil || got != "the end, <nil>" {
		t.Fatalf("the log goes on with %q, %v, want its end", got, errors.Join(err, lines.Err()))
	}
}
