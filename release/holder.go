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
	process            process
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

// jobURLs are the addresses of CI jobs, by the variables of their systems. The first one counts whose variables are all set.
var jobURLs = []string{
	// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
	// (Gitea and Forgejo set the same)
	"$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID",
	// https://learn.microsoft.com/azure/devops/pipelines/build/variables
	"$SYSTEM_TEAMFOUNDATIONCOLLECTIONURI/$SYSTEM_TEAMPROJECT/_build/results?buildId=$BUILD_BUILDID",
	// https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets
	"$BITBUCKET_GIT_HTTP_ORIGIN/pipelines/results/$BITBUCKET_BUILD_NUMBER",
	"$CI_JOB_URL",             // GitLab
	"$BUILDKITE_BUILD_URL",    // Buildkite
	"$CIRCLE_BUILD_URL",       // CircleCI
	"$TRAVIS_BUILD_WEB_URL",   // Travis
	"$DRONE_BUILD_LINK",       // Drone
	"$CI_PIPELINE_URL",        // Woodpecker
	"$SEMAPHORE_WORKFLOW_URL", // Semaphore
	"$BUILD_URL",              // Jenkins, TeamCity
	"$CODEBUILD_BUILD_URL",    // AWS CodeBuild
	"$DEPLOYER_JOB_URL",       // whatever else
}

// jobURL finds the address of the CI job we run in; empty outside of any.
func jobURL(env func(string) string) string {
	for _, form := range jobURLs {
		isSet := true
		url := os.Expand(form, func(name string) string {
			value := env(name)
			isSet = isSet && value != ""
			if form != "$"+name {
				value = strings.TrimSuffix(value, "/") // Azure's ends with one
			}
			return value
		})
		if isSet {
			return url
		}
	}
	return ""
}
