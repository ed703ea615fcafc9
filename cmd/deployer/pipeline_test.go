package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// A pipeline is what of our examples for GitHub Actions and GitLab CI a runner
// would carry out.
type pipeline struct {
	Env  map[string]string `json:"env"` // of GitHub
	Jobs map[string]struct {
		Steps []struct {
			Uses, Name, Run string
			Env             map[string]string
		}
	} `json:"jobs"`
	Variables map[string]string `json:"variables"` // of GitLab
}

// A gitlabJob is one of GitLab's, which are at the top of the file.
type gitlabJob struct {
	Script       []string
	AllowFailure struct {
		ExitCodes []int `json:"exit_codes"`
	} `json:"allow_failure"`
}

// runJob is the command job of a script: it runs a job of an example as its
// runner would. Variables that the script has set are left alone, and what the
// job would install goes to $WORK/tools.
func runJob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: job FILE NAME")
	}
	text, err := os.ReadFile(filepath.Join(ts.Getenv("TESTDATA"), "../../../examples", args[0]))
	ts.Check(err)
	var p pipeline
	ts.Check(yaml.Unmarshal(text, &p))
	if p.Jobs == nil {
		setMissing(ts, p.Variables)
		var jobs map[string]gitlabJob
		ts.Check(unmarshalJobs(text, args[1], &jobs))
		job := jobs[args[1]]
		runStep(ts, strings.Join(job.Script, "\n"), job.AllowFailure.ExitCodes)
		return
	}
	job, ok := p.Jobs[args[1]]
	if !ok {
		ts.Fatalf("%s has no job %s", args[0], args[1])
	}
	setMissing(ts, p.Env)
	for _, step := range job.Steps {
		if step.Uses == "" {
			setMissing(ts, step.Env)
			runStep(ts, step.Run, nil)
			takeEnv(ts)
		}
	}
}

// unmarshalJobs reads one of the entries of a GitLab file, which are of many
// kinds.
func unmarshalJobs(text []byte, name string, jobs *map[string]gitlabJob) error {
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return err
	}
	if all[name] == nil {
		return errors.New("there is no job " + name)
	}
	only, err := yaml.Marshal(map[string]any{name: all[name]})
	if err != nil {
		return err
	}
	return yaml.Unmarshal(only, jobs)
}

func setMissing(ts *testscript.TestScript, variables map[string]string) {
	for name, value := range variables {
		if ts.Getenv(name) == "" {
			ts.Setenv(name, expanded(ts, value))
		}
	}
}

// expression is one of GitHub's.
var expression = regexp.MustCompile(`\$\{\{ *(\S+) *\}\}`)

// expanded puts in what GitHub would: the script has github.sha in $github_sha.
func expanded(ts *testscript.TestScript, text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := strings.ReplaceAll(expression.FindStringSubmatch(e)[1], ".", "_")
		value := ts.Getenv(name)
		if value == "" {
			ts.Fatalf("the script has no $%s for %s", name, e)
		}
		return value
	})
}

func runStep(ts *testscript.TestScript, script string, allowed []int) {
	script = strings.ReplaceAll(expanded(ts, script), "/usr/local/bin/", ts.MkAbs("tools")+"/")
	err := ts.Exec("bash", "-eo", "pipefail", "-c", script)
	var failed *exec.ExitError
	if err != nil && !(errors.As(err, &failed) && slices.Contains(allowed, failed.ExitCode())) {
		ts.Fatalf("%s\n%v", script, err)
	}
}

// takeEnv sets for the next steps what a step has written to $GITHUB_ENV.
func takeEnv(ts *testscript.TestScript) {
	text, err := os.ReadFile(ts.Getenv("GITHUB_ENV"))
	ts.Check(err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		ts.Setenv(name, value)
	}
}

// readSecret is the command secret of a script: $NAME is what is in a file.
func readSecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: secret NAME FILE")
	}
	ts.Setenv(args[0], ts.ReadFile(args[1]))
}
