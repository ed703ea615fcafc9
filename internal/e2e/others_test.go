package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Others are in the namespace of a tale: an object of nobody and one of another
// release, which is nobody's business unless it is adopted, and a second person
// who uses deployer at the same time.

// foreign are the names of the ConfigMaps of others.
var foreign = []string{"strangers", "neighbours"}

// surround makes the objects of others.
func (s *tale) surround() {
	s.Helper()
	s.create("configmaps", "kubectl-create", "{apiVersion: v1, kind: ConfigMap, metadata: {name: strangers}, data: {key: theirs}}")
	s.create("configmaps", "helm", "{apiVersion: v1, kind: ConfigMap, metadata: {name: neighbours, labels: {app.kubernetes.io/managed-by: Helm},"+
		" annotations: {meta.helm.sh/release-name: neighbour, meta.helm.sh/release-namespace: "+s.ns+"}}, data: {key: theirs}}")
	s.others = map[string]other{}
	for _, name := range foreign {
		obj := s.must("configmaps", name)
		s.others[name] = other{obj.GetUID(), obj.GetResourceVersion(), fmt.Sprint(substance(obj)), managers(obj)}
	}
	s.lent, s.having = map[string]bool{}, map[int]string{}
}

// other is what an object of others was when it was last theirs.
type other struct {
	uid     types.UID
	version string // empty when it was adopted since, and given back
	content string
	owners  string
}

// untouched checks that what is of others is as it was. What was adopted by a
// revision that succeeded, and dropped again, is gone.
func (s *tale) untouched() {
	s.Helper()
	for _, name := range foreign {
		was, still := s.others[name]
		switch obj := s.get("configmaps", name); {
		case s.lent[name]:
		case still && obj == nil:
			s.Errorf("ConfigMap/%s of others is gone", name)
		case still && (obj.GetUID() != was.uid || was.version != "" && obj.GetResourceVersion() != was.version):
			s.Errorf("ConfigMap/%s of others was written: %v", name, obj.Object)
		case still && (fmt.Sprint(substance(obj)) != was.content || managers(obj) != was.owners):
			s.Errorf("ConfigMap/%s of others was\n%s\n%s\nand is\n%s\n%s", name, was.content, was.owners, substance(obj), managers(obj))
		case !still && obj != nil:
			s.Errorf("ConfigMap/%s was adopted, is not in the chart any more, and is still there: %v", name, obj.Object)
		}
	}
}

// adoptInVain takes over what is of others, with leave, and fails. Undone at once,
// it is given back by the time the run has ended; else by the next one that succeeds,
// whatever comes in between.
func (s *tale) adoptInVain() {
	s.Helper()
	name := foreign[s.IntN(len(foreign))]
	was, theirs := s.others[name]
	if !theirs || s.killed {
		return
	}
	was.version = ""
	s.others[name] = was
	failing := hookJob("fails", "post-upgrade", "before-hook-creation,hook-failed", true)
	args := append(s.chart(configMap(name, "adopted in vain"), failing), "--reset-values", "--adopt", "configmap/"+name)
	s.lent[name] = s.IntN(2) == 0
	if s.lent[name] {
		s.deployer(1, "upgrade", args...)
	} else {
		s.deployer(6, "upgrade", append(args, "--atomic")...)
	}
	for revision, status := range s.revisions(s.name) {
		if status == "failed" && s.having[revision] == "" {
			s.having[revision] = name // or it doesn't: it isn't gone back to, then
		}
	}
	s.untouched()
}

// goBack rolls back to a revision, also to one that failed, but not to one that has
// what was only lent: that makes it the release's.
func (s *tale) goBack() {
	revisions := slices.DeleteFunc(slices.Sorted(maps.Keys(s.revisions(s.name))), func(revision int) bool { return s.lent[s.having[revision]] })
	s.either(-1, "rollback", fmt.Sprint(revisions[s.IntN(len(revisions))]))
}

// claim has in the chart what is of others, without leave to adopt it.
func (s *tale) claim() {
	name := foreign[s.IntN(len(foreign))]
	if _, theirs := s.others[name]; !theirs || s.lent[name] {
		return
	}
	s.either(3, "upgrade", append(s.chart(configMap(name, "claimed")), "--reset-values")...)
	s.untouched()
}

// adopt takes over what is of others, with leave, and keeps it.
func (s *tale) adopt() {
	name := foreign[s.IntN(len(foreign))]
	if _, theirs := s.others[name]; !theirs || s.killed {
		return
	}
	s.deployer(0, "upgrade", append(s.chart(configMap(name, "adopted")), "--reset-values", "--adopt", "configmap/"+name)...)
	delete(s.others, name)
	delete(s.lent, name)
}

// twoAtOnce lets two people change the release at the same time. Each succeeds, or is
// told that the other one is at it; the one that waits decides anew.
func (s *tale) twoAtOnce() {
	runs := [][]string{
		append([]string{"upgrade", s.name, "--wait=false", "--reset-values"}, s.chart()...),
		append([]string{"upgrade", s.name, "--wait=false", "--reset-values", "--lock-timeout", "30s"}, s.chart()...),
	}
	if s.IntN(3) == 0 {
		runs[1] = []string{"rollback", s.name, "1", "--wait=false", "--lock-timeout", "30s"}
	}
	results := make([]result, len(runs))
	var group sync.WaitGroup
	for i, args := range runs {
		cmd, done := s.command(deployerBinary, args...)
		group.Go(func() { results[i] = done(cmd.Run()) })
	}
	group.Wait()
	won := 0
	for _, r := range results {
		s.Log(r)
		if r.code == 0 {
			won++
		} else if r.code != 5 && !(s.killed && r.code == 3) {
			s.Errorf("want exit code 0, or 5 because another run holds the release:\n%s", r)
		}
	}
	if won == 0 && !s.killed {
		s.Errorf("neither of two runs at once succeeded")
	}
	s.killed = s.killed && won == 0
}

// gapless checks the history: one revision after the other, and of those that
// are said to be deployed there is one, the last.
func (s *tale) gapless() {
	s.Helper()
	statuses := s.revisions(s.name)
	numbers := slices.Sorted(maps.Keys(statuses))
	var deployed []int
	for i, n := range numbers {
		if i > 0 && n != numbers[i-1]+1 {
			s.Errorf("revision %d follows %d", n, numbers[i-1])
		}
		if statuses[n] == "deployed" {
			deployed = append(deployed, n)
		}
	}
	if last := numbers[len(numbers)-1]; fmt.Sprint(deployed) != fmt.Sprint([]int{last}) {
		s.Errorf("revisions %v are deployed, want the last one: %v", deployed, statuses)
	}
}
