package generated

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// findGenerated finds what is generated in an object, and what is recorded of it.
func (k *decider) findGenerated(o *object) {
	var again []any
	for _, index := range k.rerendered {
		if other := index[k.objectKey(o.id)]; other != nil {
			again = append(again, other.content)
		}
	}
	if len(again) < len(k.rerendered) {
		o.hasGeneratedName = true
		k.generatedNames = append(k.generatedNames, o.id.Name)
		k.values = append(k.values, Value{ID: o.id, Path: "metadata.name", Reason: "a generated name is never kept"})
		again = k.counterpartsByPosition(o)
	}
	if len(again) > 0 && allEqual(o.content, again) {
		return // only comments differ
	}
	past, revision := k.recordedObject(o, again)
	w := &fieldWalker{decider: k, object: o, revision: revision}
	if past == nil {
		w.compare(nil, "", o.content, again, nil, false)
	} else {
		w.compare(nil, "", o.content, again, past.content, true)
	}
	for _, e := range w.edits {
		o.doc.edits = append(o.doc.edits, edit{path: slices.Concat(o.path, e.path), part: e.part})
	}
	for _, order := range w.orders {
		order.path = slices.Concat(o.path, order.path)
		o.doc.orders = append(o.doc.orders, order)
	}
	if past != nil && len(past.path) == 0 && len(o.path) == 0 {
		o.doc.recorded = past.doc.text
	}
}

// counterpartsByPosition returns the objects at the position of o, which has a generated
// name, in the repeated renderings; nil when their number differs.
func (k *decider) counterpartsByPosition(o *object) []any {
	like := func(other *object) bool { return other.id.GroupKind() == o.id.GroupKind() }
	mine := slices.DeleteFunc(slices.Clone(k.objects), func(other *object) bool { return !like(other) })
	at := slices.Index(mine, o)
	var out []any
	for i := range k.rerendered {
		var others []any
		for _, text := range documentTexts(k.in.Rerendered[i]) {
			for _, other := range k.parse(&document{text: text}) {
				if like(other) && k.rerendered[i][k.objectKey(other.id)] != nil {
					others = append(others, other.content)
				}
			}
		}
		if len(others) != len(mine) {
			return nil
		}
		out = append(out, others[at])
	}
	return out
}

func allEqual(a any, others []any) bool {
	for _, other := range others {
		if !reflect.DeepEqual(a, other) {
			return false
		}
	}
	return true
}

// A fieldWalker goes through one object, or one text with structure in it.
type fieldWalker struct {
	decider         *decider
	object          *object
	revision        int    // that is compared with
	field           string // the field that contains the text; empty for the object
	keys            []any  // the same, as keys and indexes
	inPodAnnotation bool
	edits           []edit
	orders          []order
}

// compare compares a value with those of the repeated renderings, and with the recorded one.
func (w *fieldWalker) compare(path []any, name string, a any, rerendered []any, recorded any, hasRecorded bool) {
	if allEqual(a, rerendered) {
		return
	}
	switch a := a.(type) {
	case map[string]any:
		w.compareFields(path, name, a, rerendered, recorded, hasRecorded)
	case []any:
		w.compareItems(path, name, a, rerendered, recorded, hasRecorded)
	default:
		for _, other := range rerendered {
			if isStructure(other) {
				w.reportRenewed(name, "it has another structure each time")
				return
			}
		}
		w.compareLeaf(path, name, a, rerendered, recorded, hasRecorded)
	}
}

func isStructure(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// reportRenewed adds a value that is renewed because it can't be compared in detail.
func (w *fieldWalker) reportRenewed(name, why string) {
	if w.field != "" {
		name = w.field
	}
	w.decider.values = append(w.decider.values, Value{ID: w.object.id, Path: name, Reason: why})
}

func (w *fieldWalker) compareFields(path []any, name string, a map[string]any, rerendered []any, recorded any, hasRecorded bool) {
	old, _ := recorded.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(a)) {
		var others []any
		for _, other := range rerendered {
			m, _ := other.(map[string]any)
			if v, ok := m[key]; ok {
				others = append(others, v)
			}
		}
		below := joinName(name, key)
		switch {
		case w.field == "" && (below == "metadata.name" || below == "metadata.namespace"):
			continue // findGenerated reports it
		case len(others) < len(rerendered):
			w.reportRenewed(below, "it isn't there each time")
			continue
		}
		was, ok := old[key]
		if w.field == "" && w.object.isSecret() && hasRecorded {
			was, ok = secretField(name, key, old, was, ok)
		}
		w.compare(append(path[:len(path):len(path)], key), below, a[key], others, was, hasRecorded && ok)
	}
}

// secretField finds an entry of a Secret's data in stringData, and the other way
// round: one is only another way to write the other.
// https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data
func secretField(name, key string, old map[string]any, was any, ok bool) (any, bool) {
	if name == "" && (key == "data" || key == "stringData") {
		data, text := mapField(old, "data"), mapField(old, "stringData")
		out := map[string]any{}
		for name, v := range data {
			s, _ := v.(string)
			if key == "data" {
				out[name] = s
			} else if plain, err := base64.StdEncoding.DecodeString(s); err == nil {
				out[name] = string(plain)
			}
		}
		for name, v := range text {
			if key == "stringData" {
				out[name] = v
			} else {
				out[name] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(v)))
			}
		}
		return out, len(out) > 0
	}
	return was, ok
}

func mapField(m map[string]any, key string) map[string]any {
	out, _ := m[key].(map[string]any)
	return out
}

// joinName writes a path as plans do.
func joinName(path, key string) string {
	if strings.ContainsAny(key, ".[]") {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// compareLeaf handles a single value.
func (w *fieldWalker) compareLeaf(path []any, name string, a any, rerendered []any, recorded any, hasRecorded bool) {
	if w.field == "" {
		w.inPodAnnotation, w.keys = isPodTemplateAnnotation(path), path
	}
	text, isText := a.(string)
	others := textsIn(rerendered)
	var was *string
	if s, ok := recorded.(string); ok && hasRecorded {
		was = &s
	}
	if isText && len(others) == len(rerendered) && (was != nil || !hasRecorded) {
		data := w.field == "" && len(path) == 2 && (w.object.isSecret() && path[0] == "data" || w.object.isConfig() && path[0] == "binaryData")
		w.edits = append(w.edits, edit{path, w.compareText(name, text, others, was, data)})
		return
	}
	t := w.token(name, fmt.Sprint(a), nil, nil, "")
	t.nonText = a
	for _, other := range rerendered {
		t.rerendered = append(t.rerendered, fmt.Sprint(other))
	}
	if hasRecorded && !isStructure(recorded) && recorded != nil {
		text := fmt.Sprint(recorded)
		t.recorded, t.recordedNonText = &text, recorded
	}
	w.edits = append(w.edits, edit{path, t})
}

// isPodTemplateAnnotation reports whether a path is an annotation of a pod template, which
// restarts pods when it changes.
func isPodTemplateAnnotation(path []any) bool {
	n := len(path)
	return n >= 4 && path[n-4] == "template" && path[n-3] == "metadata" && path[n-2] == "annotations"
}

func textsIn(values []any) []string {
	var out []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (w *fieldWalker) token(name, text string, rerendered []string, recorded *string, why string) *token {
	if w.field != "" {
		name = w.field
	}
	t := &token{owner: w.object, fieldPath: name, keys: w.keys, inPodAnnotation: w.inPodAnnotation, text: text, final: text, rerendered: rerendered, recorded: recorded, missingReason: why, revision: w.revision}
	w.decider.tokens = append(w.decider.tokens, t)
	return t
}

// compareText compares text in detail: it looks into base64, JSON and YAML.
func (w *fieldWalker) compareText(name, a string, rerendered []string, recorded *string, data bool) part {
	if slices.IndexFunc(rerendered, func(s string) bool { return s != a }) < 0 {
		return fixed(a)
	}
	if p, ok := w.compareEncoded(name, a, rerendered, recorded, data); ok {
		return p
	}
	if !utf8.ValidString(a) {
		return w.token(name, a, rerendered, recorded, "")
	}
	if p, ok := w.compareShuffled(name, a, rerendered, recorded); ok {
		return p
	}
	if p, ok := w.compareStructured(name, a, rerendered, recorded); ok {
		return p
	}
	return w.compareLines(name, a, rerendered, recorded)
}

// compareEncoded compares what is in base64. It reports false for other text.
func (w *fieldWalker) compareEncoded(name, a string, rerendered []string, recorded *string, data bool) (part, bool) {
	plain, others, ok := decoded(a, rerendered, data)
	if !ok {
		return nil, false
	}
	var was *string
	if recorded != nil {
		if text, err := base64.StdEncoding.DecodeString(*recorded); err == nil {
			was = new(string(text))
		}
	}
	return encoded{w.compareText(name, plain, others, was, false)}, true
}

// decoded reads base64. Text that isn't the data of a Secret is taken for base64
// only when it is long and what it decodes to can be read.
func decoded(a string, rerendered []string, data bool) (string, []string, bool) {
	read := func(s string) (string, bool) {
		plain, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(plain) == 0 {
			return "", false
		}
		return string(plain), data || len(s) >= 16 && readable(plain)
	}
	text, ok := read(a)
	if !ok {
		return "", nil, false
	}
	var others []string
	for _, s := range rerendered {
		other, ok := read(s)
		if !ok {
			return "", nil, false
		}
		others = append(others, other)
	}
	return text, others, true
}

func readable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// compareShuffled finds text that has the same words, or else the same characters, each
// time in another order. What it is made of is the chart's.
func (w *fieldWalker) compareShuffled(name, a string, rerendered []string, recorded *string) (part, bool) {
	for _, parts := range []func(string) []string{wordsOf, func(s string) []string { return strings.Split(s, "") }} {
		of := func(s string) []string { out := slices.Clone(parts(s)); slices.Sort(out); return out }
		want := of(a)
		if len(want) < 2 || slices.ContainsFunc(rerendered, func(s string) bool { return !slices.Equal(of(s), want) }) {
			continue
		}
		t := w.token(name, a, rerendered, nil, "it has other parts than before, in an order that is generated")
		if recorded != nil && slices.Equal(of(*recorded), want) {
			t.recorded = recorded
		}
		w.decider.unsure = w.decider.unsure || recorded != nil && t.recorded == nil
		return t, true
	}
	return nil, false
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",;:| \t\n", r) })
}

// compareStructured looks into a text that is a map or a list in YAML, which JSON is too.
func (w *fieldWalker) compareStructured(name, a string, rerendered []string, recorded *string) (part, bool) {
	root, err := decodeInner(a)
	if err != nil || !isStructure(root) {
		return nil, false
	}
	var others []any
	for _, s := range rerendered {
		other, err := decodeInner(s)
		if err != nil || !isStructure(other) {
			return nil, false
		}
		others = append(others, other)
	}
	inner := &fieldWalker{decider: w.decider, object: w.object, revision: w.revision, field: name, keys: w.keys, inPodAnnotation: w.inPodAnnotation}
	if w.field != "" {
		inner.field = w.field
	}
	var old any
	recordedText := ""
	if recorded != nil {
		recordedText = *recorded
		if old, err = decodeInner(*recorded); err != nil || !isStructure(old) {
			return nil, false
		}
	}
	inner.compare(nil, "", root, others, old, recorded != nil)
	if keysShuffled(a, rerendered) {
		inner.orders = append(inner.orders, order{token: inner.orderToken("", recorded != nil)})
	}
	return structured{a, inner.edits, inner.orders, inner.compareComments(name, a, rerendered, recorded), recordedText}, true
}
