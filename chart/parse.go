package chart

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/chart/internal/yamltext"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// Parse splits a manifest into objects in their order, with lists flattened. It also reads
// the manifests of stored releases. Of duplicate keys the last one counts, as in Helm.
//
// The error has a *DocumentError for each document that can't be parsed.
func Parse(manifest string) ([]Manifest, error) {
	return parseDocuments(yamltext.SplitManifest(manifest, ""), nil)
}

// A Parser parses the manifests of several revisions. Documents that they have in common
// are decoded once and share their objects, and objects share equal parts, which must not be
// changed. Of an object itself and its metadata there is one. The zero value is ready to use.
// It isn't safe for concurrent use.
type Parser struct {
	decoded  map[[2]string][]Manifest
	interner *kube.Interner
}

// Parse is the function Parse, for one more manifest.
func (p *Parser) Parse(manifest string) ([]Manifest, error) {
	return parseDocuments(yamltext.SplitManifest(manifest, ""), p)
}

// maxInterned is the length of the documents whose parts are shared. Of longer ones, such as definitions,
// there are few, and looking for equal parts takes longer than decoding them.
const maxInterned = 16 << 10

// decode decodes a document unless that has been done.
func (p *Parser) decode(d yamltext.Document) ([]Manifest, error) {
	if p == nil {
		return decode(d)
	}
	if known, ok := p.decoded[keyOf(d)]; ok {
		return known, nil
	}
	out, err := decode(d)
	if len(d.Text) <= maxInterned {
		for _, m := range out {
			p.interner.Intern(m.Object)
		}
	}
	return out, err
}

// keyOf is what a Parser finds a document by.
func keyOf(d yamltext.Document) [2]string { return [2]string{d.Source, d.Text} }

// ParseHook returns the objects of a hook: one, unless its template wrote a list.
func ParseHook(hook *helmrelease.Hook) ([]Manifest, error) {
	return parseDocuments(yamltext.SplitManifest(hook.Manifest, hook.Path), nil)
}

// DocumentError says that a document can't be made into objects.
type DocumentError struct {
	Source string // the template; empty when not known
	Line   int    // of the manifest; 0 when not known
	Err    error
}

func (e *DocumentError) Error() string {
	where := e.Source
	if where == "" {
		where = "manifest"
	}
	if e.Line > 0 {
		where += fmt.Sprintf(" (line %d of the manifest)", e.Line)
	}
	return fmt.Sprintf("%s: %v", where, e.Err)
}

func (e *DocumentError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *DocumentError) Hint() string {
	return program.Name + " template --debug shows what the templates rendered"
}

// parseDocuments decodes documents in parallel and keeps their order. What p has decoded isn't decoded
// again, and p remembers the others; it may be nil.
func parseDocuments(documents []yamltext.Document, p *Parser) ([]Manifest, error) {
	if p != nil && p.decoded == nil {
		p.decoded, p.interner = map[[2]string][]Manifest{}, kube.NewInterner()
	}
	decoded := make([][]Manifest, len(documents))
	err := kube.ForEach(len(documents), parseWorkers(documents), func(i int) (err error) {
		decoded[i], err = p.decode(documents[i])
		return err
	})
	for i, manifests := range decoded {
		if p != nil && manifests != nil {
			p.decoded[keyOf(documents[i])] = manifests
		}
	}
	if err != nil {
		return nil, err
	}
	return slices.Concat(decoded...), nil
}

// perParseWorker is how many bytes are worth another goroutine.
const perParseWorker = 16 << 10

// parseWorkers is how many documents are decoded at once. One definition may be as long as hundreds of
// other objects.
func parseWorkers(documents []yamltext.Document) int {
	size := 0
	for _, d := range documents {
		size += len(d.Text)
	}
	return min(runtime.GOMAXPROCS(0), len(documents), size/perParseWorker+1)
}

var lineNumber = lazyregexp.New(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?`)

// shiftedYAMLError adds lines to the line number of a YAML error about rendered text.
func shiftedYAMLError(err error, lines int) error {
	return reworded(err, " of what it rendered", lines)
}

// reworded returns an error of YAML without prefixes and without values.
func reworded(err error, of string, lines int) error {
	text := yamltext.HideQuotes(err.Error())
	m := lineNumber().FindStringSubmatch(text)
	reason := strings.TrimPrefix(strings.TrimPrefix(text, m[0]), "json: ")
	if n, nerr := strconv.Atoi(m[1]); nerr == nil {
		return fmt.Errorf("line %d%s: %s", n+lines, of, reason)
	}
	return errors.New(reason)
}
