package generated

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// findGenerated finds what is generated in an object, and what is recorded of it.
func (d *decider) findGenerated(o *object) {
	v := versions[any]{rendered: o.content}
	for _, index := range d.rerendered {
		if other := index[d.objectKey(o.id)]; other != nil {
			v.rerendered = append(v.rerendered, other.content)
		}
	}
	if len(v.rerendered) < len(d.rerendered) {
		d.generatedNames = append(d.generatedNames, o.id.Name)
		d.values = append(d.values, Value{ID: o.id, Path: "metadata.name", Reason: "a generated name is never kept"})
		v.rerendered = d.counterpartsByPosition(o)
	}
	if v.isStable() {
		return // only comments differ, or there is nothing to compare with
	}
	recorded, revision := d.recordedObject(o, v)
	if recorded != nil {
		v.recorded = new(any(recorded.content))
	}
	w := &fieldWalker{decider: d, object: o, revision: revision, unchanged: recorded != nil && matchesFixed(v, recorded.content)}
	w.compare(nil, "", v)
	for _, e := range w.edits {
		o.doc.edits = append(o.doc.edits, edit{path: slices.Concat(o.path, e.path), part: e.part})
	}
	for _, order := range w.orders {
		order.path = slices.Concat(o.path, order.path)
		o.doc.orders = append(o.doc.orders, order)
	}
	if recorded != nil && len(recorded.path) == 0 && len(o.path) == 0 {
		o.doc.recorded = recorded.doc.text
	}
}

// counterpartsByPosition returns the objects at the position of o, which has a generated
// name, in the repeated renderings; nil when their number differs.
func (d *decider) counterpartsByPosition(o *object) []any {
	like := func(other *object) bool { return other.id.GroupKind() == o.id.GroupKind() }
	mine := slices.DeleteFunc(slices.Clone(d.objects), func(other *object) bool { return !like(other) })
	at := slices.Index(mine, o)
	var out []any
	for i := range d.rerendered {
		var others []any
		for _, text := range documentTexts(d.in.Rerendered[i]) {
			for _, other := range (&document{text: text}).objects() {
				if like(other) && d.rerendered[i][d.objectKey(other.id)] != nil {
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

// A fieldWalker goes through one object, or one text with structure in it.
type fieldWalker struct {
	decider  *decider
	object   *object
	revision int    // of the recorded values
	field    string // the field that contains the text; empty for the object
	keys     []any  // the same, as keys and indexes
	edits    []edit
	orders   []order
	// unchanged says that the recorded object has everything that is fixed in this one.
	unchanged bool
	missing   string // why nothing is recorded of the item of a list that it is in; empty if it is in none
}

// compare finds what is generated in the value at a path. name is the path as plans write it.
func (w *fieldWalker) compare(path []any, name string, v versions[any]) {
	if v.isStable() {
		return
	}
	switch rendered := v.rendered.(type) {
	case map[string]any:
		w.compareFields(path, name, rendered, v)
	case []any:
		w.compareItems(path, name, rendered, v)
	default:
		if slices.ContainsFunc(v.rerendered, isStructure) {
			w.reportRenewed(name, "it has another structure each time")
			return
		}
		w.compareLeaf(path, name, v)
	}
}

// isStructure reports whether a value is a map or a list.
func isStructure(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// reportRenewed adds a value that is renewed because it can't be compared in detail.
func (w *fieldWalker) reportRenewed(name, why string) {
	w.decider.values = append(w.decider.values, Value{ID: w.object.id, Path: cmp.Or(w.field, name), Reason: why})
}

// compareFields compares the fields of maps; fields are those of the rendered one.
func (w *fieldWalker) compareFields(path []any, name string, fields map[string]any, v versions[any]) {
	old, _ := v.recordedOrZero().(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field := versions[any]{rendered: fields[key]}
		for _, other := range v.rerendered {
			m, _ := other.(map[string]any)
			if value, ok := m[key]; ok {
				field.rerendered = append(field.rerendered, value)
			}
		}
		below := joinName(name, key)
		switch {
		case w.field == "" && (below == "metadata.name" || below == "metadata.namespace"):
			continue // findGenerated reports it
		case len(field.rerendered) < len(v.rerendered):
			w.reportRenewed(below, "it isn't there each time")
			continue
		}
		if recorded, ok := old[key]; ok {
			field.recorded = &recorded
		}
		if w.field == "" && name == "" && w.object.isSecret() && (key == "data" || key == "stringData") {
			field.recorded = recordedSecretData(key, old)
		}
		w.compare(append(path[:len(path):len(path)], key), below, field)
	}
}

// joinName appends a key to a path as plans write it.
func joinName(path, key string) string {
	if strings.ContainsAny(key, ".[]") {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// compareLeaf compares a value that is neither a map nor a list.
func (w *fieldWalker) compareLeaf(path []any, name string, v versions[any]) {
	if w.field == "" {
		w.keys = path
	}
	if texts, ok := textVersions(v); ok {
		data := w.field == "" && len(path) == 2 && (w.object.isSecret() && path[0] == "data" || w.object.isConfig() && path[0] == "binaryData")
		w.edits = append(w.edits, edit{path, w.compareText(name, texts, data)})
		return
	}
	if recorded := v.recordedOrZero(); recorded == nil || isStructure(recorded) {
		v.recorded = nil
	}
	printed, _ := convert(v, func(value any) (string, bool) { return fmt.Sprint(value), true })
	t := w.token(name, printed, "")
	t.nonText, t.recordedNonText = v.rendered, v.recordedOrZero()
	w.edits = append(w.edits, edit{path, t})
}

// isPodTemplateAnnotation reports whether a path is an annotation of a pod template, which
// restarts pods when it changes.
func isPodTemplateAnnotation(path []any) bool {
	n := len(path)
	return n >= 4 && path[n-4] == "template" && path[n-3] == "metadata" && path[n-2] == "annotations"
}

// token adds a generated value. why says why no recorded value was found; it may be empty.
func (w *fieldWalker) token(name string, v versions[string], why string) *token {
	t := &token{
		versions: v, missingReason: cmp.Or(why, w.missing),
		owner: w.object, fieldPath: cmp.Or(w.field, name), keys: w.keys,
		revision: w.revision, final: v.rendered,
	}
	w.decider.tokens = append(w.decider.tokens, t)
	return t
}

// compareText compares text in detail: it looks into base64, JSON and YAML.
func (w *fieldWalker) compareText(name string, v versions[string], data bool) part {
	if v.isStable() {
		return fixed(v.rendered)
	}
	if plain, ok := decodedVersions(v, data); ok {
		return encoded{w.compareText(name, plain, false)}
	}
	if !utf8.ValidString(v.rendered) {
		return w.token(name, v, "")
	}
	if p, ok := w.compareShuffled(name, v); ok {
		return p
	}
	if p, ok := w.compareStructured(name, v); ok {
		return p
	}
	return w.compareLines(name, v)
}

// compareShuffled compares text that has the same words, or else the same characters, in another
// order in each rendering. Only the order is generated.
func (w *fieldWalker) compareShuffled(name string, v versions[string]) (part, bool) {
	for _, parts := range []func(string) []string{wordsOf, func(s string) []string { return strings.Split(s, "") }} {
		of := func(s string) []string { out := slices.Clone(parts(s)); slices.Sort(out); return out }
		want := of(v.rendered)
		if len(want) < 2 || slices.ContainsFunc(v.rerendered, func(s string) bool { return !slices.Equal(of(s), want) }) {
			continue
		}
		if v.recorded != nil && !slices.Equal(of(*v.recorded), want) {
			v.recorded, w.decider.result.Unsure = nil, true
		}
		return w.token(name, v, "it has other parts than before, in an order that is generated"), true
	}
	return nil, false
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",;:| \t\n", r) })
}

// compareStructured looks into a text that is a map or a list in YAML or JSON.
func (w *fieldWalker) compareStructured(name string, v versions[string]) (part, bool) {
	values, ok := convert(v, func(text string) (any, bool) {
		root, err := decodeInner(text)
		return root, err == nil && isStructure(root)
	})
	if !ok {
		return nil, false
	}
	inner := &fieldWalker{decider: w.decider, object: w.object, revision: w.revision, field: cmp.Or(w.field, name), keys: w.keys, unchanged: w.unchanged, missing: w.missing}
	inner.compare(nil, "", values)
	if keysShuffled(v) {
		inner.orders = append(inner.orders, order{token: inner.orderToken("", v.recorded != nil)})
	}
	return structured{v.rendered, inner.edits, inner.orders, inner.compareComments(name, v), v.recordedOrZero()}, true
}
