package track

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"deployer/internal/annotation"
	"deployer/track/pods"
)

const maxReaders = 20 // logs followed at a time: each is a stream of the connection

// readerSlots are the readers of logs. Those beyond the most that may read at a
// time wait for their turn, in the order in which their containers have begun.
type readerSlots struct {
	active  int // readers that haven't ended
	reading []*logReader
	waiting []*logReader
	missed  int // whose turn came too late: the pod was gone
}

// A logReader reads the log of one container, or of a Job that is over. It runs
// beside the session, so it has what it needs of the object by itself.
type logReader struct {
	sub       *trackedObject // only for the session's goroutine
	isSampled bool           // the lines are limited
	logs      logSettings    // of the object when the reader was made
	hasWaited bool
	stop      context.CancelFunc
	read      func(context.Context, kubernetes.Interface) error
}

func (b *logFollower) newReader(sub *trackedObject) *logReader {
	return &logReader{sub: sub, logs: sub.settings.logs, isSampled: b.s.opts.Logs != LogsLive && sub.settings.logs.mode == nil}
}

// follow reads the log of a container from now on, or when it is its turn.
func (b *logFollower) follow(sub *trackedObject, p pods.Pod, container string) {
	r := b.newReader(sub)
	id := sub.ID
	r.read = func(ctx context.Context, typed kubernetes.Interface) error {
		return b.readToEnd(ctx, typed, r, id, p, container)
	}
	b.slots.waiting = append(b.slots.waiting, r)
	b.startReaders()
}

// startReaders lets as many readers begin as may read at a time. What goes on
// writing although its object is done makes room for others.
func (b *logFollower) startReaders() {
	t := &b.slots
	if b.s.ctx.Err() != nil {
		return
	}
	for len(t.waiting) > 0 && t.active < maxReaders {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		b.start(next)
	}
	wanted := len(t.waiting)
	for _, r := range t.reading {
		if wanted > 0 && r.isEndless() {
			r.stop()
			wanted--
		}
	}
	for _, r := range t.waiting {
		r.hasWaited = true
	}
}

// isEndless tells whether what it reads will not end by itself although the object is done.
func (r *logReader) isEndless() bool {
	return r.sub.status.State.IsFinal() && r.sub.gk.Kind != "Job" && r.sub.gk != podKind
}

func (b *logFollower) start(r *logReader) {
	typed, err := b.s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	ctx, stop := context.WithCancel(b.s.ctx)
	r.stop = stop
	b.slots.active++
	b.slots.reading = append(b.slots.reading, r)
	b.s.group.Go(func() {
		err := r.read(ctx, typed)
		stopped := ctx.Err() != nil
		stop()
		b.s.send(func() { b.readerEnded(r, err, stopped) })
	})
}

func (b *logFollower) readerEnded(r *logReader, err error, stopped bool) {
	t := &b.slots
	t.active--
	t.reading = slices.DeleteFunc(t.reading, func(other *logReader) bool { return other == r })
	switch {
	case err == nil || stopped:
	case r.hasWaited && apierrors.IsNotFound(err):
		t.missed++
	default:
		b.s.warn("logs unavailable: " + noLogsReason(err, r.sub.ID.Namespace))
	}
	b.startReaders()
}

// warnMissed counts the containers whose logs were wanted and never read.
func (b *logFollower) warnMissed() {
	if n := len(b.slots.waiting) + b.slots.missed; n > 0 {
		b.s.warn(fmt.Sprintf("the logs of %s are not shown: those of %d containers are followed at a time, and it was not their turn; "+
			"choose with %s, %s or %s", containersText(n), maxReaders, annotation.Logs.Name, annotation.LogsContainers.Name, annotation.LogsPods.Name))
	}
}

func containersText(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}

// readLate reads the logs of a Job or Pod that was over before it was followed.
func (b *logFollower) readLate(sub *trackedObject) {
	r := b.newReader(sub)
	id, uid := sub.ID, sub.object.GetUID()
	var known []pods.Pod
	for _, m := range sub.pods {
		known = append(known, m.Pod)
	}
	isPod := sub.gk == podKind
	r.read = func(ctx context.Context, typed kubernetes.Interface) error {
		ctx, stop := context.WithTimeout(ctx, lookupTimeout)
		defer stop()
		found := known
		if !isPod {
			var err error
			if found, err = podsOfJob(ctx, typed, id.Namespace, uid); err != nil {
				return nil //nolint:nilerr // the log is a courtesy
			}
		}
		for _, p := range found {
			for j := range p.Containers {
				if c := p.Containers[j].PlainName; r.logs.wantsContainer(c) {
					_ = b.read(ctx, typed, r, id, p, c, false) // as above
				}
			}
		}
		return nil
	}
	b.slots.waiting = append(b.slots.waiting, r)
	b.startReaders()
}

// hasNewLogs reports whether the object was watched at all: what an earlier
// release ran has no news in its log.
func (s *trackedObject) hasNewLogs() bool {
	return s.Changed && (s.gk.Kind == "Job" || s.gk == podKind)
}
