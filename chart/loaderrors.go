package chart

import (
	"fmt"
	"strings"

	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// NotFoundError says that there is no chart where one was looked for.
type NotFoundError struct {
	Ref       string
	Directory bool // it is a directory, but has no Chart.yaml
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Ref == "":
		return "no chart was named"
	case e.Directory:
		return fmt.Sprintf("%s is not a chart: Chart.yaml file is missing", e.Ref)
	}
	return fmt.Sprintf("there is no chart: path %q not found", e.Ref) // Helm's words
}

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	return "name a chart directory, a .tgz file, a URL, repo/name (" + program.Name + " repo list) or oci://registry/name"
}

// RemoteError says that a chart could not be fetched.
type RemoteError struct {
	Ref  string
	Err  error
	hint string
}

var repoUpdateAdvice = lazyregexp.New(`\.? \(try 'helm repo update'\)`)

func (e *RemoteError) Error() string {
	reason := repoUpdateAdvice().ReplaceAllString(e.Err.Error(), "") // the hint says it
	return fmt.Sprintf("fetching chart %s: %s", e.Ref, reason)
}

func (e *RemoteError) Unwrap() error { return e.Err }

// Hint says what to do about it; empty when nothing better is known.
func (e *RemoteError) Hint() string { return e.hint }

// ArchiveMismatchError says that an archive is not the one that was asked for.
type ArchiveMismatchError struct {
	From      string // URL of the archive
	Field     string // digest, name or version
	Got, Want string // SHA-256 in hexadecimal digits, a name, a version or constraint
	By        string // what says Want, such as the index of a repository
}

func (e *ArchiveMismatchError) Error() string {
	return fmt.Sprintf("%s is not the chart that was asked for: its %s is %s, but %s says %s", e.From, e.Field, e.Got, e.By, e.Want)
}

// Hint says what to do about it.
func (e *ArchiveMismatchError) Hint() string {
	hint := "to use it anyway: --allow-chart-mismatch"
	if e.Field == "digest" {
		hint = "if the chart was published again: " + program.Name + " repo update; " + hint
	}
	return hint
}

// TypeError says that a chart is of a type that can't be deployed by itself.
type TypeError struct{ Chart, Type string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s charts are not installable: %s", e.Type, e.Chart)
}

// Hint says what to do about it.
func (e *TypeError) Hint() string {
	return "add it to the dependencies in Chart.yaml of an application chart"
}

// MissingDependenciesError says that a chart lacks dependencies which its
// Chart.yaml names.
type MissingDependenciesError struct {
	Chart     string
	Path      string
	Directory bool // the chart is a directory, so they can be fetched into it
	Names     []string
}

func (e *MissingDependenciesError) Error() string {
	return fmt.Sprintf("chart %s lacks dependencies: found in Chart.yaml, but missing in charts/ directory: %s",
		e.Chart, strings.Join(e.Names, ", "))
}

// Hint says what to do about it.
func (e *MissingDependenciesError) Hint() string {
	if e.Directory {
		return program.Name + " dependency build " + e.Path
	}
	return "package the chart again after: " + program.Name + " dependency build"
}
