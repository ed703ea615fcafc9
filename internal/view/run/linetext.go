package run

import (
	"fmt"
	"strings"

	"deployer/apply"
	"deployer/internal/kube"
	"deployer/internal/view/textfmt"
	"deployer/track"
	"deployer/track/class"
)

// actionsDone are the words for what was done.
var actionsDone = map[apply.Action]string{apply.Create: "created", apply.Update: "updated", apply.Recreate: "recreated", apply.Delete: "deleted", apply.GiveBack: "given back", apply.Keep: "kept", apply.Unchanged: "unchanged"}

func actionDone(action apply.Action, id kube.ID) string {
	return actionsDone[action] + " " + id.String()
}

func allObjectsText(n int) string {
	switch n {
	case 1:
		return "the object is"
	case 2:
		return "both objects are"
	}
	return fmt.Sprintf("all %d objects are", n)
}

// actionCounts counts what was done.
func (t *runState) actionCounts() string {
	var parts []string
	for _, action := range []apply.Action{apply.Create, apply.Update, apply.Recreate, apply.Delete, apply.GiveBack, apply.Keep, apply.Unchanged} {
		if n := t.actions[action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, actionsDone[action]))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

// problemText is what holds an object up, on one line.
func problemText(s track.Status) string {
	p := s.Finding
	if p == nil {
		return s.Message
	}
	var more []string
	if len(p.Pods) > 0 {
		more = append(more, "pod "+p.Pods[0]+textfmt.AndMore(max(p.PodCount, len(p.Pods))-1))
	}
	if len(p.Nodes) > 0 {
		more = append(more, "on "+p.Nodes[0])
	}
	if p.ExitCode != nil && !strings.Contains(p.Message, "exit code") {
		more = append(more, fmt.Sprintf("exit code %d", *p.ExitCode))
	}
	more = append(more, attempts(p.Class, p.Attempts, p.Limit))
	return textfmt.WithNotes(p.Text(), more...)
}

// attempts says how often something was tried, and how often makes it final:
// crashes of a container, or how often its probe had it killed, else pulls and starts.
func attempts(c class.Class, n, limit int) string {
	word := "attempt"
	switch c {
	case class.CrashLoop, class.OOMKilled:
		word = "crash"
	case class.LivenessProbeFailed:
		word = "kill"
	case class.ProgressDeadline, class.NoProgress, class.Timeout: // they count nothing
		return ""
	}
	switch {
	case n <= 0, n == 1 && limit <= 1:
		return ""
	case n <= limit:
		return fmt.Sprintf("%s %d of %d", word, n, limit)
	}
	return textfmt.Count(n, word)
}

// progressText is how much of an object there is of how much, empty where nothing is counted. What old pods add to the counts
// of a rollout isn't.
func progressText(s track.Status, what string) string {
	switch r := s.Rollout; {
	case r != nil && r.Old > 0 && r.Desired > 0:
		return fmt.Sprintf("%d/%d new", min(max(r.NewReady, r.Available-r.Old), r.Desired), r.Desired)
	case s.Total > 0:
		return strings.TrimSuffix(fmt.Sprintf("%d/%d %s", s.Done, s.Total, what), " ")
	}
	return ""
}

func reasonOf(s track.Status) string {
	if p := s.Finding; p != nil && p.Title != "" {
		return p.Title // the rest was shown when it appeared
	}
	return problemText(s)
}
