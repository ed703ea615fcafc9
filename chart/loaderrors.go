package chart

import (
	"crypto/sha256"
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

var (
	repoUpdateAdvice = lazyregexp.New(`\.? \(try 'helm repo update'\)`)            // the hint says it
	registryCall     = lazyregexp.New(`failed to perform "[A-Za-z]+" on [a-z]+: `) // a function of the library
	noIndexOf        = lazyregexp.New(`no cached repository for helm-manager-([0-9a-f]+) found.*`)
	noRepository     = lazyregexp.New(`non-absolute URLs should be in form of repo_name/path_to_chart, got: (\S+)`)
	notInIndex       = lazyregexp.New(`chart "([^"]*)" (?:version|matching) ?(.*) not found in (\S+) index.*`)
	noProtocol       = lazyregexp.New(`could not find protocol handler for: \S*`)
	noDirectory      = lazyregexp.New(`could not find (\S+): stat .*: no such file or directory`)
	unknownAlias     = lazyregexp.New(`(?s)no repository definition for (.+?)\. Please add .*`)
)

// plainReason is why a chart wasn't fetched, without words that only the libraries' authors understand.
func plainReason(err error) string {
	reason := registryCall().ReplaceAllString(repoUpdateAdvice().ReplaceAllString(err.Error(), ""), "")
	reason = noRepository().ReplaceAllString(reason, "there is no file or directory $1, and it names no repository")
	reason = noProtocol().ReplaceAllString(reason, "the repository's URL doesn't begin with https://, http:// or oci://")
	reason = noDirectory().ReplaceAllString(reason, "there is no directory $1")
	reason = unknownAlias().ReplaceAllString(reason, "Chart.yaml has the repository $1, which is neither a URL nor the name of a known one")
	return notInIndex().ReplaceAllStringFunc(reason, func(text string) string {
		m := notInIndex().FindStringSubmatch(text)
		if m[2] != "" {
			m[1] += " " + m[2]
		}
		return fmt.Sprintf("chart %s not found in the index of repository %s", m[1], m[3])
	})
}

// withoutTLS reports whether a server was asked by HTTPS and talks HTTP.
func withoutTLS(err error) bool {
	text := err.Error()
	return strings.Contains(text, "first record does not look like a TLS handshake") || strings.Contains(text, "server gave HTTP response to HTTPS client")
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("fetching chart %s: %s", e.Ref, plainReason(e.Err))
}

// AsHelm is the error in the words of Helm's libraries.
func (e *RemoteError) AsHelm() string { return fmt.Sprintf("fetching chart %s: %s", e.Ref, e.Err) }

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

// A DependencyError says that the dependencies of a chart could not be fetched.
type DependencyError struct {
	Doing string // updating or building
	Chart string // its directory
	Err   error
	urls  []string // of the repositories
}

func (e *DependencyError) Error() string {
	reason := plainReason(e.Err)
	if m := noIndexOf().FindStringSubmatch(reason); m != nil { // Helm names the index by a digest of its URL
		for _, url := range e.urls {
			if fmt.Sprintf("%x", sha256.Sum256([]byte(url))) == m[1] {
				reason = "the index of " + url + " could not be fetched"
			}
		}
	}
	return fmt.Sprintf("%s the dependencies of chart %s: %s", e.Doing, e.Chart, reason)
}

func (e *DependencyError) Unwrap() error { return e.Err }

// Hint says what to do about it; empty when nothing better is known.
func (e *DependencyError) Hint() string {
	switch {
	case withoutTLS(e.Err):
		return plainHTTPHint
	case noIndexOf().MatchString(e.Err.Error()):
		return "check the repository in Chart.yaml, and whether this machine reaches it"
	case unknownAlias().MatchString(e.Err.Error()):
		return "write its URL into Chart.yaml, or make the name known (" + program.Name + " repo add NAME URL) and write it as @NAME"
	}
	return ""
}

const plainHTTPHint = "the server talks HTTP: use --plain-http if that is meant"

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
