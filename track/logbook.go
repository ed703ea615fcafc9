package track

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxFollowers = 20      // logs followed at a time: each is a stream of the connection
	maxQueue     = 2000    // lines between the readers and a slow view
	maxLate      = 1 << 20 // bytes read of a log after its Job has finished
	tailLines    = 20
	lineRate     = 50   // lines per second of a container, after the first ones
	lineBurst    = 1000 // the first ones
	allRate      = 200  // lines per second of all containers
	allBurst     = 3000
	firstAgain   = 200 * time.Millisecond // before a log that was cut off is read on
	lastAgain    = 5 * time.Second
	logsStop     = 200 * time.Millisecond // for logs of what goes on while the wait ends
)

// logBook follows the logs that are wanted live.
type logBook struct {
	s       *session
	queue   *logs.Queue[LogLine]
	dropped int
	runs    map[run]bool
	last    map[run]time.Time // time of the last line, by container, in the readers' hands
	mu      sync.Mutex        // of last
	active  int               // readers that haven't ended
	touched map[*subject]bool
	limit   *logs.Limit // of all containers
}

// run is one run of a container.
type run struct {
	pod       types.UID
	container string
	restarts  int
}

func newLogBook(s *session) *logBook {
	return &logBook{s: s, queue: logs.NewQueue[LogLine](maxQueue), runs: map[run]bool{},
		last: map[run]time.Time{}, touched: map[*subject]bool{},
		limit: logs.NewLimit(allRate, allBurst)}
}

// mode is which logs of an object are wanted: a Job's live, others' when they
// fail, unless somebody says otherwise; the annotation has the last word.
func (b *logBook) mode(sub *subject) LogMode {
	mode := LogsFailed
	if sub.gk.Kind == "Job" {
		mode = LogsLive
	}
	if b.s.opts.Logs != "" {
		mode = b.s.opts.Logs
	}
	if sub.Target.Logs != "" {
		mode = sub.Target.Logs
	}
	if sub.settings.Logs != nil {
		mode = *sub.settings.Logs
	}
	if sub.Sensitive {
		mode = LogsNone
	}
	return mode
}

func (b *logBook) live(sub *subject) bool {
	return b.mode(sub) == LogsLive && (sub.workload() || sub.gk == podKind) && sub.Until != UntilGone
}

// seeBare follows a pod that is tracked itself.
func (b *logBook) seeBare(sub *subject) {
	if sub.gk != podKind {
		return
	}
	for _, m := range sub.pods {
		b.see(sub, m.Pod)
	}
}

// see starts to follow containers that have begun to run.
func (b *logBook) see(sub *subject, p pods.Pod) {
	if !b.live(sub) || sub.LogPods > 0 && b.pods(sub, p.UID) >= sub.LogPods {
		return
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		key := run{p.UID, c.Plain, c.Restarts}
		if !c.Running && c.Ended == nil || b.runs[key] || !sub.wantsContainer(c.Plain) || b.active >= maxFollowers {
			continue
		}
		b.runs[key] = true
		b.touched[sub] = true
		b.start(sub, p, c.Plain)
	}
}

// pods counts the pods of an object, other than one, that are followed.
func (b *logBook) pods(sub *subject, but types.UID) int {
	seen := map[types.UID]bool{}
	for key := range b.runs {
		if sub.pods[key.pod] != nil && key.pod != but {
			seen[key.pod] = true
		}
	}
	return len(seen)
}

func (b *logBook) start(sub *subject, p pods.Pod, container string) {
	typed, err := b.s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	b.active++
	b.s.group.Go(func() {
		err := b.keep(b.s.ctx, typed, sub, p, container)
		b.s.send(func() {
			b.active--
			if err != nil && b.s.ctx.Err() == nil {
				b.s.warn("logs unavailable: " + whyNoLogs(err, p.Namespace))
			}
		})
	})
}

// keep follows a log to its end, also when the connection is cut meanwhile.
func (b *logBook) keep(ctx context.Context, typed kubernetes.Interface, sub *subject, p pods.Pod, container string) error {
	for pause := firstAgain; ; pause = min(2*pause, lastAgain) {
		err := b.read(ctx, typed, sub, p, container, true)
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
func (b *logBook) read(ctx context.Context, typed kubernetes.Interface, sub *subject, p pods.Pod, container string, follow bool) error {
	opts := &corev1.PodLogOptions{Container: container, Follow: follow, Timestamps: true}
	key := run{pod: p.UID, container: container}
	b.mu.Lock()
	since := b.last[key]
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
		in = io.LimitReader(body, maxLate)
	}
	out := b.outlet(sub, p.Name, container)
	err = logs.Read(in, true, func(l logs.Line) {
		if !l.Time.IsZero() && !l.Time.After(since) {
			return
		}
		b.mu.Lock()
		b.last[key] = l.Time
		b.mu.Unlock()
		if sub.wants(container, l.Text) {
			out.put(l)
		}
	})
	out.end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// outlet passes the lines of one container on, as many as may pass.
type outlet struct {
	book    *logBook
	line    LogLine     // but for its time and text
	limit   *logs.Limit // of the container; nil when all lines are wanted
	left    *logs.Line  // the last one that was left out
	dropped int
}

func (b *logBook) outlet(sub *subject, pod, container string) *outlet {
	o := &outlet{book: b, line: LogLine{Object: sub.ID, Pod: pod, Container: container}}
	if b.s.opts.Logs != LogsLive && sub.settings.Logs == nil {
		o.limit = logs.NewLimit(lineRate, lineBurst)
	}
	return o
}

func (o *outlet) put(l logs.Line) {
	now := time.Now()
	if o.limit != nil && !(o.limit.Allow(now) && o.book.limit.Allow(now)) {
		o.left = &l
		o.dropped++
		return
	}
	o.send(l)
}

func (o *outlet) send(l logs.Line) {
	line := o.line
	line.Time, line.Text, line.Dropped = l.Time, l.Text, o.dropped
	o.left, o.dropped = nil, 0
	o.book.queue.Put(line)
}

// end sends the last line of the log, whatever the limit was.
func (o *outlet) end() {
	if o.left != nil {
		o.dropped--
		o.send(*o.left)
	}
}

// flush hands over the lines that wait.
func (b *logBook) flush() {
	lines, dropped := b.queue.Take()
	now := b.s.opts.Now()
	for i := range lines {
		lines[i].Dropped += b.dropped
		b.dropped = 0
		b.s.saw(Report{Kind: LogWritten, Time: now, Status: Status{ID: lines[i].Object}, Log: &lines[i]})
	}
	b.dropped += dropped
}

// finish lets the logs of what is done come to their ends. A Job may have been
// faster than we were; its log is then read at once.
func (b *logBook) finish() {
	var late []*subject
	for _, sub := range b.s.subjects {
		if b.live(sub) && sub.status.State.Done() && !b.touched[sub] && !sub.gone && sub.object != nil && sub.looked() {
			late = append(late, sub)
		}
	}
	ctx, stop := context.WithTimeout(b.s.ctx, evidenceTime)
	defer stop()
	for _, sub := range late {
		b.active++
		b.s.group.Go(func() {
			b.readLate(ctx, sub)
			b.s.send(func() { b.active-- })
		})
	}
	patience := logsEnd
	for sub := range b.touched {
		if !sub.status.State.Done() {
			patience = logsStop // its log doesn't end by itself
		}
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for over := false; b.active > 0 && !over; {
		select {
		case <-b.queue.Ready():
			b.flush()
		case f := <-b.s.inbox:
			f()
		case <-limit.C:
			over = true
		}
	}
	b.flush()
}

// looked reports whether the object was watched at all: what an earlier
// release ran has no news in its log.
func (s *subject) looked() bool { return s.Changed && (s.gk.Kind == "Job" || s.gk == podKind) }

func (b *logBook) readLate(ctx context.Context, sub *subject) {
	found, typed, err := b.s.podsOfJob(ctx, sub)
	if err != nil {
		return // the log is a courtesy
	}
	for _, p := range found {
		for j := range p.Containers {
			if c := p.Containers[j].Plain; sub.wantsContainer(c) {
				_ = b.read(ctx, typed, sub, p, c, false) // as above
			}
		}
	}
}

// podsOfJob lists the pods of a Job; a pod is its own.
func (s *session) podsOfJob(ctx context.Context, sub *subject) ([]pods.Pod, kubernetes.Interface, error) {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return nil, nil, err
	}
	var out []pods.Pod
	if sub.gk == podKind {
		for _, m := range sub.pods {
			out = append(out, m.Pod)
		}
		return out, typed, nil
	}
	found, err := typed.CoreV1().Pods(sub.ID.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "batch.kubernetes.io/controller-uid=" + string(sub.object.GetUID()),
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range found.Items {
		out = append(out, pods.Trim(&found.Items[i]))
	}
	return out, typed, nil
}
