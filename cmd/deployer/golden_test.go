package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
)

// helmTestdata is the directory of what Helm's own tests of its commands use
// and expect, in the module cache; "" when it isn't there.
func helmTestdata(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3").Output()
	if err != nil {
		t.Fatalf("looking for Helm's module: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "cmd", "helm", "testdata")
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// copyTestdata is the command helmdata of a script: it copies Helm's testdata
// to here, since some commands write to it.
func copyTestdata(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: helmdata")
	}
	ts.Check(os.CopyFS(ts.MkAbs("testdata"), os.DirFS(ts.Getenv("HELM_TESTDATA"))))
}

// compareGolden is the command golden of a script. Ours, under the name helm,
// has to answer a command line of Helm's tests as its golden file says:
//
//	golden FILE ARGS...    succeeds, and standard output is the file
//	golden ! FILE ARGS...  fails, and Helm's error is in ours, after the same
//	                       first words
//	golden -differs REASON [!] FILE ARGS...
//	                       answers otherwise, and docs/helm-differences.md has
//	                       the words of the reason
func compareGolden(ts *testscript.TestScript, neg bool, args []string) {
	reason, fails := "", false
	if len(args) > 1 && args[0] == "-differs" {
		reason, args = args[1], args[2:]
	}
	if len(args) > 0 && args[0] == "!" {
		fails, args = true, args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: golden [-differs REASON] [!] FILE ARGS...")
	}
	err := ts.Exec("helm", args[1:]...)
	if failed := err != nil; failed != fails {
		ts.Fatalf("helm %s: %v", strings.Join(args[1:], " "), err)
	}
	want := ts.ReadFile(filepath.Join("testdata", "output", args[0]))
	unlike := differences(ts, want, fails)
	if reason == "" {
		if unlike != "" {
			ts.Fatalf("helm %s\n%s", strings.Join(args[1:], " "), unlike)
		}
		return
	}
	if unlike == "" {
		ts.Fatalf("helm %s is as in Helm: remove -differs", strings.Join(args[1:], " "))
	}
	docs, err := os.ReadFile(filepath.Join(ts.Getenv("TESTDATA"), "../../../docs/helm-differences.md"))
	ts.Check(err)
	if !strings.Contains(strings.Join(strings.Fields(string(docs)), " "), reason) {
		ts.Fatalf("docs/helm-differences.md doesn't say %q", reason)
	}
}

// helmError is the last part of a golden file of a failure: Helm's tests have
// both streams in one.
var helmError = regexp.MustCompile(`(?s)(?:^|\n)Error: ((?:INSTALLATION FAILED|UPGRADE FAILED): )?(.*)$`)

// differences tells how the last answer differs from a golden file.
func differences(ts *testscript.TestScript, want string, fails bool) string {
	out, told := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if line := strings.LastIndex(want, "Completion ended with directive"); line >= 0 {
		want = want[:line] // cobra writes it to standard error, for people
	}
	if m := helmError.FindStringSubmatchIndex(want); fails && m != nil {
		firstWords, message := "Error: ", strings.TrimSpace(want[m[4]:])
		if m[2] >= 0 {
			firstWords += want[m[2]:m[3]]
		}
		if !strings.HasPrefix(told, firstWords) || !strings.Contains(told, message) {
			return string(diff.Diff("golden", []byte(want), "ours", []byte(told)))
		}
		want = want[:m[0]]
	}
	return string(diff.Diff("golden", []byte(asReleased(ts, want)), "ours", []byte(asReleased(ts, out))))
}

// released are parts of an answer that the released helm has otherwise than
// the one of Helm's tests, whose version, commit and Kubernetes nobody sets,
// which uses the namespace default, and where some releases have no revision.
var released = []struct{ pattern, instead string }{
	{`(kube-version/(?:minor|version): ).*`, "$1"},
	{`v3\.22(\.0)?\b`, "VERSION"},
	{`GitCommit:.*`, ""},
	{`REVISION: 0`, "REVISION: 1"},
	{`"version":1,`, ""},
	{`\b(default|milano)\b`, "NAMESPACE"},
}

func asReleased(ts *testscript.TestScript, answer string) string {
	answer = side{name: "helm"}.plain(ts, side{name: "ours"}.plain(ts, answer))
	for _, r := range released {
		answer = regexp.MustCompile(r.pattern).ReplaceAllString(answer, r.instead)
	}
	return strings.TrimRight(answer, "\n")
}

// Every golden file of Helm's commands is compared with ours by a script.
func TestEveryGoldenOfHelm(t *testing.T) {
	dir := helmTestdata(t)
	if dir == "" {
		t.Skip("the module cache has no testdata of Helm's commands")
	}
	files, err := filepath.Glob(filepath.Join(dir, "output", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files in %s: %v", dir, err)
	}
	scripts := readScripts(t)
	for _, path := range files {
		name := filepath.Base(path)
		if !regexp.MustCompile(`(?m)^golden (-differs '.*' )?(! )?` + regexp.QuoteMeta(name) + ` `).MatchString(scripts) {
			t.Errorf("no script compares with Helm's %s", name)
		}
	}
}

func readScripts(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// writeRecords is the command records of a script: releases as Helm has
// recorded them, in the place of those of the same names.
//
//	records NAMESPACE FILE                      the releases of a JSON file
//	records NAMESPACE -mock NAME STATUS...      the release of Helm's tests, a
//	                                            revision for each status, from
//	                                            the one that STATUS:N names
//	records NAMESPACE -hookless NAME STATUS...  the same without its hook, which
//	                                            has no name
func writeRecords(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: records NAMESPACE FILE | records NAMESPACE -mock|-hookless NAME STATUS...")
	}
	var releases []*helmrelease.Release
	switch args[1] {
	case "-mock", "-hookless":
		releases = mockReleases(ts, args[2], args[3:])
	default:
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &releases))
	}
	t := ts.Value(testKey{}).(testing.TB)
	secrets := kubetest.Start(t).Client().CoreV1().Secrets(args[0])
	for _, r := range releases {
		ts.Check(secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm,name=" + r.Name}))
	}
	for _, r := range releases {
		r.Namespace = args[0]
		if args[1] == "-hookless" {
			r.Hooks = nil
		}
		_, err := secrets.Create(t.Context(), recordOf(ts, r), metav1.CreateOptions{})
		ts.Check(err)
	}
}

func mockReleases(ts *testscript.TestScript, name string, statuses []string) []*helmrelease.Release {
	var out []*helmrelease.Release
	revision := 1
	for _, status := range statuses {
		if word, first, ok := strings.Cut(status, ":"); ok {
			n, err := strconv.Atoi(first)
			ts.Check(err)
			status, revision = word, n
		}
		out = append(out, helmrelease.Mock(&helmrelease.MockReleaseOptions{
			Name: name, Version: revision, Status: helmrelease.Status(status),
		}))
		revision++
	}
	return out
}

// recordOf is the Secret in which Helm keeps a release.
// (helm.sh/helm/v3/pkg/storage/driver/secrets.go and util.go)
func recordOf(ts *testscript.TestScript, r *helmrelease.Release) *corev1.Secret {
	text, err := json.Marshal(r)
	ts.Check(err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	ts.Check(err)
	ts.Check(w.Close())
	version := strconv.Itoa(r.Version)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("sh.helm.release.v1.%s.v%s", r.Name, version),
			Labels: map[string]string{"owner": "helm", "name": r.Name, "version": version, "status": string(r.Info.Status)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}
