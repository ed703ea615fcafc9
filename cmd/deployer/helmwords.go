package main

import (
	"errors"
	"fmt"
	"strings"

	"deployer/internal/kube"
	"deployer/release"
)

// reworded is an error with another first line.
type reworded struct {
	error
	text string
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.error }

// inHelmsWords puts an error into the words that scripts look for. Those of a
// cluster that can't be reached come first under both names; those of a release
// that isn't there are Helm's alone under the name helm.
func (e *env) inHelmsWords(err error) error {
	var unreachable *kube.UnreachableError
	var missing *release.NotFoundError
	switch {
	case errors.As(err, &unreachable):
		return &reworded{err, unreachableFirst(err.Error())}
	case e.dropIn && errors.As(err, &missing):
		return &reworded{err, e.notFound(missing)}
	}
	return err
}

const clusterUnreachable = "Kubernetes cluster unreachable: "

// unreachableFirst moves what Helm begins with to the beginning. It says so of an
// upgrade without more; of an install after its own words.
// (helm.sh/helm/v3/pkg/kube/client.go, IsReachable, and cmd/helm/install.go)
func unreachableFirst(text string) string {
	before, after, found := strings.Cut(text, clusterUnreachable)
	if !found {
		return text
	}
	words := ""
	if rest, ok := strings.CutPrefix(before, installFailed+": "); ok {
		words, before = installFailed+": ", rest
	}
	return words + clusterUnreachable + strings.TrimPrefix(before, upgradeFailed+": ") + after
}

// notFound is what Helm says of a release, or of one revision.
// (helm.sh/helm/v3/pkg/action/uninstall.go and rollback.go)
func (e *env) notFound(missing *release.NotFoundError) string {
	switch {
	case e.command == "uninstall":
		return fmt.Sprintf("uninstall: Release not loaded: %s: release: not found", missing.Name)
	case e.command == "rollback" && missing.Revision > 0:
		return fmt.Sprintf("release has no %d version", missing.Revision)
	}
	return "release: not found"
}

// helmLine is the line with Helm's words for a failure that a report has told
// at length already: scripts look for it. It is empty for other errors.
func (e *env) helmLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if e.dropIn || strings.HasPrefix(line, upgradeFailed) || strings.HasPrefix(line, installFailed) {
		return strings.TrimSuffix(line, ":")
	}
	return ""
}
