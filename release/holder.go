package release

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Holder is the run that works on a release, or that worked on it when it died.
type Holder struct {
	Run                string    // identity of the run
	ProcessDescription string    // host, process and CI job, for people
	Operation          string    // what they do: "upgrade to revision 7"
	Since              time.Time // by the holder's own clock; for people only
	Process            Process
}

// String writes the holder for people.
func (h Holder) String() string {
	var b strings.Builder
	b.WriteString(cmp.Or(h.ProcessDescription, "an unknown client"))
	if h.Operation != "" {
		b.WriteString(" (" + h.Operation + ")")
	}
	if !h.Since.IsZero() {
		b.WriteString(" since " + h.Since.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// A Process identifies one process of one boot of one machine, so that other processes of
// the machine can see whether it is alive. The zero value identifies none.
type Process struct {
	Boot         string // kernel's boot identity; one for all containers of a machine
	PIDNamespace string // PID namespace, in which PID counts
	PID          int
	Start        string // when it started, in the kernel's ticks: PIDs are used again
	Host         string // machines restored from one snapshot share the boot's identity, but seldom the name
}

const processFormat = "%s %s %d %s %s"

// String is the inverse of parseProcess; empty for the zero value.
func (p Process) String() string {
	if p.Boot == "" {
		return ""
	}
	return fmt.Sprintf(processFormat, p.Boot, p.PIDNamespace, p.PID, p.Start, p.Host)
}

// parseProcess gives the zero value for anything String didn't write.
func parseProcess(text string) (p Process) {
	_, err := fmt.Sscanf(text, processFormat, &p.Boot, &p.PIDNamespace, &p.PID, &p.Start, &p.Host)
	if err != nil || p.PID <= 0 || p.String() != text {
		return Process{}
	}
	return p
}

// Who tells people which host, process and CI job the caller is.
func Who() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	who := fmt.Sprintf("%s, pid %d", host, os.Getpid())
	if job := jobURL(os.Getenv); job != "" {
		who += ", " + job
	}
	return who
}

// jobURL finds the address of the CI job we run in; empty outside of any.
func jobURL(env func(string) string) string {
	// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
	// (Gitea and Forgejo set the same)
	if server, repo, run := env("GITHUB_SERVER_URL"), env("GITHUB_REPOSITORY"), env("GITHUB_RUN_ID"); server != "" && repo != "" && run != "" {
		return server + "/" + repo + "/actions/runs/" + run
	}
	// https://learn.microsoft.com/azure/devops/pipelines/build/variables
	if server, project, id := env("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI"), env("SYSTEM_TEAMPROJECT"), env("BUILD_BUILDID"); server != "" && project != "" && id != "" {
		return strings.TrimSuffix(server, "/") + "/" + project + "/_build/results?buildId=" + id
	}
	// https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets
	if origin, build := env("BITBUCKET_GIT_HTTP_ORIGIN"), env("BITBUCKET_BUILD_NUMBER"); origin != "" && build != "" {
		return origin + "/pipelines/results/" + build
	}
	for _, name := range []string{
		"CI_JOB_URL",             // GitLab
		"BUILDKITE_BUILD_URL",    // Buildkite
		"CIRCLE_BUILD_URL",       // CircleCI
		"TRAVIS_BUILD_WEB_URL",   // Travis
		"DRONE_BUILD_LINK",       // Drone
		"CI_PIPELINE_URL",        // Woodpecker
		"SEMAPHORE_WORKFLOW_URL", // Semaphore
		"BUILD_URL",              // Jenkins, TeamCity
		"CODEBUILD_BUILD_URL",    // AWS CodeBuild
		"DEPLOYER_JOB_URL",       // whatever else
	} {
		if url := env(name); url != "" {
			return url
		}
	}
	return ""
}
