package chart

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
	"deployer/internal/program"
)

// Parse splits a manifest into objects in their order, with lists flattened. It also reads
// the manifests of stored releases. Of duplicate keys the last one counts, as in Helm.
//
// The error has a *DocumentError for each document that can't be parsed.
func Parse(manifest string) ([]kube.Manifest, error) {
	return parseDocuments(splitManifest(manifest, ""), nil)
}

// A Parser parses the manifests of several revisions. Documents that they have in common
// are decoded once and share their objects, and objects share equal parts, which must not be
// changed. Of an object itself and its metadata there is one. The zero value is ready to use.
// It isn't safe for concurrent use.
type Parser struct {
	decoded  map[[2]string][]kube.Manifest
	interner *kube.Interner
}

// Parse is the function Parse, for one more manifest.
func (p *Parser) Parse(manifest string) ([]kube.Manifest, error) {
	return parseDocuments(splitManifest(manifest, ""), p)
}

// maxInterned is the length of the documents whose parts are shared. Of longer ones, such as definitions,
// there are few, and looking for equal parts takes longer than decoding them.
const maxInterned = 16 << 10

// decode decodes a document unless that has been done.
func (p *Parser) decode(d manifestDocument) ([]kube.Manifest, error) {
	if p == nil {
		return d.decode()
	}
	if known, ok := p.decoded[d.key()]; ok {
		return known, nil
	}
	out, err := d.decode()
	if len(d.text) <= maxInterned {
		for _, m := range out {
			p.interner.Intern(m.Object)
		}
	}
	return out, err
}

// ParseHook returns the objects of a hook: one, unless its template wrote a list.
func ParseHook(hook *helmrelease.Hook) ([]kube.Manifest, error) {
	return parseDocuments(splitManifest(hook.Manifest, hook.Path), nil)
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

// manifestDocument is one YAML document of a manifest, not yet read.
type manifestDocument struct {
	source      string
	text        string
	line        int // line of the manifest on which text begins, from 1
	linesBefore int // lines of text before the template's own output
}

// key is by what a Parser finds a document again.
func (d manifestDocument) key() [2]string { return [2]string{d.source, d.text} }

// splitManifest splits a manifest at its document separators: lines that begin with three
// dashes. Dashes inside a block scalar are indented and don't count. A document without a
// source comment belongs to the source comment before its separator, since CRD files often
// begin with a separator, or else to source.
func splitManifest(manifest, source string) []manifestDocument {
	var out []manifestDocument
	start, at, line := 0, 0, 0
	first, head := 1, 0
	inherited := source
	finish := func() {
		d := manifestDocument{source: inherited, text: manifest[start:at], line: first, linesBefore: head}
		if d.readSource() {
			out = append(out, d)
			inherited = source
		} else {
			inherited = d.source
		}
	}
	for text := range strings.Lines(manifest) {
		line++
		if isSeparator(text) {
			finish()
			start, first, head = at+len("---"), line, 1
		}
		at += len(text)
	}
	finish()
	return out
}

// isSeparator reports whether a line separates documents: --- begins one, and ... ends one.
func isSeparator(line string) bool {
	if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "...") {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// readSource finds the source comment at the head of a document and tells
// whether there is more in it than blank lines, comments and YAML directives.
func (d *manifestDocument) readSource() bool {
	const mark = "# Source: "
	lines, named := 0, false
	for line := range strings.Lines(d.text) {
		trimmed := strings.TrimSpace(line)
		lines++
		switch {
		case trimmed == "" || trimmed[0] == '%' && line[0] == '%':
		case trimmed[0] != '#':
			return true
		case !named && strings.HasPrefix(trimmed, mark):
			d.source, d.linesBefore, named = strings.TrimPrefix(trimmed, mark), lines, true
		}
	}
	return false
}

// RewriteDocuments replaces the text of each document of a manifest, which includes its
// source comment, and leaves separators and blank documents as they are.
func RewriteDocuments(manifest string, change func(text string) string) string {
	var out strings.Builder
	for _, d := range splitManifest(manifest, "") {
		at := strings.Index(manifest, d.text)
		out.WriteString(manifest[:at])
		manifest = manifest[at+len(d.text):]
		out.WriteString(change(d.text))
	}
	return out.String() + manifest
}

// parseDocuments decodes documents in parallel and keeps their order. What p has decoded isn't decoded
// again, and p remembers the others; it may be nil.
func parseDocuments(documents []manifestDocument, p *Parser) ([]kube.Manifest, error) {
	if p != nil && p.decoded == nil {
		p.decoded, p.interner = map[[2]string][]kube.Manifest{}, kube.NewInterner()
	}
	decoded := make([][]kube.Manifest, len(documents))
	err := kube.ForEach(len(documents), parseWorkers(documents), func(i int) (err error) {
		decoded[i], err = p.decode(documents[i])
		return err
	})
	for i, manifests := range decoded {
		if p != nil && manifests != nil {
			p.decoded[documents[i].key()] = manifests
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
func parseWorkers(documents []manifestDocument) int {
	size := 0
	for _, d := range documents {
		size += len(d.text)
	}
	return min(runtime.GOMAXPROCS(0), len(documents), size/perParseWorker+1)
}

var lineNumber = lazyregexp.New(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?`)

// shiftedYAMLError adds lines to the line number of a YAML error about rendered text.
func shiftedYAMLError(err error, lines int) error {
	return reworded(err, " of what it rendered", lines)
}

// quotedByYAML matches what errors of YAML quote.
// (go.yaml.in/yaml/v2/decode.go and resolve.go)
var quotedByYAML = lazyregexp.New("(?s)(anchor )'.*'|(cannot decode \\S+ )`.*`|(invalid map key: ).*")

// HideYAMLQuotes removes from the text of an error what YAML quotes there: it may be a part of a password that
// isn't in quotes.
func HideYAMLQuotes(text string) string {
	text = quotedByYAML().ReplaceAllString(text, "${1}${2}${3}(hidden)")
	return strings.Replace(text, "unknown anchor (hidden) referenced", "unknown anchor (hidden) referenced: put text that begins with * in quotes", 1)
}

// reworded returns an error of YAML without prefixes and without values.
func reworded(err error, of string, lines int) error {
	text := HideYAMLQuotes(err.Error())
	m := lineNumber().FindStringSubmatch(text)
	reason := strings.TrimPrefix(text, m[0])
	if n, nerr := strconv.Atoi(m[1]); nerr == nil {
		return fmt.Errorf("line %d%s: %s", n+lines, of, reason)
	}
	return errors.New(reason)
}
