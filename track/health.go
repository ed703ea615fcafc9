package track

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	silenceLimit  = time.Second     // what was heard so lately could not have been heard from a server in trouble
	probeTimeout  = 3 * time.Second // for one answer
	probeInterval = time.Second     // between two questions to a server in trouble
)

// apiHealth is what is known about the API server itself. One that has lost its
// storage keeps watches open and says nothing, so that a failure that time alone
// has brought may rest on a silence that means nothing.
type apiHealth struct {
	heardAt     time.Time // when it last told something that it had to read
	probing     bool
	storageLost bool // it has lost its storage
}

// trustsSilence tells whether silence means that nothing has changed. If that isn't known
// it asks, and all objects are judged again with the answer.
func (s *session) trustsSilence(now time.Time) bool {
	if now.Sub(s.health.heardAt) <= silenceLimit {
		return true
	}
	if !s.health.probing {
		s.health.probing = true
		s.group.Go(s.probe)
	}
	return false
}

// probe asks until the API server has its storage.
func (s *session) probe() {
	for {
		err := s.probeStorage()
		if !s.send(func() { s.setStorageLost(err) }) || err == nil {
			return
		}
		select {
		case <-time.After(probeInterval):
		case <-s.ctx.Done():
			return
		}
	}
}

// probeStorage returns an error when the API server says that it has lost its storage,
// or says nothing. Everybody may ask; a server that doesn't know the question, as
// proxies may not, is believed.
// https://kubernetes.io/docs/reference/using-api/health-checks/
func (s *session) probeStorage() error {
	typed, err := s.tracker.cluster.Typed()
	if err != nil {
		return nil // Wait has used the connection already
	}
	ctx, stop := context.WithTimeout(s.ctx, probeTimeout)
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

// setStorageLost stops the clocks of all objects at what was heard last, and lets them
// go on when the storage is back.
func (s *session) setStorageLost(err error) {
	now, was := s.opts.Now(), s.health.storageLost
	s.health.storageLost = err != nil
	if err == nil {
		s.health.heardAt, s.health.probing = now, false
	}
	for _, sub := range s.objects {
		s.dirty[sub] = true
		switch {
		case s.health.storageLost && !was:
			sub.pauseTimers(s.health.heardAt)
		case was && !s.health.storageLost:
			sub.resumeTimers(now)
		}
	}
	if was != s.health.storageLost {
		s.setReachable("asking the API server", s.health.storageLost, err)
	}
}
