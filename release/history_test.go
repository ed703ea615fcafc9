package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	deployed    = helmrelease.StatusDeployed
	superseded  = helmrelease.StatusSuperseded
	failed      = helmrelease.StatusFailed
	pending     = helmrelease.StatusPendingUpgrade
	uninstalled = helmrelease.StatusUninstalled
)

// historyOf has revisions 1.. of these statuses; records of deployer, in memory.
func historyOf(statuses ...helmrelease.Status) *History {
	h := &History{Namespace: "ns", Name: "web", loaded: map[int]*Record{}}
	for i, status := range statuses {
		rec := sample("web", i+1, status)
		rec.Journal = &Journal{RunInfo: RunInfo{Run: "r"}}
		h.Revisions = append(h.Revisions, Summary{Name: "web", Revision: i + 1, Status: status, Run: "r"})
		h.loaded[i+1] = rec
	}
	return h
}

func revisionOf(rec *Record, err error) string {
	switch {
	case errors.As(err, new(*NotFoundError)):
		return "not found"
	case err != nil && strings.Contains(err.Error(), "has no successful revision"):
		return "no success"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(rec.Version)
}

func TestHistory(t *testing.T) {
	type statuses = []helmrelease.Status
	for _, c := range []struct {
		of           statuses
		find0, owned string
	}{
		{nil, "not found", "[]"},
		{statuses{deployed}, "no success", "[1]"},
		{statuses{superseded, deployed}, "1", "[2]"},
		{statuses{superseded, deployed, failed}, "2", "[2 3]"},
		{statuses{superseded, deployed, failed, pending}, "2", "[2 3 4]"},
		{statuses{deployed, failed, deployed}, "1", "[3]"},
		{statuses{failed}, "no success", "[1]"},
		{statuses{failed, failed}, "no success", "[1 2]"},
		{statuses{superseded, superseded}, "1", "[1 2]"},
		{statuses{superseded, uninstalled}, "1", "[1 2]"},
		{statuses{deployed, deployed}, "1", "[2]"}, // killed before the older was superseded
	} {
		h := historyOf(c.of...)
		if got := revisionOf(h.RollbackTarget(t.Context(), 0)); got != c.find0 {
			t.Errorf("%v: Find(0) = %s, want %s", c.of, got, c.find0)
		}
		owned, err := h.RecordsWithPossibleObjects(t.Context())
		got := []int{}
		for _, rec := range owned {
			got = append(got, rec.Version)
		}
		if fmt.Sprint(got) != c.owned || err != nil {
			t.Errorf("%v: Owned = %v, %v, want %s", c.of, got, err, c.owned)
		}
	}
}

// TestRollbackAfterAFailedUninstall goes back to what was to be uninstalled, and not to the revision before.
func TestRollbackAfterAFailedUninstall(t *testing.T) {
	h := historyOf(superseded, failed)
	h.Revisions[1].WasDeployed, h.loaded[2].Journal.WasDeployed = true, true
	if got := revisionOf(h.RollbackTarget(t.Context(), 0)); got != "2" {
		t.Errorf("RollbackTarget(0) = %s, want 2", got)
	}
}

func TestFindPassesOverFailuresThatHelmCallsSuperseded(t *testing.T) {
	h := historyOf(superseded, superseded, deployed)
	h.loaded[2].Info.Description = `Upgrade "web" failed: timed out`
	if got := revisionOf(h.RollbackTarget(t.Context(), 0)); got != "1" {
		t.Errorf("Find(0) = %s, want 1", got)
	}
	if got := revisionOf(h.RollbackTarget(t.Context(), 2)); got != "2" {
		t.Errorf("Find(2) = %s, want 2: who names a revision gets it", got)
	}
	if got := revisionOf(h.RollbackTarget(t.Context(), 9)); got != "not found" {
		t.Errorf("Find(9) = %s, want not found", got)
	}
}

func TestOwnedIsEverythingAfterAnotherTool(t *testing.T) {
	h := historyOf(superseded, deployed, failed)
	h.loaded[2].Journal = nil
	h.Revisions[1].Run = ""
	owned, err := h.RecordsWithPossibleObjects(context.Background())
	if len(owned) != 3 || err != nil {
		t.Errorf("Owned = %d records, %v, want all 3", len(owned), err)
	}
}

func TestPrunable(t *testing.T) {
	type statuses = []helmrelease.Status
	for _, c := range []struct {
		of   statuses
		keep int
		want int // how many of the oldest go
	}{
		{statuses{superseded, superseded, deployed}, 0, 0},
		{statuses{superseded, superseded, deployed}, 1, 2},
		{statuses{superseded, superseded, deployed}, 2, 1},
		{statuses{superseded, superseded, deployed}, 3, 0},
		{statuses{superseded, deployed, failed, failed}, 1, 1},
		{statuses{superseded, failed, deployed, failed, failed, failed}, 2, 2},
		{statuses{failed, failed, failed}, 1, 0},
		{statuses{superseded, superseded, failed}, 1, 1}, // a killed Helm left no deployed one
		{statuses{superseded, uninstalled, failed}, 1, 1},
	} {
		if got := revisionsToTrim(historyOf(c.of...).Revisions, c.keep); got != c.want {
			t.Errorf("revisionsToTrim(%v, %d) = %d, want %d", c.of, c.keep, got, c.want)
		}
	}
}

func TestOrphaned(t *testing.T) {
	part := func(revision, digest string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: revision + digest, Labels: map[string]string{"version": revision, labelDigest: digest}}}
	}
	used, also := strings.Repeat("ab", 16), strings.Repeat("cd", 16)
	heads := []Summary{{Revision: 2}, {Revision: 3, bundles: []bundleRef{{labelBody, used, 1}, {labelEntries, also, 1}}}}
	parts := []metav1.PartialObjectMetadata{part("1", "a"), part("2", "b"), part("3", "c"), part("3", used), part("3", also), part("4", "d"), part("", "e")}
	var got []string
	for _, p := range unreferencedParts(heads, parts, 3) {
		got = append(got, p.Name)
	}
	if want := "[1a 2b 3c]"; fmt.Sprint(got) != want {
		t.Errorf("orphaned = %v, want %s: no parts of heads, nor of revisions to come", got, want)
	}
}

func TestListOrderAndPage(t *testing.T) {
	at := func(name string, minutes int) Summary {
		return Summary{Name: name, Revision: 1, Updated: time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute)}
	}
	for _, c := range []struct {
		opts ListOptions
		want string
	}{
		{ListOptions{}, "a b c"},
		{ListOptions{Reverse: true}, "c b a"},
		{ListOptions{ByDate: true}, "b c a"},
		{ListOptions{ByDate: true, Reverse: true, Limit: 2}, "a c"},
		{ListOptions{Offset: 1, Limit: 1}, "b"},
		{ListOptions{Offset: 9}, ""},
		{ListOptions{Offset: -1, Limit: -1}, "a b c"},
	} {
		got := ""
		for _, s := range c.opts.page([]Summary{at("c", 2), at("a", 3), at("b", 1)}) {
			got += " " + s.Name
		}
		if got != "" {
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("page(%+v) = %q, want %q", c.opts, got, c.want)
		}
	}
}

func TestSummarizeRefusesForeignSecrets(t *testing.T) {
	for name, meta := range map[string]metav1.ObjectMeta{
		"another name":     {Name: "mine", Labels: map[string]string{"name": "web", "version": "1"}},
		"another release":  {Name: "sh.helm.release.v1.web.v1", Labels: map[string]string{"name": "api", "version": "1"}},
		"another revision": {Name: "sh.helm.release.v1.web.v1", Labels: map[string]string{"name": "web", "version": "2"}},
		"no version":       {Name: "sh.helm.release.v1.web.v1", Labels: map[string]string{"name": "web"}},
	} {
		_, err := summarize(&meta)
		if !errors.As(err, new(*CorruptError)) {
			t.Errorf("%s: summarize = %v, want a *CorruptError", name, err)
		}
	}
}

func TestJobURL(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"https://gh/o/r/actions/runs/7": {"GITHUB_SERVER_URL": "https://gh", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"},
		"https://gitlab/job/1":          {"CI_JOB_URL": "https://gitlab/job/1", "BUILD_URL": "x"},
		"https://jenkins/7":             {"BUILD_URL": "https://jenkins/7"},
		"https://dev.azure.com/o/p/_build/results?buildId=7": {
			"SYSTEM_TEAMFOUNDATIONCOLLECTIONURI": "https://dev.azure.com/o/", "SYSTEM_TEAMPROJECT": "p", "BUILD_BUILDID": "7",
		},
		"https://bitbucket.org/o/r/pipelines/results/7": {"BITBUCKET_GIT_HTTP_ORIGIN": "https://bitbucket.org/o/r", "BITBUCKET_BUILD_NUMBER": "7"},
		"https://kite/7": {"BUILDKITE_BUILD_URL": "https://kite/7"},
		"https://mine/7": {"DEPLOYER_JOB_URL": "https://mine/7"},
		"":               {"GITHUB_RUN_ID": "7"},
	} {
		if got := jobURL(func(key string) string { return env[key] }); got != want {
			t.Errorf("jobURL(%v) = %q, want %q", env, got, want)
		}
	}
}

// formerProcess is one that had our PID before us.
func formerProcess() process {
	words := strings.Split(string(thisProcess()), " ")
	if len(words) > 3 {
		words[3] = "1" // when it started
	}
	return process(strings.Join(words, " "))
}

func TestProcess(t *testing.T) {
	p := thisProcess()
	if p == "" {
		t.Skip("this system doesn't name its boots")
	}
	if p.isDead() {
		t.Errorf("%v is dead, but it's us", p)
	}
	if !formerProcess().isDead() {
		t.Errorf("%v lives, but our PID was given to us later", formerProcess())
	}
	reused := strings.Split(string(formerProcess()), " ")
	with := func(i int, word string) process {
		other := slices.Clone(reused)
		other[i] = word
		return process(strings.Join(other, " "))
	}
	for why, living := range map[string]process{
		"another boot": with(0, "another"), "another PID namespace": with(1, "pid:[1]"),
		"another host": with(4, "restored-from-the-same-snapshot"),
		"nothing":      "", "no PID": with(2, "c"), "a negative PID": with(2, "-1"), "PID 0": with(2, "0"), "four words": process(strings.Join(reused[:4], " ")),
		"six words": with(4, reused[4]+" x"),
	} {
		if living.isDead() {
			t.Errorf("%s: %q is dead, and nobody knows that", why, living)
		}
	}
}

// TestFailedRevisionsAreNotSuccessful: Helm 3 calls a failed revision superseded after a
// failed rollback. A user's description with the word "failed" makes no failure.
func TestFailedRevisionsAreNotSuccessful(t *testing.T) {
	for _, c := range []struct {
		status      helmrelease.Status
		description string
		want        bool
	}{
		{helmrelease.StatusDeployed, "Upgrade complete", true},
		{helmrelease.StatusSuperseded, "Upgrade complete", true},
		{helmrelease.StatusSuperseded, `Upgrade "x" failed: timed out`, false},
		{helmrelease.StatusSuperseded, `Release "x" failed: a hook failed`, false},
		{helmrelease.StatusSuperseded, "failed pre-install: no such image", false},
		{helmrelease.StatusSuperseded, "failed: interrupted in step apply; recovered by deployer on ci", false},
		{helmrelease.StatusSuperseded, "failed: interrupted, or given up; recovered by deployer on ci", false},
		{helmrelease.StatusSuperseded, "Uninstall failed: interrupted; recovered by deployer on ci", false},
		{helmrelease.StatusSuperseded, "Initial install underway", false}, // Helm's words for a pending revision
		{helmrelease.StatusSuperseded, "Preparing upgrade", false},
		{helmrelease.StatusSuperseded, "", true}, // a record of another tool
		{helmrelease.StatusSuperseded, "Preparing upgrades for the winter", true},
		{helmrelease.StatusSuperseded, "try again what has failed on Monday", true},
		{helmrelease.StatusDeployed, "failed over to the other region", true},
		{helmrelease.StatusFailed, "", false},
		{helmrelease.StatusPendingInstall, "", false},
		{helmrelease.StatusUninstalled, "", false},
	} {
		r := &Record{Release: helmrelease.Release{Info: &helmrelease.Info{Status: c.status, Description: c.description}}}
		if got := r.Succeeded(); got != c.want {
			t.Errorf("Succeeded of %s, %q: %v, want %v", c.status, c.description, got, c.want)
		}
	}
}
