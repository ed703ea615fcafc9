package track

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"deployer/track/logs"
	"deployer/track/pods"
)

const (
	maxQueue  = 2000 // lines between the readers and a slow view
	tailLines = 20
	lineRate  = 50   // lines per second of a container, after the first ones
	lineBurst = 1000 // the first ones
	allRate   = 200  // lines per second of all containers
	allBurst  = 3000
	logsStop  = 200 * time.Millisecond // for logs of what goes on while the wait ends
	logsAll   = 30 * time.Second       // for the last lines of all that have to wait for their turn
)

// logBook follows the logs that are wanted live.
type logBook struct {
	s       *session
	queue   *logs.Queue[LogLine]
	dropped int
	runs    map[run]bool
	last    map[run]time.Time // time of the last line, by container, in the readers' hands
	mu      sync.Mutex        // of last
	turns   logTurns
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
		if !c.Running && c.Ended == nil || b.runs[key] || !sub.wantsContainer(c.Plain) {
			continue
		}
		b.runs[key] = true
		b.touched[sub] = true
		b.follow(sub, p, c.Plain)
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

// finish lets the logs of what is done come to their ends, and those that wait
// have their turns. A Job may have been faster than we were; its log is then
// read at once.
func (b *logBook) finish() {
	for _, sub := range b.s.subjects {
		if b.live(sub) && sub.status.State.Done() && !b.touched[sub] && !sub.gone && sub.object != nil && sub.looked() {
			b.readLate(sub)
		}
	}
	patience := logsEnd
	for sub := range b.touched {
		if !sub.status.State.Done() {
			patience = logsStop // its log doesn't end by itself
		}
	}
	end := time.Now().Add(logsAll)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for over := false; b.turns.active > 0 && !over; {
		waiting := len(b.turns.waiting)
		select {
		case <-b.queue.Ready():
			b.flush()
		case f := <-b.s.inbox:
			f()
		case <-limit.C:
			over = true
		}
		if len(b.turns.waiting) < waiting { // the next ones have as much time
			limit.Reset(min(patience, time.Until(end)))
		}
	}
	b.flush()
}
