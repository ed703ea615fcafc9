package track

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxQueue              = 2000 // lines between the readers and a slow view
	tailLines             = 20
	lineRate              = 50   // lines per second of a container, after the first ones
	lineBurst             = 1000 // the first ones
	totalRate             = 200  // lines per second of all containers
	totalBurst            = 3000
	unfinishedLogsTimeout = 200 * time.Millisecond // for logs of what goes on while the wait ends
	queuedLogsTimeout     = 30 * time.Second       // for the last lines of all that have to wait for their turn
)

// logFollower follows the logs that are wanted live.
type logFollower struct {
	s           *session
	queue       *logs.Queue[LogLine]
	dropped     int
	followed    map[containerRun]bool
	lastLine    map[containerRun]time.Time // time of the last line, by container, in the readers' hands
	mu          sync.Mutex                 // of last
	slots       readerSlots
	hasFollowed map[*trackedObject]bool
	limit       *logs.Limit // of all containers
}

// containerRun is one run of a container.
type containerRun struct {
	pod       types.UID
	container string
	restarts  int
}

func newLogFollower(s *session) *logFollower {
	return &logFollower{s: s, queue: logs.NewQueue[LogLine](maxQueue), followed: map[containerRun]bool{},
		lastLine: map[containerRun]time.Time{}, hasFollowed: map[*trackedObject]bool{},
		limit: logs.NewLimit(totalRate, totalBurst)}
}

// logMode is which logs of an object are wanted: a Job's live, others' when they
// fail, unless somebody says otherwise; the annotation has the last word.
func (b *logFollower) logMode(sub *trackedObject) LogMode {
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
	if sub.settings.logs.mode != nil {
		mode = *sub.settings.logs.mode
	}
	if sub.settings.sensitive {
		mode = LogsNone
	}
	return mode
}

func (b *logFollower) isLive(sub *trackedObject) bool {
	return b.logMode(sub) == LogsLive && (sub.isWorkload() || sub.gk == podKind) && sub.Until != UntilGone
}

// followBarePod follows a pod that is tracked itself.
func (b *logFollower) followBarePod(sub *trackedObject) {
	if sub.gk != podKind {
		return
	}
	for _, m := range sub.pods {
		b.followPod(sub, m.Pod)
	}
}

// followPod starts to follow containers that have begun to run.
func (b *logFollower) followPod(sub *trackedObject, p pods.Pod) {
	if !b.isLive(sub) || sub.settings.logs.maxPods > 0 && b.podsFollowed(sub, p.UID) >= sub.settings.logs.maxPods {
		return
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		key := containerRun{p.UID, c.PlainName, c.Restarts}
		if !c.Running && c.Terminated == nil || b.followed[key] || !sub.settings.logs.wantsContainer(c.PlainName) {
			continue
		}
		b.followed[key] = true
		b.hasFollowed[sub] = true
		b.follow(sub, p, c.PlainName)
	}
}

// podsFollowed counts the pods of an object, other than one, that are followed.
func (b *logFollower) podsFollowed(sub *trackedObject, but types.UID) int {
	seen := map[types.UID]bool{}
	for key := range b.followed {
		if sub.pods[key.pod] != nil && key.pod != but {
			seen[key.pod] = true
		}
	}
	return len(seen)
}

// flush hands over the lines that wait.
func (b *logFollower) flush() {
	lines, dropped := b.queue.Take()
	now := b.s.opts.Now()
	for i := range lines {
		lines[i].Dropped += b.dropped
		b.dropped = 0
		b.s.report(Report{Kind: LogWritten, Time: now, Status: Status{ID: lines[i].Object}, Log: &lines[i]})
	}
	b.dropped += dropped
}

// finish lets the logs of what is done come to their ends, and those that wait
// have their turns. A Job may have been faster than we were; its log is then
// read at once.
func (b *logFollower) finish() {
	for _, sub := range b.s.objects {
		if b.isLive(sub) && sub.status.State.IsFinal() && !b.hasFollowed[sub] && !sub.gone && sub.object != nil && sub.hasNewLogs() {
			b.readLate(sub)
		}
	}
	patience := finishedLogsTimeout
	for sub := range b.hasFollowed {
		if !sub.status.State.IsFinal() {
			patience = unfinishedLogsTimeout // its log doesn't end by itself
		}
	}
	end := time.Now().Add(queuedLogsTimeout)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for over := false; b.slots.active > 0 && !over; {
		waiting := len(b.slots.waiting)
		select {
		case <-b.queue.Ready():
			b.flush()
		case f := <-b.s.inbox:
			f()
		case <-limit.C:
			over = true
		}
		if len(b.slots.waiting) < waiting { // the next ones have as much time
			limit.Reset(min(patience, time.Until(end)))
		}
	}
	b.flush()
}
