package main

import (
	"cmp"
	"errors"
	stdflag "flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deployer/internal/collector"
	"deployer/internal/deployertest"
	"deployer/internal/kubetest"
)

var update = stdflag.Bool("update", false, "rewrite what tests compare with")

// TestMain makes the program a command of the scripts, under both its names;
// exec json reads JSON, see jsonMain.
func TestMain(m *testing.M) {
	collector.Start()
	kubetest.Parallel(8) // scripts mostly wait, for the cluster and for programs
	testscript.Main(m, map[string]func(){"deployer": main, "helm": main, "renamed-helm": main, "json": jsonMain})
}

// TestScripts runs testdata/script/*.txtar. Beside testscript's own commands a
// script has:
//
//	exits CODE COMMAND...   the command has to end with that exit code
//	until PATTERN COMMAND...
//	                        the command is repeated until its output matches,
//	                        however it ends
//	serve [-tls] NAME DIR [USER PASSWORD]
//	                        a web server for DIR; its URL is in $NAME
//	keys NAME [PASSPHRASE]  a PGP key, in secring.gpg and pubring.gpg
//	registry [-tls|-https] NAME [USER PASSWORD]
//	                        an OCI registry; its host and port are in $NAME.
//	                        With -tls both want the client certificate that is
//	                        in client.pem and client.key; ca.pem knows theirs,
//	                        and with -https too
//	both [! PATTERN] ARGS...
//	                        the real helm and ours answer the same; see runBoth
//	charts ARGS...          both, with each public chart as {chart}
//	twins                   a namespace for each side of both
//	account                 a user of the cluster with a token; see makeAccount
//	proxy NAME              a proxy in front of the cluster; see startProxy
//	golden FILE ARGS...     ours answers as Helm's golden file; see compareGolden
//	job FILE NAME           a job of one of our examples for CI; see runJob
//	component FILE STEP     a step of one of our examples that others include
//	forge NAME HEAD         as much of GitHub's and GitLab's API as these call
//	identity NAME           a key of age; see makeIdentity
//	helmdata                what Helm's tests of its commands use, in testdata
//	records NAMESPACE FILE  releases as Helm records them; see writeRecords
//
// and the conditions [helm3], with the real helm 3 as command helm3, [goldens],
// with Helm's testdata in the module cache, [charts], with public charts in
// $CHARTS, [mounts], with unshare(1) that may mount, and [cluster], where cluster sets
// KUBECONFIG to a fresh namespace, $NAMESPACE.
func TestScripts(t *testing.T) {
	t.Parallel()
	helm3, testdata, charts := builtHelm(t), helmTestdata(t), publicCharts(t)
	races := deployertest.RaceReports(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HELM_TESTDATA", testdata)
			e.Setenv("CHARTS", charts)
			name, value, _ := strings.Cut(races, "=")
			e.Setenv(name, value)
			return setUp(e, helm3)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "helm3":
				return helm3 != "", nil
			case "goldens":
				return testdata != "", nil
			case "mounts": // a directory of the system can be another one for a program
				return exec.Command("unshare", "-rm", "true").Run() == nil, nil
			case "charts":
				return charts != "", nil
			case "cluster":
				return hasCluster(), nil
			}
			return false, errors.New("unknown condition " + name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"until":     until,
			"serve":     serve,
			"registry":  serveRegistry,
			"keys":      makeKeys,
			"cluster":   useCluster,
			"account":   makeAccount,
			"proxy":     startProxy,
			"both":      runBoth,
			"charts":    runBothOnCharts,
			"twins":     makeTwins,
			"golden":    compareGolden,
			"helmdata":  copyTestdata,
			"job":       runJob,
			"component": runComponent,
			"forge":     startForge,
			"identity":  makeIdentity,
			"secret":    readSecret,
			"records":   writeRecords,
		},
	})
}

// builtHelm is the real helm if make helm3 has built it; tests run without.
func builtHelm(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/helm3/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil || testing.Short() {
		return ""
	}
	return path
}

// publicCharts is the directory of the public charts, "" when there is none.
func publicCharts(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(cmp.Or(os.Getenv("DEPLOYER_TEST_CHARTS"), "../../../shared/charts"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil || testing.Short() {
		return ""
	}
	return path
}

// setUp gives a script a home of its own and nothing of the user's environment.
func setUp(e *testscript.Env, helm3 string) error {
	home := filepath.Join(e.WorkDir, ".home")
	for name, value := range map[string]string{
		"HOME": home, "HELM_CACHE_HOME": filepath.Join(home, "cache"), "HELM_CONFIG_HOME": filepath.Join(home, "config"),
		"HELM_DATA_HOME": filepath.Join(home, "data"), "KUBECONFIG": filepath.Join(home, "none"), "DOCKER_CONFIG": home,
		"NO_COLOR": "1", "HELM3": helm3,
	} {
		e.Setenv(name, value)
	}
	e.Values[testKey{}] = e.T() // which is a testing.TB, says testscript
	testdata, err := filepath.Abs("testdata")
	e.Setenv("TESTDATA", testdata)
	return errors.Join(err, os.MkdirAll(home, 0o755))
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		code = failed.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
	}
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// patience is how long until repeats a command.
const patience = time.Minute

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	for began := time.Now(); time.Since(began) < patience; {
		err = ts.Exec(args[1], args[2:]...)
		if want.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
			return
		}
	}
	ts.Fatalf("%s: its output never matched %q; at last: %v", strings.Join(args[1:], " "), args[0], err)
}
