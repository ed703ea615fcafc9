package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/release"
	"deployer/track"
)

// rewordedError is an error with another first line.
type rewordedError struct {
	error
	text string
}

func (r *rewordedError) Error() string { return r.text }
func (r *rewordedError) Unwrap() error { return r.error }

// inHelmWords puts an error into the words that scripts look for. Those of a
// cluster that can't be reached come first under both names; those of a release
// that isn't there, and of a chart that can't be fetched, are Helm's alone under the name helm.
func (c call) inHelmWords(err error) error {
	if errors.As(err, new(*kube.UnreachableError)) {
		return &rewordedError{err, c.moveUnreachableFirst(err.Error())}
	}
	if missing, ok := errors.AsType[*release.NotFoundError](err); ok && c.asHelm {
		return &rewordedError{err, c.helmNotFound(missing)}
	}
	if remote, ok := errors.AsType[*chart.RemoteError](err); ok && c.asHelm {
		return &rewordedError{err, strings.Replace(err.Error(), remote.Error(), remote.AsHelm(), 1)}
	}
	return err
}

const clusterUnreachable = "Kubernetes cluster unreachable: "

// moveUnreachableFirst moves Helm's words for an unreachable cluster to the start. In Helm
// they come after UPGRADE FAILED or INSTALLATION FAILED, but first for upgrade --install,
// which looks for the release before it begins.
// (helm.sh/helm/v3/pkg/kube/client.go, IsReachable, and cmd/helm/upgrade.go)
func (c call) moveUnreachableFirst(text string) string {
	before, after, found := strings.Cut(text, clusterUnreachable)
	if !found {
		return text
	}
	words := ""
	for _, failed := range []string{upgradeFailed + ": ", installFailed + ": "} {
		if rest, ok := strings.CutPrefix(before, failed); ok {
			words, before = failed, rest
		}
	}
	if slices.ContainsFunc(c.flags, func(given givenFlag) bool { return given.String() == "--install=true" }) {
		words = ""
	}
	return words + clusterUnreachable + before + after
}

// helmNotFound is what Helm says of a release, or of one revision.
// (helm.sh/helm/v3/pkg/action/uninstall.go and rollback.go)
func (c call) helmNotFound(missing *release.NotFoundError) string {
	switch {
	case c.command() == "uninstall":
		return fmt.Sprintf("uninstall: Release not loaded: %s: release: not found", missing.Name)
	case c.command() == "rollback" && missing.Revision > 0:
		return fmt.Sprintf("release has no %d version", missing.Revision)
	}
	return "release: not found"
}

// helmErrorLine is the line with Helm's words for a failure that the report of the run has
// shown in full. Scripts look for it. It is empty for other errors.
func (c call) helmErrorLine(err error) string {
	line, rest, _ := strings.Cut(err.Error(), "\n")
	if first, _, _ := strings.Cut(rest, "\n"); strings.HasSuffix(line, ":") { // of a list; its first item is why
		line = strings.TrimSuffix(line+" "+strings.TrimSpace(first), ": ")
	}
	switch {
	case c.asHelm:
		return helmHookWords(line, err)
	case strings.HasPrefix(line, upgradeFailed), strings.HasPrefix(line, installFailed):
		return line
	}
	return ""
}

// helmHookWords puts Helm's words for a failed hook, and for one or a wait that wasn't ready in time,
// before ours.
// (helm.sh/helm/v3/pkg/action/install.go, upgrade.go and hooks.go)
func helmHookWords(line string, err error) string {
	timedOut := "context deadline exceeded"
	if hook, ok := errors.AsType[*deploy.HookError](err); ok {
		timedOut = "timed out waiting for the condition"
		ours := fmt.Sprintf("%s hook %s failed", hook.Event, hook.Hook)
		switch hook.Event {
		case helmrelease.HookPreInstall, helmrelease.HookPostInstall:
			line = strings.Replace(line, ours, fmt.Sprintf("failed %s: %s", hook.Event, hook.Hook), 1)
		case helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade:
			line = strings.Replace(line, ours, fmt.Sprintf("%s hooks failed: %s", hook.Event, hook.Hook), 1)
		}
	}
	if late, ok := errors.AsType[*track.TimeoutError](err); ok && errors.Is(late, context.DeadlineExceeded) {
		ours, _, _ := strings.Cut(late.Error(), ":")
		line = strings.Replace(line, ours, timedOut+": "+ours, 1)
	}
	return line
}

// The words that Helm puts before the failure of these commands; scripts look
// for them.
const (
	upgradeFailed = "UPGRADE FAILED"
	installFailed = "INSTALLATION FAILED"
)

func withPrefix(words string, err error) error {
	if err == nil || words == "" || errors.Is(err, errUnconfirmed) {
		return err
	}
	return fmt.Errorf("%s: %w", words, err)
}

// A helmLogFilter receives the log of Helm's packages. It passes on lines that a user can act
// on as warnings, each once: a condition that isn't a bool, a link to a file outside the
// chart. Other lines say that values have another type than the chart's defaults; these are
// harmless and would show the values.
type helmLogFilter struct {
	warn  func(string)
	shown map[string]bool
}

var shownLogLines = lazyregexp.New(`^(?i:warning): ((?:Condition|Tag|PathValue|ImportValues|Dependenc|unresolved) ?.*)|^((?:found symbolic link|skipping loading invalid entry) .*)`)

// Write is called with one line at a time, and never twice at once.
func (h *helmLogFilter) Write(line []byte) (int, error) {
	if m := shownLogLines().FindSubmatch(line); m != nil {
		if text := string(m[1]) + string(m[2]); !h.shown[text] {
			h.shown[text] = true
			h.warn(text)
		}
	}
	return len(line), nil
}
