package track

import (
	"context"
	"sync"

	"k8s.io/client-go/kubernetes"

	"deployer/internal/kube"
)

// A session is what the parts of a wait share: the cluster and its health, the tracked objects, the
// reports and the goroutines. Only the goroutine of the wait may touch its fields; other goroutines send
// their results through tasks.
type session struct {
	cluster  *kube.Cluster
	typed    kubernetes.Interface // of the cluster; set when the wait begins
	opts     *Options
	objects  []*trackedObject
	onReport func(Report)
	warned   map[string]bool // texts, each reported once
	tasks    tasks
	health   apiHealth
	fatal    error // ends the wait: credentials refused, or a watch that can't be opened
	// allNamespaces says that pods and events of all namespaces are watched at once, because the
	// targets are in many.
	allNamespaces bool
}

// warn reports a warning, once.
func (s *session) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.onReport(Report{Kind: Warned, Time: s.opts.Now(), Text: text})
	}
}

// object finds a target by its identity; nil when it isn't one.
func (s *session) object(id kube.ID) *trackedObject {
	for _, obj := range s.objects {
		if obj.ID == id {
			return obj
		}
	}
	return nil
}

const maxDrain = 1000 // messages taken before statuses are computed

// tasks are the goroutines of a session. They send functions, which the session's own
// goroutine calls in turn, so that only one goroutine touches the session's data.
type tasks struct {
	ctx   context.Context // ends with the session
	group sync.WaitGroup
	inbox chan func()
}

// begin lets tasks run until ctx ends or end is called. end waits for all of them; what they
// still send is dropped.
func (t *tasks) begin(ctx context.Context) (end func()) {
	t.inbox = make(chan func(), 256)
	var stop context.CancelFunc
	t.ctx, stop = context.WithCancel(ctx)
	return func() {
		stop()
		t.group.Wait()
	}
}

// send has the session's goroutine call f, unless the session has ended.
func (t *tasks) send(f func()) {
	select {
	case t.inbox <- f:
	case <-t.ctx.Done():
	}
}

// drain calls what was sent so far.
func (t *tasks) drain() {
	for range maxDrain {
		select {
		case f := <-t.inbox:
			f()
		default:
			return
		}
	}
}
