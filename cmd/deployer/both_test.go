package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"

	"deployer/internal/kubetest"
)

// A side is one of the two programs that both compares, with a namespace and
// with files of its own.
type side struct {
	name    string // helm or ours
	program string
}

// runBoth is the command both of a script. The real helm 3 and ours under the
// name helm are given the same command line, and have to answer the same:
//
//	both ARGS...            both succeed
//	both ! PATTERN ARGS...  both fail, and the errors of both match PATTERN
//
// Their standard output has to be the same but for times, names that are made
// from them, and the word on server-side apply that ours has as Helm 4 does.
// {dir} in an argument is a directory of each; what they write there has to be
// the same too. Ours is left in stdout and stderr for the script to look at.
func runBoth(ts *testscript.TestScript, neg bool, args []string) {
	pattern := ""
	if len(args) > 2 && args[0] == "!" {
		pattern, args = args[1], args[2:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: both [! PATTERN] ARGS...")
	}
	sides := []side{{"helm", ts.Getenv("HELM3")}, {"ours", "helm"}}
	written := strings.Contains(strings.Join(args, " "), "{dir}")
	for _, s := range sides {
		if written {
			ts.Check(os.MkdirAll(s.dir(ts), 0o755))
		}
	}
	var answers, failures [2]string
	for i, s := range sides {
		err := s.run(ts, args)
		if failed := err != nil; failed != (pattern != "") {
			ts.Fatalf("%s %s: %v", s.name, strings.Join(args, " "), err)
		}
		answers[i], failures[i] = s.plain(ts, ts.ReadFile("stdout")), ts.ReadFile("stderr")
		if pattern != "" && !regexp.MustCompile("(?m)"+pattern).MatchString(failures[i]) {
			ts.Fatalf("%s %s: the error doesn't match %q:\n%s", s.name, strings.Join(args, " "), pattern, failures[i])
		}
	}
	if answers[0] != answers[1] {
		ts.Fatalf("helm %s\n%s", strings.Join(args, " "), diff.Diff("helm", []byte(answers[0]), "ours", []byte(answers[1])))
	}
	if written {
		compareTrees(ts, sides[0].dir(ts), sides[1].dir(ts))
	}
}

// runBothOnCharts is the command charts of a script: both, with each of the
// public charts in the place of {chart}.
func runBothOnCharts(ts *testscript.TestScript, neg bool, args []string) {
	charts, err := filepath.Glob(filepath.Join(ts.Getenv("CHARTS"), "*", "Chart.yaml"))
	ts.Check(err)
	if neg || len(args) == 0 || len(charts) == 0 {
		ts.Fatalf("usage: charts ARGS..., with charts in $CHARTS")
	}
	for _, chart := range charts {
		mine := make([]string, len(args))
		for i, a := range args {
			mine[i] = strings.ReplaceAll(a, "{chart}", filepath.Dir(chart))
		}
		runBoth(ts, false, mine)
	}
}

func (s side) dir(ts *testscript.TestScript) string { return ts.MkAbs(s.name + ".dir") }

// run runs the program with the files and the namespace of its side.
func (s side) run(ts *testscript.TestScript, args []string) error {
	home := filepath.Join(ts.Getenv("HOME"), s.name)
	saved := map[string]string{}
	for name, value := range map[string]string{
		"HELM_CACHE_HOME": home + "/cache", "HELM_CONFIG_HOME": home + "/config", "HELM_DATA_HOME": home + "/data",
		"KUBECONFIG": ts.Getenv("KUBECONFIG_" + s.name), // of twins; none without
	} {
		if value == "" {
			continue
		}
		saved[name] = ts.Getenv(name)
		ts.Setenv(name, value)
	}
	mine := make([]string, len(args))
	for i, a := range args {
		mine[i] = strings.ReplaceAll(a, "{dir}", s.name+".dir")
	}
	err := ts.Exec(s.program, mine...)
	for name, value := range saved {
		ts.Setenv(name, value)
	}
	return err
}

// passing are parts of an answer that no two runs have the same.
var passing = []struct{ pattern, instead string }{
	{`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*( ?Z| ?[+-]\d\d:?\d\d)?( UTC)?`, "TIME"},
	{`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}`, "TIME"},
	{`\b([a-z]+)-\d{10}\b`, "$1-GENERATED"},
	{`,"apply_method":"ssa"|(?m)^apply_method: ssa\n|,"applyMethod":"ssa"|(?m)^applyMethod: ssa\n`, ""},
	{`-test-[a-z0-9]{5}\b`, "-test-RANDOM"}, // in podinfo
	{`(?m)^( *(redis-password|checksum/secret): ).*`, "$1"},
	{` +([\t\n])`, "$1"}, // columns are as wide as names of namespaces
}

// plain takes out of an answer what has to differ.
func (s side) plain(ts *testscript.TestScript, answer string) string {
	for from, to := range map[string]string{
		ts.Getenv("NAMESPACE_" + s.name): "NAMESPACE", s.name + ".dir": "DIR", filepath.Join(ts.Getenv("HOME"), s.name): "HOME",
	} {
		if from != "" {
			answer = strings.ReplaceAll(answer, from, to)
		}
	}
	for _, p := range passing {
		answer = regexp.MustCompile(p.pattern).ReplaceAllString(answer, p.instead)
	}
	return answer
}

// compareTrees compares the files of two directories; of archives, which have
// times in them, the names alone.
func compareTrees(ts *testscript.TestScript, theirs, ours string) {
	want, have := treeOf(ts, theirs), treeOf(ts, ours)
	for path, text := range want {
		if _, ok := have[path]; !ok {
			ts.Fatalf("helm has written %s, ours hasn't", path)
		}
		if have[path] != text {
			ts.Fatalf("%s differs\n%s", path, diff.Diff("helm", []byte(text), "ours", []byte(have[path])))
		}
		delete(have, path)
	}
	for path := range have {
		ts.Fatalf("ours has written %s, helm hasn't", path)
	}
}

func treeOf(ts *testscript.TestScript, root string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if filepath.Ext(name) == ".tgz" || filepath.Ext(name) == ".prov" {
			text = nil
		}
		out[name] = side{}.plain(ts, string(text))
		return err
	})
	ts.Check(err)
	return out
}

// makeTwins is the command twins of a script: a namespace for each side of
// both, and a kubeconfig that has it.
func makeTwins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: twins")
	}
	t := ts.Value(testKey{}).(testing.TB)
	c := kubetest.Start(t)
	for _, name := range []string{"helm", "ours"} {
		namespace := c.Namespace(t)
		ts.Setenv("NAMESPACE_"+name, namespace)
		ts.Setenv("KUBECONFIG_"+name, c.Kubeconfig(t, namespace))
	}
}
