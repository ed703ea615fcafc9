package track

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/annotation"
	"deployer/track/pods"
)

const maxReaders = 20 // logs followed at a time: each is a stream of the connection

// readerSlots are the readers of logs. Those beyond the most that may read at a
// time wait for their turn, in the order in which their containers have begun.
type readerSlots struct {
	reading []*logReader
	waiting []*logReader
	missed  int // readers whose turn came after the pod was gone
}

// follow queues a reader that follows the log of a container.
func (f *logFollower) follow(obj *trackedObject, p pods.Pod, container string) {
	r := f.newReader(obj)
	r.read = func(ctx context.Context) error {
		return r.readToEnd(ctx, p, container)
	}
	f.slots.waiting = append(f.slots.waiting, r)
	f.startReaders()
}

// startReaders starts waiting readers while slots are free. It stops readers of endless
// logs whose objects are final if others wait.
func (f *logFollower) startReaders() {
	t := &f.slots
	if f.tasks.ctx.Err() != nil {
		return
	}
	for len(t.waiting) > 0 && len(t.reading) < maxReaders {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		f.start(next)
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

func (f *logFollower) start(r *logReader) {
	ctx, stop := context.WithCancel(f.tasks.ctx)
	r.stop = stop
	f.slots.reading = append(f.slots.reading, r)
	f.tasks.group.Go(func() {
		err := r.read(ctx)
		stopped := ctx.Err() != nil
		stop()
		f.tasks.send(func() { f.readerEnded(r, err, stopped) })
	})
}

func (f *logFollower) readerEnded(r *logReader, err error, stopped bool) {
	t := &f.slots
	t.reading = slices.DeleteFunc(t.reading, func(other *logReader) bool { return other == r })
	switch {
	case err == nil || stopped:
	case r.hasWaited && apierrors.IsNotFound(err):
		t.missed++
	default:
		f.warn("logs unavailable: " + noLogsReason(err, r.object.ID.Namespace))
	}
	f.startReaders()
}

// warnMissed warns of containers whose logs were wanted but never read.
func (f *logFollower) warnMissed() {
	if n := len(f.slots.waiting) + f.slots.missed; n > 0 {
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
