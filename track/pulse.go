package track

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	freshNews  = time.Second     // what was heard so lately could not have been heard from a server in trouble
	pulseTime  = 3 * time.Second // for one answer
	pulseAgain = time.Second     // between two questions to a server in trouble
)

// pulse is what is known about the API server itself. One that has lost its
// storage keeps watches open and says nothing, so that a failure that time alone
// has brought may rest on a silence that means nothing.
type pulse struct {
	heard  time.Time // when it last told something that it had to read
	asking bool
	lost   bool // it has lost its storage
}

// sure tells whether silence means that nothing has changed. If that isn't known
// it asks, and all objects are judged again with the answer.
func (s *session) sure(now time.Time) bool {
	if now.Sub(s.pulse.heard) <= freshNews {
		return true
	}
	if !s.pulse.asking {
		s.pulse.asking = true
		s.group.Go(s.askPulse)
	}
	return false
}

// askPulse asks until the API server has its storage.
func (s *session) askPulse() {
	for {
		err := s.storage()
		if !s.send(func() { s.takePulse(err) }) || err == nil {
			return
		}
		select {
		case <-time.After(pulseAgain):
		case <-s.ctx.Done():
			return
		}
	}
}

// storage returns an error when the API server says that it has lost its storage,
// or says nothing. Everybody may ask; a server that doesn't know the question, as
// proxies may not, is believed.
// https://kubernetes.io/docs/reference/using-api/health-checks/
func (s *session) storage() error {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return nil // Wait has used the connection already
	}
	ctx, stop := context.WithTimeout(s.ctx, pulseTime)
	defer stop()
	_, err = typed.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status):
		return err
	case strings.Contains(err.Error(), "[-]etcd"):
		return errors.New("it doesn't reach its storage")
	}
	return nil
}

// takePulse stops the clocks of all objects at what was heard last, and lets them
// go on when the storage is back.
func (s *session) takePulse(err error) {
	now, was := s.opts.Now(), s.pulse.lost
	s.pulse.lost = err != nil
	if err == nil {
		s.pulse.heard, s.pulse.asking = now, false
	}
	for _, sub := range s.subjects {
		s.dirty[sub] = true
		switch {
		case s.pulse.lost && !was:
			sub.blind(s.pulse.heard)
		case was && !s.pulse.lost:
			sub.sighted(now)
		}
	}
	if was != s.pulse.lost {
		s.reach("asking the API server", s.pulse.lost, err)
	}
}
