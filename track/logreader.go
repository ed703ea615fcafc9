package track

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxFinishedLog = 1 << 20                // bytes read of a log after its Job has finished
	firstLogRetry  = 200 * time.Millisecond // before a log that was cut off is read on
	lastLogRetry   = 5 * time.Second

	lineRate   = 50   // lines per second of a container, after the first ones
	lineBurst  = 1000 // the first ones
	totalRate  = 200  // lines per second of all containers
	totalBurst = 3000
)

// A logReader reads the log of one container, or of a Job that is over. It runs beside
// the session, so it has what it needs of the object by itself.
type logReader struct {
	follower  *logFollower
	object    *trackedObject // only for the session's goroutine
	id        kube.ID        // of the object
	settings  logSettings    // of the object when the reader was made
	isSampled bool           // not all lines are wanted
	hasWaited bool           // its turn did not come at once
	read      func(context.Context, *logReader) error
	stop      context.CancelFunc
}

func (r *logReader) sampler(pod, container string) *lineSampler {
	s := &lineSampler{lines: r.follower.lines, id: r.id, line: LogLine{Pod: pod, Container: container}}
	if r.isSampled {
		s.limits = []*rate.Limiter{rate.NewLimiter(lineRate, lineBurst), r.follower.totalLimit}
	}
	return s
}

// isEndless reports whether the log continues although the object's status is final.
func (r *logReader) isEndless() bool {
	return r.object.status.State.IsFinal() && !kube.RunsToEnd(r.object.gk)
}

// readToEnd follows a log to its end. It reconnects when the connection is cut.
func (r *logReader) readToEnd(ctx context.Context, p pods.Pod, container string) error {
	for delay := firstLogRetry; ; delay = min(2*delay, lastLogRetry) {
		err := r.readLog(ctx, p, container, true)
		var status apierrors.APIStatus
		if err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
			return err
		}
		if kube.Sleep(ctx, delay) != nil {
			return nil
		}
	}
}

// readLog copies a log to the queue, without the lines that were read before.
func (r *logReader) readLog(ctx context.Context, p pods.Pod, container string, follow bool) error {
	opts := &corev1.PodLogOptions{Container: container, Follow: follow, Timestamps: true}
	key := containerRun{pod: p.UID, container: container}
	last, _ := r.follower.lastLine.Load(key)
	since, _ := last.(time.Time)
	if !since.IsZero() {
		opts.SinceTime = &metav1.Time{Time: since}
	}
	body, err := r.follower.typed.CoreV1().Pods(p.Namespace).GetLogs(p.Name, opts).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	var in io.Reader = body
	if !follow {
		in = io.LimitReader(body, maxFinishedLog)
	}
	out := r.sampler(p.Name, container)
	err = logs.Read(in, true, func(l logs.Line) {
		if !l.Time.IsZero() && !l.Time.After(since) {
			return
		}
		r.follower.lastLine.Store(key, l.Time)
		if r.settings.wantsLine(container, l.Text) {
			out.add(l)
		}
	})
	out.end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// readFinishedLog reads the logs of a Job or Pod that was over before it was followed.
func (f *logFollower) readFinishedLog(obj *trackedObject) {
	uid := obj.observed.object.GetUID()
	known := obj.newPods.list()
	isPod := obj.gk == kube.PodKind
	f.enqueue(obj, func(ctx context.Context, r *logReader) error {
		ctx, stop := context.WithTimeout(ctx, lookupTimeout)
		defer stop()
		found := known
		if !isPod {
			var err error
			if found, err = f.listPodsOfJob(ctx, r.id.Namespace, uid); err != nil {
				return nil //nolint:nilerr // a missing log is no failure
			}
		}
		for _, p := range found {
			for j := range p.Containers {
				if c := p.Containers[j].PlainName; r.settings.wantsContainer(c) {
					_ = r.readLog(ctx, p, c, false) // a missing log is no failure
				}
			}
		}
		return nil
	})
}

// listPodsOfJob lists the pods of a Job.
func (s *session) listPodsOfJob(ctx context.Context, namespace string, uid types.UID) ([]pods.Pod, error) {
	found, err := s.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: jobLabel + "=" + string(uid),
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

// A lineSampler passes on the lines of one container within its rate limits, and never waits for
// a slow view. Each line says how many lines were dropped before it.
type lineSampler struct {
	lines   chan<- Event
	id      kube.ID // of the object
	line    LogLine // but for its time and text
	limits  []*rate.Limiter
	skipped *logs.Line // the last one that was dropped
	dropped int
}

func (s *lineSampler) add(l logs.Line) {
	if !s.mayPass(time.Now()) || !s.send(l) {
		s.skipped = &l
		s.dropped++
	}
}

func (s *lineSampler) mayPass(now time.Time) bool {
	return !slices.ContainsFunc(s.limits, func(limit *rate.Limiter) bool { return !limit.AllowN(now, 1) })
}

// send returns false if too many lines are on their way.
func (s *lineSampler) send(l logs.Line) bool {
	line := s.line
	line.Time, line.Text, line.Dropped = l.Time, l.Text, s.dropped
	select {
	case s.lines <- Event{Kind: LogWritten, Status: Status{ID: s.id}, Log: &line}:
		s.skipped, s.dropped = nil, 0
		return true
	default:
		return false
	}
}

// end sends the last line of the log, whatever the limits are.
func (s *lineSampler) end() {
	if s.skipped != nil {
		s.dropped--
		s.send(*s.skipped)
	}
}
