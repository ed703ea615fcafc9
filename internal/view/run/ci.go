package run

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
)

// A ci writes the commands of a CI system's log. The zero value writes none. markTrusted lets
// them pass the filter.
type ci struct {
	github, gitlab bool
	stepSummary    string // file that GitHub shows with the job
	markTrusted    func(string) string
}

// ciOf finds the CI system by the variables that it sets.
// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
// https://docs.gitlab.com/ci/variables/predefined_variables/
func ciOf(env func(string) string, markTrusted func(string) string) ci {
	c := ci{github: env("GITHUB_ACTIONS") == "true", gitlab: env("GITLAB_CI") == "true", markTrusted: markTrusted}
	if c.github {
		c.stepSummary = env("GITHUB_STEP_SUMMARY")
	}
	return c
}

// begin opens a part of the log that can be folded.
// https://docs.gitlab.com/ci/jobs/job_logs/#custom-collapsible-sections
func (c ci) begin(name string, now time.Time) string {
	switch {
	case c.github:
		return c.markTrusted("::group::" + githubText(name) + "\n")
	case c.gitlab:
		return c.markTrusted(fmt.Sprintf("\x1b[0Ksection_start:%d:%s[collapsed=true]\r\x1b[0K%s\n", now.Unix(), sectionID(name), textfmt.CleanLine(name)))
	}
	return ""
}

func (c ci) end(name string, now time.Time) string {
	switch {
	case c.github:
		return c.markTrusted("::endgroup::\n")
	case c.gitlab:
		return c.markTrusted(fmt.Sprintf("\x1b[0Ksection_end:%d:%s\r\x1b[0K\n", now.Unix(), sectionID(name)))
	}
	return ""
}

func sectionID(name string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
}

// annotation marks an error where GitHub lists them. GitLab has no such command: it shows the end of the log, and the
// tests of a JUnit report.
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
func (c ci) annotation(title string, lines ...string) string {
	if !c.github {
		return ""
	}
	title = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubText(title))
	for i := range lines {
		lines[i] = githubText(lines[i])
	}
	return c.markTrusted("::error title=" + title + "::" + strings.Join(lines, "%0A") + "\n")
}

// AnnotateError is what marks lines of an error that no run has reported where the CI system lists errors; empty elsewhere.
func AnnotateError(s output.Streams, env func(string) string, title string, lines ...string) string {
	for i := range lines {
		lines[i] = s.WithCall(lines[i])
	}
	return ciOf(env, s.MarkTrusted).annotation(title, lines...)
}

func githubText(s string) string {
	s = output.Inline(s)
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// summary appends the result to the page that GitHub shows with the job.
func (c ci) summary(r Result) error {
	if c.stepSummary == "" {
		return nil
	}
	if err := appendTo(c.stepSummary, []byte(resultMarkdown(r))); err != nil {
		return &output.WriteError{What: "the job summary " + c.stepSummary, Err: output.SystemError(err)}
	}
	return nil
}
