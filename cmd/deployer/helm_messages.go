package main

import (
	"errors"
	"fmt"
	"strings"

	"deployer/internal/kube"
	"deployer/release"
)

func (r *rewordedError) Error() string { return r.text }
func (r *rewordedError) Unwrap() error { return r.error }

// inHelmWords puts an error into the words that scripts look for. Those of a
// cluster that can't be reached come first under both names; those of a release
// that isn't there are Helm's alone under the name helm.
func (e *env) inHelmWords(err error) error {
	var unreachable *kube.UnreachableError
	var missing *release.NotFoundError
	switch {
	case errors.As(err, &unreachable):
		return &rewordedError{err, moveUnreachableFirst(err.Error())}
	case e.call.asHelm && errors.As(err, &missing):
		return &rewordedError{err, e.helmNotFound(missing)}
	}
	return err
}

const clusterUnreachable = "Kubernetes cluster unreachable: "

// moveUnreachableFirst moves Helm's words for an unreachable cluster to the start. In Helm
// they come first for an upgrade, and after INSTALLATION FAILED for an install.
// (helm.sh/helm/v3/pkg/kube/client.go, IsReachable, and cmd/helm/install.go)
func moveUnreachableFirst(text string) string {
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

// helmNotFound is what Helm says of a release, or of one revision.
// (helm.sh/helm/v3/pkg/action/uninstall.go and rollback.go)
func (e *env) helmNotFound(missing *release.NotFoundError) string {
	switch {
	case e.call.command == "uninstall":
		return fmt.Sprintf("uninstall: Release not loaded: %s: release: not found", missing.Name)
	case e.call.command == "rollback" && missing.Revision > 0:
		return fmt.Sprintf("release has no %d version", missing.Revision)
	}
	return "release: not found"
}

// helmErrorLine is the line with Helm's words for a failure that a report has told
// at length already: scripts look for it. It is empty for other errors.
func (e *env) helmErrorLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if e.call.asHelm || strings.HasPrefix(line, upgradeFailed) || strings.HasPrefix(line, installFailed) {
		return strings.TrimSuffix(line, ":")
	}
	return ""
}

// rewordedError is an error with another first line.
type rewordedError struct {
	error
	text string
}

// The words that Helm puts before the failure of these commands; scripts look
// for them.
const (
	upgradeFailed = "UPGRADE FAILED"
	installFailed = "INSTALLATION FAILED"
)

func withPrefix(words string, err error) error {
	if err == nil || words == "" {
		return err
	}
	return fmt.Errorf("%s: %w", words, err)
}
