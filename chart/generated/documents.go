package generated

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"deployer/chart/internal/blockyaml"
	"deployer/chart/internal/yamltext"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// A document is one YAML document of what was rendered.
type document struct {
	text  string
	root  any // nil until it is decoded, and if it can't be
	edits []edit

	orders   []order
	recorded string // text of its only object; empty when it has several, or nothing is recorded
}

// An object is an object of a document, or of a list in it.
type object struct {
	id      kube.ID
	content map[string]any
	path    []any // in its document
	doc     *document
	policy  Policy // of its annotation; empty without one
}

// An index finds objects of a revision.
type index map[kube.ID]*object

// documentTexts lists the documents of a revision, those of hooks last.
func documentTexts(r Revision) []string {
	var out []string
	collect := func(text string) string { out = append(out, text); return text }
	yamltext.RewriteDocuments(r.Manifest, collect)
	for _, hook := range r.Hooks {
		yamltext.RewriteDocuments(hook, collect)
	}
	return out
}

// countDocuments returns how many of the revisions have each document.
func countDocuments(revisions []Revision) map[string]int {
	counts := map[string]int{}
	for _, r := range revisions {
		for text := range sets.New(documentTexts(r)...) {
			counts[text]++
		}
	}
	return counts
}

// readInputs finds the documents that differ between renderings, and the documents to compare
// them with. Only these are parsed.
func (d *decider) readInputs() {
	counts := countDocuments(d.in.Rerendered)
	same := map[string]bool{}
	for _, text := range documentTexts(d.in.Rendered) {
		doc := &document{text: text}
		d.documents = append(d.documents, doc)
		if counts[text] == len(d.in.Rerendered) {
			same[text] = true
			continue
		}
		d.objects = append(d.objects, doc.objects()...)
	}
	if len(d.objects) == 0 {
		return
	}
	for _, rerendered := range d.in.Rerendered {
		d.rerendered = append(d.rerendered, d.indexOf(rerendered, same))
	}
	for _, earlier := range d.in.Earlier {
		d.earlier = append(d.earlier, d.indexOf(earlier, same))
	}
	if d.in.WithHashInputs != nil {
		d.withHashInputs = d.indexOf(*d.in.WithHashInputs, same)
	}
}

func (d *decider) indexOf(r Revision, without map[string]bool) index {
	out := index{}
	for _, text := range documentTexts(r) {
		if without[text] {
			continue
		}
		for _, o := range (&document{text: text}).objects() {
			out[d.objectKey(o.id)] = o
		}
	}
	return out
}

// objectKey is the key of an object in an index: the same whether or not the manifest states the release's
// namespace.
func (d *decider) objectKey(id kube.ID) kube.ID {
	if id.Namespace == d.in.Namespace {
		id.Namespace = ""
	}
	return id
}

// objects decodes a document and returns its objects. A document that can't be decoded has none;
// planning reports it.
func (d *document) objects() []*object {
	root, err := decode(d.text)
	if err != nil {
		return nil
	}
	d.root = root
	return objectsIn(d, root, nil)
}

// decode reads YAML as Helm does, with numbers of type json.Number.
func decode(text string) (any, error) {
	if content, ok := blockyaml.Decode(text); ok {
		if root, ok := withTextOfNumbers(content); ok {
			return root, nil
		}
	}
	var root any
	err := yaml.Unmarshal([]byte(text), &root, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
	return root, err
}

// withTextOfNumbers replaces the numbers in a value by json.Number, and returns it. It isn't ok if there is one that isn't
// whole, which can be written in several ways.
func withTextOfNumbers(value any) (_ any, ok bool) {
	switch v := value.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), true
	case float64:
		return nil, false
	case map[string]any:
		for key := range v {
			if v[key], ok = withTextOfNumbers(v[key]); !ok {
				return nil, false
			}
		}
	case []any:
		for i := range v {
			if v[i], ok = withTextOfNumbers(v[i]); !ok {
				return nil, false
			}
		}
	}
	return value, true
}

// objectsIn returns the object that a value is, or those in it if it is a list.
func objectsIn(d *document, value any, path []any) []*object {
	content, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	kind, _ := content["kind"].(string)
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		var out []*object
		for i, item := range items {
			out = append(out, objectsIn(d, item, append(path[:len(path):len(path)], "items", i))...)
		}
		return out
	}
	obj := &unstructured.Unstructured{Object: content}
	o := &object{id: kube.IDOf(obj), content: content, path: path, doc: d}
	policy, _, _ := annotation.Generated.Read(obj.GetAnnotations())
	o.policy = Policy(policy)
	return []*object{o}
}

func (o *object) isSecret() bool { return o.id.Kind == "Secret" && o.id.Group == "" }

// isConfig reports whether the object is a ConfigMap or Secret, whose content checksums
// cover.
func (o *object) isConfig() bool {
	return o.id.Group == "" && (o.id.Kind == "Secret" || o.id.Kind == "ConfigMap")
}

// rewritten is the document with its kept values.
func (d *document) rewritten() string {
	if len(d.edits) == 0 && len(d.orders) == 0 {
		return d.text
	}
	out, ok := editText(d.text, d.edits, "", decode)
	if ok && len(d.orders) == 0 {
		return out
	}
	if recorded, same := recordedOrder(out, d.recorded, d.orders, decode); ok && same {
		return recorded
	}
	want := d.content()
	if got, err := decode(out); ok && err == nil && reflect.DeepEqual(got, want) {
		return out
	}
	// The edits can't be made in the text, so the document is encoded again.
	return head(d.text) + marshal(want)
}

// content is what the document says with its kept values.
func (d *document) content() any { return reordered(edited(d.root, d.edits), d.orders) }

// head are the comments and blank lines that a document begins with.
func head(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

func marshal(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return string(bytes.TrimRight(data, "\n")) + "\n"
}
