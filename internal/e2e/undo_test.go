package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A mishap is what happens to a run at one of its writes.
type mishap struct {
	name  string
	kills bool
	when  moment
	// fault is for the n-th call, c, where the run isn't killed.
	fault func(n int, c call) fault
}

var mishaps = []mishap{
	{name: "refused once", fault: func(n int, _ call) fault {
		return func(i int, _ call) int { return when(i == n, http.StatusForbidden) }
	}},
	{name: "refused from then on", fault: func(n int, c call) fault {
		return func(i int, other call) int { return when(i >= n && sameObject(c, other), http.StatusForbidden) }
	}},
	{name: "cut off and refused", fault: func(n int, c call) fault {
		return func(i int, other call) int {
			if i == n {
				return hangUp
			}
			return when(i > n && i < n+8 && sameObject(c, other), http.StatusForbidden)
		}
	}},
	{name: "killed before", kills: true, when: before},
	{name: "killed after", kills: true, when: after},
}

func when(is bool, code int) int {
	if is {
		return code
	}
	return 0
}

// sameObject reports whether a call is to change the object that another one was about.
func sameObject(a, b call) bool {
	p, _, _ := strings.Cut(a.path, "?")
	q, _, _ := strings.Cut(b.path, "?")
	return b.write() && a.method == b.method && p == q
}

// An adopter is a command that adopts strangers' objects and is to be undone when
// it fails: where a mishap comes to it, or by itself.
type adopter struct {
	setup [][]string
	args  []string
	next  [][]string // what gives all back where the undo could not, each for itself
	fails bool       // its chart fails when all is done, and what undoes that is struck too
}

var adopters = map[string]adopter{
	"install": {
		args: []string{"install", "x", "WANTING", "--atomic"},
		next: [][]string{{"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "OWN"}},
	},
	"upgrade": {
		setup: [][]string{{"install", "x", "OWN"}},
		args:  []string{"upgrade", "x", "WANTING", "--atomic"},
		next:  [][]string{{"rollback", "x", "1"}, {"upgrade", "x", "OWN"}, {"uninstall", "x"}},
	},
	"failing install": {
		args:  []string{"install", "x", "WANTING", "--atomic"},
		next:  [][]string{{"uninstall", "x", "--ignore-not-found"}, {"upgrade", "--install", "x", "OWN"}},
		fails: true,
	},
	"failing upgrade": {
		setup: [][]string{{"install", "x", "OWN"}},
		args:  []string{"upgrade", "x", "WANTING", "--atomic"},
		next:  [][]string{{"rollback", "x", "1"}, {"upgrade", "x", "OWN"}, {"uninstall", "x"}},
		fails: true,
	},
}

// TestUndoAtEveryCall lets install and upgrade adopt what others have made, and
// fail or die at each of their writes. Afterwards all of that is as it was, and
// what the run has created is gone but for what is protected: at once where the
// run was undone, after the next run otherwise. Without DEPLOYER_TEST_LONG a
// sample is run.
func TestUndoAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, a := range adopters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw := rand.New(rand.NewPCG(13, uint64(len(name))))
			for n := range countWrites(t, a) {
				for i, m := range mishaps {
					if os.Getenv(longEnv) == "" && draw.IntN(72) != 0 {
						continue
					}
					next := a.next[(n+i)%len(a.next)]
					t.Run(fmt.Sprintf("%d %s %s", n+1, m.name, next[0]), func(t *testing.T) {
						t.Parallel()
						a.strike(t, n+1, m, next)
					})
				}
			}
		})
	}
}

// countWrites runs the command undisturbed, and tells how often it writes.
func countWrites(t *testing.T, a adopter) int {
	t.Helper()
	s, p := a.world(t)
	p.arm(nil)
	s.exits(map[bool]int{true: 6}[a.fails], s.filled(a)...)
	writes := 0
	for _, c := range p.seen() {
		if c.write() {
			writes++
		}
	}
	return writes
}

// world has the strangers, and what is there before the command.
func (a adopter) world(t *testing.T) (*strangers, *proxy) {
	t.Helper()
	w := worldOf(t)
	s := newStrangers(w)
	p := w.proxied()
	for _, args := range a.setup {
		s.ok(s.own(args)...)
	}
	return s, p
}

// filled is the command line of the adopter, with its chart.
func (s *strangers) filled(a adopter) []string {
	more := []string{configMap("new", "1")}
	if a.fails {
		more = append(more, fails())
	}
	out := slices.Clone(a.args)
	out[slices.Index(out, "WANTING")] = s.wanting(more...)
	return s.taking(out...)
}

// own puts a chart without objects of strangers into a command line.
func (s *strangers) own(args []string) []string {
	out := slices.Clone(args)
	if i := slices.Index(out, "OWN"); i >= 0 {
		out[i] = s.chart(configMap("own", "0"))
	}
	return out
}

// strike lets a mishap come to the n-th write of the command.
func (a adopter) strike(t *testing.T, nth int, m mishap, next []string) {
	s, p := a.world(t)
	p.arm(nil)
	var r result
	if m.kills {
		r = s.struckAt(p, nth, m.when, s.filled(a)...)
	} else {
		p.failing(faultAt(nth, m))
		r = s.try(deployerBinary, s.filled(a)...)
		p.failing(nil)
	}
	calls := s.written(p)
	p.disarm()
	switch {
	case r.code == 0 || s.revisions("x")[len(a.setup)+1] == "deployed":
		s.there("configmaps", map[string]bool{"own": true, "new": true}) // it was nothing that matters
		return
	case r.code == 6:
		s.asBefore("after the undo", notWhollyGivenBack(r)...)
	default:
		if nth%2 == 0 && len(s.revisions("x")) > 0 {
			s.ok("recover", "x") // which changes no object, and nothing of what becomes of them
		}
		s.ok(s.own(next)...)
		s.asBefore("after the next run")
	}
	own := r.code == 6 && a.setup != nil || r.code != 6 && next[0] != "uninstall"
	s.there("configmaps", map[string]bool{"own": own, "new": false})
	if t.Failed() {
		t.Logf("%s\nwhat it wrote: %s", r, calls)
	}
}

// TestAdoptionKilledHalfway has a run that dies when the fields of a stranger's object are its own already and
// the annotations aren't, or when it gives the object back. The same run once more fails and is undone: what
// the object was before the first one counts.
func TestAdoptionKilledHalfway(t *testing.T) {
	t.Parallel()
	a := adopters["failing upgrade"]
	for name, nth := range map[string]int{"when it adopts": 1, "when it gives back": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := a.world(t)
			p.arm(nil)
			patches := 0
			killed := s.struck(p, fate{when: after, dies: true, at: func(i int, c call) bool {
				if !writes("PATCH", "/configmaps/cm")(i, c) {
					return false
				}
				patches++
				return patches == nth
			}}, syscall.SIGKILL, s.filled(a)...)
			p.disarm()
			again := s.exits(6, s.filled(a)...)
			s.asBefore("after the undo of the second run")
			s.there("configmaps", map[string]bool{"own": true, "new": false})
			if t.Failed() {
				t.Logf("%s\n%s", killed, again)
			}
		})
	}
}

// notWhollyGivenBack are the objects of which a run says that they don't have their former
// values, because the API server refused them twice: "persistentvolumeclaims/claim".
func notWhollyGivenBack(r result) []string {
	var out []string
	for _, m := range refusedValues.FindAllStringSubmatch(r.err, -1) {
		out = append(out, strings.ToLower(m[1])+"s/"+m[2])
	}
	return out
}

var refusedValues = regexp.MustCompile(`(\w+)/(?:\S+/)?(\S+): given back, but not completely`)

// faultAt is the mishap at the n-th write.
func faultAt(nth int, m mishap) fault {
	var struck fault
	writes := 0
	return func(i int, c call) int {
		if struck == nil && c.write() {
			if writes++; writes == nth {
				struck = m.fault(i, c)
			}
		}
		if struck == nil {
			return 0
		}
		return struck(i, c)
	}
}

// struckAt runs deployer until it is killed at its n-th write.
func (s *strangers) struckAt(p *proxy, nth int, when moment, args ...string) result {
	s.Helper()
	writes := 0
	return s.struck(p, fate{when: when, dies: true, at: func(_ int, c call) bool {
		if !c.write() {
			return false
		}
		writes++
		return writes == nth
	}}, syscall.SIGKILL, args...)
}
