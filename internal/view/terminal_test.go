package view

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"deployer/apply"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/track"
)

// A screen understands as much of a terminal as the region needs: printing,
// wrapping, scrolling, and the few sequences that move and erase.
type screen struct {
	width, height int
	rows          [][]rune // all lines ever, the last height of them visible
	x, y          int
	t             testing.TB
}

func newScreen(t testing.TB, width, height int) *screen {
	return &screen{width: width, height: height, rows: [][]rune{nil}, t: t}
}

func (s *screen) Write(data []byte) (int, error) {
	text := []rune(string(data))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\r':
			s.x = 0
		case r == '\n':
			s.x = 0
			s.down()
		case r == 0x1b:
			i = s.sequence(text, i)
		case r < 0x20:
			s.t.Errorf("control character %q", r)
		default:
			s.put(r)
		}
	}
	return len(data), nil
}

func (s *screen) down() {
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, nil)
	}
}

func (s *screen) put(r rune) {
	if s.x == s.width {
		s.x = 0
		s.down()
	}
	row := s.rows[s.y]
	for len(row) <= s.x {
		row = append(row, ' ')
	}
	row[s.x] = r
	s.rows[s.y] = row
	s.x++
}

// sequence obeys ESC [ n X and returns where it ends.
func (s *screen) sequence(text []rune, i int) int {
	end := i + 2
	for end < len(text) && (text[end] < '@' || text[end] > '~') {
		end++
	}
	n, _ := strconv.Atoi(string(text[i+2 : end]))
	switch text[end] {
	case 'A':
		s.y -= n
		if top := max(0, len(s.rows)-s.height); s.y < top {
			s.t.Errorf("the cursor went above the screen")
			s.y = top
		}
	case 'J':
		s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
		s.rows = s.rows[:s.y+1]
	case 'K':
		if n == 2 {
			s.rows[s.y] = nil
			break
		}
		s.rows[s.y] = s.rows[s.y][:min(s.x, len(s.rows[s.y]))]
	case 'm':
	default:
		s.t.Errorf("sequence %q", string(text[i:end+1]))
	}
	return end
}

func (s *screen) String() string {
	var b strings.Builder
	for _, row := range s.rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

// region counts the lines from the header on.
func (s *screen) region() int {
	for i, row := range s.rows {
		if strings.HasPrefix(string(row), "▸") {
			return len(s.rows) - i
		}
	}
	return 0
}

func newStage(t testing.TB, width, height int) (*studio, *screen) {
	s, scr := newStudio(EventOptions{}, true), newScreen(t, width, height)
	streams := Streams{Out: &s.out, Err: scr, ErrTTY: true, Width: width, Height: height}.filtered("deployer")
	s.Events = newEvents(streams, EventOptions{Timeout: 5 * time.Minute, Env: noEnv}, func() time.Time { return s.clock })
	return s, scr
}

func TestTerminal(t *testing.T) {
	s, scr := newStage(t, 110, 24)
	s.play(t)
	p := pull()
	s.saw(track.ProblemSeen, track.Status{ID: webID(), State: track.Progressing, Total: 3, Problem: &p, Rollout: &track.Rollout{Wanted: 3, OldServing: 3}})
	s.after(9 * time.Second)
	golden(t, "terminal-during.txt.golden", []byte(scr.String()))
	err := failedError()
	s.saw(track.StatusChanged, track.Status{ID: webID(), State: track.Failed, Total: 3, Problem: &p})
	s.Observe(deploy.Ended{Operation: s.tally.op, Err: err, Took: 12 * time.Second})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "terminal-after.txt.golden", []byte(scr.String()))
	if scr.region() != 0 {
		t.Errorf("the region is still there:\n%s", scr)
	}
}

// TestTerminalSizes holds that the region stays within half of the screen and
// never wraps, whatever the size, and that nothing is left of it.
func TestTerminalSizes(t *testing.T) {
	for _, size := range [][2]int{{20, 4}, {40, 6}, {80, 24}, {200, 60}} {
		s, scr := newStage(t, size[0], size[1])
		op := &deploy.Operation{Verb: deploy.Upgrade, Release: "web-with-a-rather-long-name", Namespace: "production", Next: record(7, "deployed"), Plan: &apply.Plan{Waves: waves([][]apply.Change{{}})}}
		var ids []kube.ID
		for i := range 50 {
			ids = append(ids, id("apps", "Deployment", fmt.Sprintf("worker-%02d-with-a-long-name-日本語", i)))
			op.Plan.Waves[0].Changes = append(op.Plan.Waves[0].Changes, apply.Change{ID: ids[i], Action: apply.Update})
		}
		s.Observe(deploy.Began{Operation: op})
		s.Observe(deploy.StepBegan{Step: deploy.Step{Name: "wait", Objects: 50}})
		p := pull()
		for i, name := range ids {
			status := track.Status{ID: name, State: track.Progressing, Message: "0 of 3 pods ready", Total: 3}
			if i%7 == 0 {
				status.Problem = &p
			}
			s.saw(track.StatusChanged, status)
			s.after(tickEvery)
			if n := scr.region(); n > max(2, min(size[1]/2, maxRegion)) {
				t.Fatalf("%v: the region has %d lines:\n%s", size, n, scr)
			}
		}
		for _, name := range ids {
			s.saw(track.StatusChanged, track.Status{ID: name, State: track.Ready, Done: 3, Total: 3})
			s.after(tickEvery)
		}
		s.Observe(deploy.Ended{Operation: op, Took: time.Minute})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if scr.region() != 0 {
			t.Errorf("%v: the region is still there:\n%s", size, scr)
		}
	}
}

// TestTerminalLive runs the real painter and many goroutines, for the race detector.
func TestTerminalLive(t *testing.T) {
	scr := newScreen(t, 80, 24)
	e := NewEvents(Streams{Err: scr, Out: scr, ErrTTY: true, Width: 80, Height: 24}.filtered("deployer"), EventOptions{Env: noEnv})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			e.Warn(fmt.Sprintf("warning %d", i))
		}
	}()
	e.Observe(deploy.Began{Operation: upgrade(t)})
	<-done
	e.Observe(deploy.Ended{})
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e.Warn("after the end")
}
