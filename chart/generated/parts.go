package generated

import (
	"encoding/base64"
	"strings"
)

// A part is a field's value, or a piece of one, with tokens in it.
type part interface {
	// value returns the final value: text, or a value of another type.
	value() any
}

// fixed is text that the chart states.
type fixed string

func (f fixed) value() any { return string(f) }

// joined is text made of pieces of text.
type joined []part

func (j joined) value() any {
	var b strings.Builder
	for _, p := range j {
		b.WriteString(textOf(p))
	}
	return b.String()
}

func textOf(p part) string {
	s, _ := p.value().(string)
	return s
}

// encoded is text in base64.
type encoded struct{ inner part }

func (e encoded) value() any {
	return base64.StdEncoding.EncodeToString([]byte(textOf(e.inner)))
}

// structured is YAML or JSON inside a text.
type structured struct {
	text     string
	edits    []edit
	orders   []order
	comments map[int]part // by the number of the line
	recorded string       // empty when it isn't recorded
}

func (s structured) value() any {
	text := s.withComments()
	out, ok := editText(text, s.edits, s.recorded, decodeInner)
	if !ok {
		out = innerText(text, s.edits)
	}
	out, _ = recordedOrder(out, s.recorded, s.orders, decodeInner)
	return out
}

// withComments is the text with its kept comments.
func (s structured) withComments() string {
	if len(s.comments) == 0 {
		return s.text
	}
	lines := strings.Split(s.text, "\n")
	for i, comment := range s.comments {
		lines[i] = textOf(comment)
	}
	return strings.Join(lines, "\n")
}

// compareComments finds generated text in comments on lines of their own, such as the time at
// which a file was rendered. The keys are numbers of lines.
func (w *fieldWalker) compareComments(name string, v versions[string]) map[int]part {
	comments := func(text string) (lines []int, texts []string) {
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				lines, texts = append(lines, i), append(texts, line)
			}
		}
		return lines, texts
	}
	at, texts := comments(v.rendered)
	var others [][]string
	for _, other := range v.rerendered {
		_, theirs := comments(other)
		if len(theirs) != len(texts) {
			return nil
		}
		others = append(others, theirs)
	}
	var old []string
	if v.recorded != nil {
		_, old = comments(*v.recorded)
	}
	out := map[int]part{}
	for i, text := range texts {
		comment := versions[string]{rendered: text, rerendered: column(others, i)}
		if comment.isStable() {
			continue
		}
		if len(old) == len(texts) && (len(old) == 1 || w.unchanged) {
			comment.recorded = &old[i]
		}
		out[at[i]] = w.compareLines(name, comment)
	}
	return out
}

// A token is a piece of text, or a field, that is generated.
type token struct {
	versions[string]
	missingReason string // why no recorded value was found

	owner     *object
	fieldPath string // of the field it is in
	keys      []any  // the same, as keys and positions

	// Of a field that isn't text, or changes as a whole:
	nonText, recordedNonText any

	revision int
	kept     bool
	final    string
	reason   string // why it isn't kept

	isDerived bool // it is computed from another token
}

// inPodAnnotation reports whether it is in an annotation of a pod template.
func (t *token) inPodAnnotation() bool { return isPodTemplateAnnotation(t.keys) }

func (t *token) value() any {
	switch {
	case t.nonText == nil:
		return t.final
	case t.kept && t.recordedNonText != nil:
		return t.recordedNonText
	case t.kept:
		return t.final
	}
	return t.nonText
}

// keep sets the token to the value of an earlier revision.
func (t *token) keep(value string, revision int) {
	t.kept, t.final, t.revision, t.reason = true, value, revision, ""
}

// renew leaves the token as it was rendered.
func (t *token) renew(reason string) {
	t.kept, t.final, t.revision, t.reason = false, t.rendered, 0, reason
}
