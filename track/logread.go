package track

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxFinishedLog = 1 << 20                // bytes read of a log after its Job has finished
	firstLogRetry  = 200 * time.Millisecond // before a log that was cut off is read on
	lastLogRetry   = 5 * time.Second
)

// readToEnd follows a log to its end, also when the connection is cut meanwhile.
func (b *logFollower) readToEnd(ctx context.Context, typed kubernetes.Interface, r *logReader, id kube.ID, p pods.Pod, container string) error {
	for pause := firstLogRetry; ; pause = min(2*pause, lastLogRetry) {
		err := b.read(ctx, typed, r, id, p, container, true)
		var status apierrors.APIStatus
		if err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
			return err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
	}
}

// read copies a log to the queue, without lines that were there before.
func (b *logFollower) read(ctx context.Context, typed kubernetes.Interface, r *logReader, id kube.ID, p pods.Pod, container string, follow bool) error {
	opts := &corev1.PodLogOptions{Container: container, Follow: follow, Timestamps: true}
	key := containerRun{pod: p.UID, container: container}
	b.mu.Lock()
	since := b.lastLine[key]
	b.mu.Unlock()
	if !since.IsZero() {
		opts.SinceTime = &metav1.Time{Time: since}
	}
	body, err := typed.CoreV1().Pods(p.Namespace).GetLogs(p.Name, opts).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	var in io.Reader = body
	if !follow {
		in = io.LimitReader(body, maxFinishedLog)
	}
	out := b.newSampler(r, id, p.Name, container)
	err = logs.Read(in, true, func(l logs.Line) {
		if !l.Time.IsZero() && !l.Time.After(since) {
			return
		}
		b.mu.Lock()
		b.lastLine[key] = l.Time
		b.mu.Unlock()
		if r.logs.wantsLine(container, l.Text) {
			out.add(l)
		}
	})
	out.end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lineSampler passes the lines of one container on, as many as may pass.
type lineSampler struct {
	book    *logFollower
	line    LogLine     // but for its time and text
	limit   *logs.Limit // of the container; nil when all lines are wanted
	skipped *logs.Line  // the last one that was left out
	dropped int
}

func (b *logFollower) newSampler(r *logReader, id kube.ID, pod, container string) *lineSampler {
	o := &lineSampler{book: b, line: LogLine{Object: id, Pod: pod, Container: container}}
	if r.isSampled {
		o.limit = logs.NewLimit(lineRate, lineBurst)
	}
	return o
}

func (o *lineSampler) add(l logs.Line) {
	now := time.Now()
	if o.limit != nil && !(o.limit.Allow(now) && o.book.limit.Allow(now)) {
		o.skipped = &l
		o.dropped++
		return
	}
	o.send(l)
}

func (o *lineSampler) send(l logs.Line) {
	line := o.line
	line.Time, line.Text, line.Dropped = l.Time, l.Text, o.dropped
	o.skipped, o.dropped = nil, 0
	o.book.queue.Put(line)
}

// end sends the last line of the log, whatever the limit was.
func (o *lineSampler) end() {
	if o.skipped != nil {
		o.dropped--
		o.send(*o.skipped)
	}
}

// podsOfJob lists the pods of a Job.
func podsOfJob(ctx context.Context, typed kubernetes.Interface, namespace string, uid types.UID) ([]pods.Pod, error) {
	found, err := typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "batch.kubernetes.io/controller-uid=" + string(uid),
	})
	if err != nil {
		return nil, err
	}
	var out []pods.Pod
	for i := range found.Items {
		out = append(out, pods.Trim(&found.Items[i]))
	}
	return out, nil
}
