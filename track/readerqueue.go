package track

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"deployer/internal/annotation"
)

const maxReaders = 20 // logs followed at a time: each is a stream of the connection

// enqueue adds a reader of an object's logs, and starts it when its turn comes.
func (f *logFollower) enqueue(obj *trackedObject, read func(context.Context, *logReader) error) {
	f.waiting = append(f.waiting, &logReader{follower: f, object: obj, id: obj.ID, settings: obj.settings.logs,
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
		f.warn("logs unavailable: " + refusalText(err, getLogs, r.object.ID.Namespace))
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
