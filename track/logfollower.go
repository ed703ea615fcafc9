package track

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxQueue              = 2000 // lines between the readers and a slow view
	tailLines             = 20
	finishedLogsTimeout   = 5 * time.Second        // at most, for the last lines of what has finished
	unfinishedLogsTimeout = 200 * time.Millisecond // for logs of what goes on while the wait ends
	queuedLogsTimeout     = 30 * time.Second       // for the last lines of all that have to wait for their turn
)

// logFollower follows the logs that are wanted live.
type logFollower struct {
	session     *session
	queue       *logs.Queue[LogLine]
	dropped     int
	followed    map[containerRun]bool
	lastLine    map[containerRun]time.Time // time of the last line, by container, in the readers' hands
	mu          sync.Mutex                 // of lastLine
	slots       readerSlots
	hasFollowed map[*trackedObject]bool
	totalLimit  *rate.Limiter // of all containers
}

// containerRun is one run of a container.
type containerRun struct {
	pod       types.UID
	container string
	restarts  int
}

func newLogFollower(s *session) *logFollower {
	return &logFollower{session: s, queue: logs.NewQueue[LogLine](maxQueue), followed: map[containerRun]bool{},
		lastLine: map[containerRun]time.Time{}, hasFollowed: map[*trackedObject]bool{},
		totalLimit: rate.NewLimiter(totalRate, totalBurst)}
}

func (f *logFollower) lastLineOf(run containerRun) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastLine[run]
}

func (f *logFollower) setLastLine(run containerRun, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastLine[run] = at
}

// logMode is which logs of an object are wanted: a Job's live, others' when they
// fail, unless somebody says otherwise; the annotation has the last word.
func (f *logFollower) logMode(sub *trackedObject) LogMode {
	mode := LogsFailed
	if sub.gk.Kind == "Job" {
		mode = LogsLive
	}
	if f.session.opts.Logs != "" {
		mode = f.session.opts.Logs
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

func (f *logFollower) isLive(sub *trackedObject) bool {
	return f.logMode(sub) == LogsLive && (sub.isWorkload() || sub.gk == podKind) && sub.Until != UntilGone
}

// followBarePod follows a pod that is tracked itself.
func (f *logFollower) followBarePod(sub *trackedObject) {
	if sub.gk != podKind {
		return
	}
	for _, m := range sub.newPods.byUID {
		f.followPod(sub, m.Pod)
	}
}

// followPod starts to follow containers that have begun to run.
func (f *logFollower) followPod(sub *trackedObject, p pods.Pod) {
	if !f.isLive(sub) || sub.settings.logs.maxPods > 0 && f.podsFollowed(sub, p.UID) >= sub.settings.logs.maxPods {
		return
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		key := containerRun{p.UID, c.PlainName, c.Restarts}
		if !c.Running && c.Terminated == nil || f.followed[key] || !sub.settings.logs.wantsContainer(c.PlainName) {
			continue
		}
		f.followed[key] = true
		f.hasFollowed[sub] = true
		f.follow(sub, p, c.PlainName)
	}
}

// podsFollowed counts the pods of an object, other than one, that are followed.
func (f *logFollower) podsFollowed(sub *trackedObject, but types.UID) int {
	seen := map[types.UID]bool{}
	for key := range f.followed {
		if sub.newPods.byUID[key.pod] != nil && key.pod != but {
			seen[key.pod] = true
		}
	}
	return len(seen)
}

// flush hands over the lines that wait.
func (f *logFollower) flush() {
	lines, dropped := f.queue.Take()
	now := f.session.opts.Now()
	for i := range lines {
		lines[i].Dropped += f.dropped
		f.dropped = 0
		f.session.report(Report{Kind: LogWritten, Time: now, Status: Status{ID: lines[i].Object}, Log: &lines[i]})
	}
	f.dropped += dropped
}

// finish lets the logs of what is done come to their ends, and those that wait
// have their turns. A Job may have been faster than we were; its log is then
// read at once.
func (f *logFollower) finish() {
	for _, sub := range f.session.objects {
		if f.isLive(sub) && sub.status.State.IsFinal() && !f.hasFollowed[sub] && !sub.observed.isGone && sub.observed.object != nil && sub.hasNewLogs() {
			f.readLate(sub)
		}
	}
	patience := finishedLogsTimeout
	for sub := range f.hasFollowed {
		if !sub.status.State.IsFinal() {
			patience = unfinishedLogsTimeout // its log doesn't end by itself
		}
	}
	end := time.Now().Add(queuedLogsTimeout)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for over := false; f.slots.active > 0 && !over; {
		waiting := len(f.slots.waiting)
		select {
		case <-f.queue.Ready():
			f.flush()
		case call := <-f.session.tasks.inbox:
			call()
		case <-limit.C:
			over = true
		}
		if len(f.slots.waiting) < waiting { // the next ones have as much time
			limit.Reset(min(patience, time.Until(end)))
		}
	}
	f.flush()
}
