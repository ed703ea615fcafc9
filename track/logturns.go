package track

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"deployer/track/pods"

	"deployer/internal/annotation"
)

const maxFollowers = 20 // logs followed at a time: each is a stream of the connection

// logTurns are the readers of logs. Those beyond the most that may read at a
// time wait for their turn, in the order in which their containers have begun.
type logTurns struct {
	active  int // readers that haven't ended
	reading []*logReader
	waiting []*logReader
	missed  int // whose turn came too late: the pod was gone
}

// A logReader reads the log of one container, or of a Job that is over. It runs
// beside the session, so it has what it needs of the object by itself.
type logReader struct {
	sub    *subject // only for the session's goroutine
	limits bool     // the lines are limited
	settings
	waited bool
	stop   context.CancelFunc
	read   func(context.Context, kubernetes.Interface) error
}

func (b *logBook) newReader(sub *subject) *logReader {
	return &logReader{sub: sub, settings: sub.settings, limits: b.s.opts.Logs != LogsLive && sub.settings.Logs == nil}
}

// follow reads the log of a container from now on, or when it is its turn.
func (b *logBook) follow(sub *subject, p pods.Pod, container string) {
	r := b.newReader(sub)
	id := sub.ID
	r.read = func(ctx context.Context, typed kubernetes.Interface) error {
		return b.keep(ctx, typed, r, id, p, container)
	}
	b.turns.waiting = append(b.turns.waiting, r)
	b.takeTurns()
}

// takeTurns lets as many readers begin as may read at a time. What goes on
// writing although its object is done makes room for others.
func (b *logBook) takeTurns() {
	t := &b.turns
	if b.s.ctx.Err() != nil {
		return
	}
	for len(t.waiting) > 0 && t.active < maxFollowers {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		b.start(next)
	}
	wanted := len(t.waiting)
	for _, r := range t.reading {
		if wanted > 0 && r.goesOn() {
			r.stop()
			wanted--
		}
	}
	for _, r := range t.waiting {
		r.waited = true
	}
}

// goesOn tells whether what it reads will not end by itself although the object is done.
func (r *logReader) goesOn() bool {
	return r.sub.status.State.Done() && r.sub.gk.Kind != "Job" && r.sub.gk != podKind
}

func (b *logBook) start(r *logReader) {
	typed, err := b.s.tracker.cluster.Typed()
	if err != nil {
		return // Wait has used the connection already
	}
	ctx, stop := context.WithCancel(b.s.ctx)
	r.stop = stop
	b.turns.active++
	b.turns.reading = append(b.turns.reading, r)
	b.s.group.Go(func() {
		err := r.read(ctx, typed)
		stopped := ctx.Err() != nil
		stop()
		b.s.send(func() { b.ended(r, err, stopped) })
	})
}

func (b *logBook) ended(r *logReader, err error, stopped bool) {
	t := &b.turns
	t.active--
	t.reading = slices.DeleteFunc(t.reading, func(other *logReader) bool { return other == r })
	switch {
	case err == nil || stopped:
	case r.waited && apierrors.IsNotFound(err):
		t.missed++
	default:
		b.s.warn("logs unavailable: " + whyNoLogs(err, r.sub.ID.Namespace))
	}
	b.takeTurns()
}

// tellMissed counts the containers whose logs were wanted and never read.
func (b *logBook) tellMissed() {
	if n := len(b.turns.waiting) + b.turns.missed; n > 0 {
		b.s.warn(fmt.Sprintf("the logs of %s are not shown: those of %d containers are followed at a time, and it was not their turn; "+
			"choose with %s, %s or %s", containers(n), maxFollowers, annotation.Logs.Name, annotation.LogsContainers.Name, annotation.LogsPods.Name))
	}
}

func containers(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}

// readLate reads the logs of a Job or Pod that was over before it was followed.
func (b *logBook) readLate(sub *subject) {
	r := b.newReader(sub)
	id, uid := sub.ID, sub.object.GetUID()
	var known []pods.Pod
	for _, m := range sub.pods {
		known = append(known, m.Pod)
	}
	isPod := sub.gk == podKind
	r.read = func(ctx context.Context, typed kubernetes.Interface) error {
		ctx, stop := context.WithTimeout(ctx, evidenceTime)
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
				if c := p.Containers[j].Plain; r.wantsContainer(c) {
					_ = b.read(ctx, typed, r, id, p, c, false) // as above
				}
			}
		}
		return nil
	}
	b.turns.waiting = append(b.turns.waiting, r)
	b.takeTurns()
}

// looked reports whether the object was watched at all: what an earlier
// release ran has no news in its log.
func (s *subject) looked() bool { return s.Changed && (s.gk.Kind == "Job" || s.gk == podKind) }
