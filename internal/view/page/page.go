// Package page lays out a page about objects: sections of entries, each a heading
// and lines about one object. It is written as text, Markdown or HTML. Plans and
// drifts are such pages, and explanations have such lines.
package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/view/output"
	"deployer/internal/view/textfmt"
	"deployer/release"
)

// A Page is what people read of a plan or a drift. Its texts may be the cluster's: writing it makes them harmless.
type Page struct {
	Title      string
	Conclusion string // one sentence at its end, or below the title
	Warnings   []string
	Sections   []Section
	Note       string // what to know of the page itself, at its end

	// Only HTML shows these.
	Counts []Count
	Boxes  []Box    // the picture of the order of work; none draws none
	Signs  []string // what the signs of entries mean: "+ create"
}

// A Section is a group of entries; its title is empty when there is only one.
type Section struct {
	Title   string
	Entries []Entry
}

// An Entry is an object and what there is to say about it.
type Entry struct {
	Heading Heading
	Lines   []Line
	Class   string // of the entry in the style sheet of the HTML: an action or a state
}

// A Heading is the first line of an entry.
type Heading struct {
	Sign                byte // '+' '-' '~' '!' '=' '<' '>' '?' or ' '
	Name, Words, Source string
}

// A Line is one line of an entry.
type Line struct {
	Sign byte   // '+' '-' '~' of fields, '?' of remarks, ' ' of context
	Text string `text:"indented"`
}

// Text is the page for a terminal or a file.
func (p Page) Text(palette output.Palette) string {
	p = textfmt.Harmless(p)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", palette.Bold.Sprint(p.Title))
	for _, section := range p.Sections {
		if section.Title != "" {
			fmt.Fprintf(&b, "%s\n", palette.Bold.Sprint(section.Title))
		}
		for _, entry := range section.Entries {
			b.WriteString(entry.Text(palette))
		}
		if len(section.Entries) > 0 {
			b.WriteString("\n")
		}
	}
	for _, warning := range p.Warnings {
		b.WriteString(output.WarningLine(palette, warning))
	}
	b.WriteString(palette.Bold.Sprint(p.Conclusion) + "\n")
	if p.Note != "" {
		b.WriteString(p.Note + "\n")
	}
	return b.String()
}

// Text is the entry for a terminal or a file.
func (e Entry) Text(palette output.Palette) string {
	paint := map[byte]*color.Color{
		'+': palette.Good, '-': palette.Bad, '~': palette.Warn, '!': palette.Bad, '=': palette.Faint, ' ': palette.Faint,
	}
	e = textfmt.Harmless(e)
	h := e.Heading
	sign, words, source := string(h.Sign), h.Words, ""
	if c := paint[h.Sign]; c != nil {
		sign, words = c.Sprint(sign), c.Sprint(words)
	}
	if h.Source != "" {
		source = "   " + palette.Faint.Sprint("("+h.Source+")")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s   %s%s\n", sign, palette.Bold.Sprint(h.Name), words, source)
	for _, l := range e.Lines {
		switch l.Sign {
		case '+', '-':
			fmt.Fprintf(&b, "  %s %s\n", paint[l.Sign].Sprint(string(l.Sign)), l.Text)
		case '?':
			fmt.Fprintf(&b, "    %s\n", palette.Warn.Sprint(l.Text))
		default:
			fmt.Fprintf(&b, "    %s\n", l.Text)
		}
	}
	return b.String()
}

// Remark is a line about an entry that is no field of it.
func Remark(format string, args ...any) Line {
	return Line{Sign: '?', Text: fmt.Sprintf(format, args...)}
}

// Context is a line without a sign.
func Context(format string, args ...any) Line {
	return Line{Sign: ' ', Text: fmt.Sprintf(format, args...)}
}

// A Subject is the release that a document or an event is about, and what is done with it.
type Subject struct {
	Verb      deploy.Verb `json:"verb,omitempty"`
	Release   string      `json:"release,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	deploy.Place
	Chart    string `json:"chart,omitempty"`
	Revision int    `json:"revision,omitempty"`
}

// SubjectOf is the subject of an operation.
func SubjectOf(op *deploy.Operation) Subject {
	out := SubjectAt(op.Release, op.Namespace, op.Place, op.Next)
	out.Verb = op.Verb
	return out
}

// SubjectAt is a revision as a subject; its record is nil when it has none.
func SubjectAt(name, namespace string, place deploy.Place, record *release.Record) Subject {
	out := Subject{Release: name, Namespace: namespace, Place: place}
	if record != nil {
		out.Chart, out.Revision = (&chart.Chart{Helm: record.Chart}).Name(), record.Version
	}
	return out
}

// Where is the namespace, and the context of the kubeconfig where there is one.
func (s Subject) Where() string { return textfmt.WithNotes(s.Namespace, s.Context) }

// Timestamp is a time in RFC 3339; empty when it isn't known.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// A Warning is a warning about an object, or about none.
type Warning struct {
	Text   string `json:"text"`
	Object string `json:"object,omitempty"`
	Source string `json:"source,omitempty"`
}

// WarningsOf describes warnings of package apply, without confidential texts.
func WarningsOf(warnings []apply.Warning, hidden *hide.Texts) []Warning {
	out := []Warning{}
	for _, w := range warnings {
		described := Warning{Text: output.WithoutPasswords(hidden.Hide(w.Text)), Source: w.Source}
		if w.ID.Kind != "" {
			described.Object = w.ID.String()
		}
		out = append(out, described)
	}
	return out
}

func (w Warning) String() string {
	text := w.Text
	if w.Object != "" {
		text = w.Object + ": " + text
	}
	return textfmt.CleanLine(textfmt.WithNotes(text, w.Source))
}

// WarningTexts writes warnings for people: the same words about many objects once.
func WarningTexts(warnings []Warning) []string {
	var out []string
	at := map[string]int{}
	more := map[string]int{}
	for _, w := range warnings {
		if _, known := at[w.Text]; known && w.Object != "" {
			more[w.Text]++
			continue
		}
		at[w.Text] = len(out)
		out = append(out, w.String())
	}
	for text, n := range more {
		out[at[text]] += fmt.Sprintf("; the same for %s", textfmt.Count(n, "more object"))
	}
	return out
}
