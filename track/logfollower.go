package track

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/annotation"
	"deployer/internal/kube"
	"deployer/track/pods"
)

const (
	maxReaders            = 20                     // logs followed at a time: each is a stream of the connection
	maxQueue              = 2000                   // lines between the readers and a slow view
	finishedLogsTimeout   = 5 * time.Second        // at most, for the last lines of what has finished
	unfinishedLogsTimeout = 200 * time.Millisecond // for logs of what goes on while the wait ends
	queuedLogsTimeout     = 30 * time.Second       // for the last lines of all that have to wait for their turn
)

// logFollower follows the logs that are wanted live. Readers beyond maxReaders wait for their
// turn, in the order in which their containers have begun.
type logFollower struct {
	*session
	lines           chan Event
	followed        map[containerRun]bool
	followedObjects map[*trackedObject]bool
	lastLine        sync.Map      // of time.Time, by containerRun without restarts: the time of the last line that was read
	totalLimit      *rate.Limiter // of all containers

	reading []*logReader
	waiting []*logReader
	missed  int // readers whose turn came after the pod was gone
}

// containerRun is one run of a container.
type containerRun struct {
	pod       types.UID
	container string
	restarts  int
}

func newLogFollower(s *session) *logFollower {
	return &logFollower{session: s, lines: make(chan Event, maxQueue), followed: map[containerRun]bool{},
		followedObjects: map[*trackedObject]bool{}, totalLimit: rate.NewLimiter(totalRate, totalBurst)}
}

// logMode returns which logs of the object are wanted. The default is live logs for Jobs and
// failure logs for others. The options, the target and the annotations override it, in this
// order.
func (t *trackedObject) logMode() LogMode {
	if t.settings.sensitive {
		return LogsNone
	}
	byKind := LogsFailed
	if t.gk == kube.JobKind {
		byKind = LogsLive
	}
	return cmp.Or(t.settings.logs.mode, t.target.Logs, t.opts.Logs, byKind)
}

// hasLogs reports whether the object is a pod or has pods.
func (t *trackedObject) hasLogs() bool { return t.hasPods() || t.gk == kube.PodKind }

// showsLogs reports whether the lines of its pods are shown as they are written.
func (t *trackedObject) showsLogs() bool {
	return t.logMode() == LogsLive && t.hasLogs() && t.target.Until != UntilGone
}

// followBarePod follows a pod that is tracked itself.
func (f *logFollower) followBarePod(obj *trackedObject) {
	if obj.gk != kube.PodKind {
		return
	}
	for _, pod := range obj.newPods.list() {
		f.followPod(obj, pod)
	}
}

// followPod starts to follow containers that have begun to run.
func (f *logFollower) followPod(obj *trackedObject, p pods.Pod) {
	if !obj.showsLogs() || obj.settings.logs.maxPods > 0 && f.podsFollowed(obj, p.UID) >= obj.settings.logs.maxPods {
		return
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		key := containerRun{p.UID, c.PlainName, c.Restarts}
		if !c.Running && c.Terminated == nil || f.followed[key] || !obj.settings.logs.wantsContainer(c.PlainName) {
			continue
		}
		f.followed[key] = true
		f.followedObjects[obj] = true
		f.enqueue(obj, func(ctx context.Context, r *logReader) error { return r.readToEnd(ctx, p, key.container) })
	}
}

// podsFollowed counts the followed pods of an object, without the pod given.
func (f *logFollower) podsFollowed(obj *trackedObject, but types.UID) int {
	seen := map[types.UID]bool{}
	for key := range f.followed {
		if obj.newPods.byUID[key.pod] != nil && key.pod != but {
			seen[key.pod] = true
		}
	}
	return len(seen)
}

// report reports a line.
func (f *logFollower) report(e Event) {
	e.Time = f.opts.Now()
	f.onEvent(e)
}

// flush reports the lines that have come so far.
func (f *logFollower) flush() {
	for range len(f.lines) {
		f.report(<-f.lines)
	}
}

// finish waits, for a limited time, until the followed logs have ended and the waiting
// readers have had their turns. The log of a Job that finished before it was followed is
// read now.
func (f *logFollower) finish() {
	for _, obj := range f.objects {
		if f.hasMissedLog(obj) {
			f.readFinishedLog(obj)
		}
	}
	limit := finishedLogsTimeout
	for obj := range f.followedObjects {
		if !obj.status.State.IsFinal() {
			limit = unfinishedLogsTimeout // its log doesn't end by itself
		}
	}
	end := time.Now().Add(queuedLogsTimeout)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for over := false; len(f.reading) > 0 && !over; {
		waiting := len(f.waiting)
		select {
		case line := <-f.lines:
			f.report(line)
		case call := <-f.tasks.inbox:
			call()
		case <-timer.C:
			over = true
		}
		if len(f.waiting) < waiting { // the next ones have as much time
			timer.Reset(min(limit, time.Until(end)))
		}
	}
	f.flush()
}

// hasMissedLog reports whether the object is a Job or Pod that this release has changed and that was
// over before its log was followed. The log of an unchanged one is from an earlier release.
func (f *logFollower) hasMissedLog(obj *trackedObject) bool {
	return obj.target.Changed && kube.RunsToEnd(obj.gk) && obj.showsLogs() && !f.followedObjects[obj] &&
		obj.status.State.IsFinal() && obj.observed.object != nil && !obj.observed.isGone
}

// enqueue adds a reader of an object's logs, and starts it when its turn comes.
func (f *logFollower) enqueue(obj *trackedObject, read func(context.Context, *logReader) error) {
	f.waiting = append(f.waiting, &logReader{follower: f, object: obj, id: obj.target.ID, settings: obj.settings.logs,
		isSampled: f.opts.Logs != LogsLive && obj.settings.logs.mode == "", read: read})
	f.startReaders()
}

// startReaders starts waiting readers while fewer than maxReaders read. It stops readers of endless
// logs whose objects are final if others wait.
func (f *logFollower) startReaders() {
	if f.tasks.ctx.Err() != nil {
		return
	}
	for len(f.waiting) > 0 && len(f.reading) < maxReaders {
		next := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.start(next)
	}
	wanted := len(f.waiting)
	for _, r := range f.reading {
		if wanted > 0 && r.isEndless() {
			r.stop()
			wanted--
		}
	}
	for _, r := range f.waiting {
		r.hasWaited = true
	}
}

func (f *logFollower) start(r *logReader) {
	ctx, stop := context.WithCancel(f.tasks.ctx)
	r.stop = stop
	f.reading = append(f.reading, r)
	f.tasks.group.Go(func() {
		err := r.read(ctx, r)
		stopped := ctx.Err() != nil
		stop()
		f.tasks.send(func() { f.readerEnded(r, err, stopped) })
	})
}

func (f *logFollower) readerEnded(r *logReader, err error, stopped bool) {
	f.reading = slices.DeleteFunc(f.reading, func(other *logReader) bool { return other == r })
	switch {
	case err == nil || stopped:
	case r.hasWaited && apierrors.IsNotFound(err):
		f.missed++
	default:
		f.warn("logs unavailable: " + refusalText(err, getLogs, r.object.target.ID.Namespace))
	}
	f.startReaders()
}

// warnMissed warns of containers whose logs were wanted but never read.
func (f *logFollower) warnMissed() {
	if n := len(f.waiting) + f.missed; n > 0 {
		f.warn(fmt.Sprintf("the logs of %s are not shown: deployer follows %d containers at a time; "+
			"choose with %s, %s or %s", containersText(n), maxReaders, annotation.Logs.Name, annotation.LogsContainers.Name, annotation.LogsPods.Name))
	}
}

func containersText(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}
