package retain

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/chart/internal/yamltext"
	"deployer/internal/annotation"
	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
)

// A document is one YAML document of what was rendered.
type document struct {
	text    string
	layer   *layer // nil if it is the same in all renderings, or can't be read
	objects []*object
}

// An object is an object of a document, or of a list in it.
type object struct {
	id           kube.ID
	node         *node
	doc          *document
	policy       Policy // of its annotation; empty without one
	compared     bool   // something in it differs between renderings
	fitsRecorded bool   // the last successful revision has everything in it that is the same in all renderings
}

// An index has the objects of a revision, in their order and by the key of their ID.
type index struct {
	objects []*object
	byKey   map[kube.ID]*object
}

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

// parseDocument reads a document. One that can't be read has no objects; planning reports it.
func parseDocument(text string) *document {
	d := &document{text: text}
	if d.layer = parseYAML(text); d.layer != nil {
		d.layer.comments.children = nil // they aren't deployed
		d.addObjects(d.layer.root)
	}
	return d
}

// addObjects adds the object that a node is, or those in it if it is a list.
func (d *document) addObjects(n *node) {
	if n.kind != fields {
		return
	}
	text := func(keys ...string) string {
		if v := n.at(keys...); v != nil {
			return v.text
		}
		return ""
	}
	if list := n.child("items"); list != nil && list.kind == items && strings.HasSuffix(text("kind"), "List") {
		for _, item := range list.children {
			d.addObjects(item)
		}
		return
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": text("apiVersion"), "kind": text("kind")}}
	obj.SetNamespace(text("metadata", "namespace"))
	obj.SetName(text("metadata", "name"))
	o := &object{id: kube.IDOf(obj), node: n, doc: d}
	policy, _, _ := annotation.Generated.Read(map[string]string{annotation.Generated.Name: text("metadata", "annotations", annotation.Generated.Name)})
	o.policy = Policy(policy)
	for _, field := range []string{"data", "binaryData"} {
		if data := n.child(field); data != nil && (o.isSecret() || field == "binaryData") {
			for _, value := range data.children {
				value.isData = true
			}
		}
	}
	d.objects = append(d.objects, o)
}

// nodeOfObject is the tree of a live object.
func nodeOfObject(live *unstructured.Unstructured) *node {
	data, err := json.Marshal(live.Object)
	if err != nil {
		return nil
	}
	if l := parseYAML(string(data)); l != nil {
		return l.root
	}
	return nil
}

// final is the document with its kept values.
func (d *document) final() string {
	if d.layer == nil || !slices.ContainsFunc(d.objects, func(o *object) bool { return o.compared }) {
		return d.text
	}
	text := d.layer.final()
	return head(d.text) + strings.TrimPrefix(text, head(text))
}

// head is the comments and blank lines that a document begins with.
func head(document string) string {
	n := 0
	for line := range strings.Lines(document) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			break
		}
		n += len(line)
	}
	return document[:n]
}

func (o *object) isSecret() bool { return o.id.Kind == "Secret" && o.id.Group == "" }

// isConfig reports whether the object is a ConfigMap or Secret, whose content checksums cover.
func (o *object) isConfig() bool {
	return o.id.Group == "" && (o.id.Kind == "Secret" || o.id.Kind == "ConfigMap")
}

// onlyUses reports whether an object is a workload or the like, which only uses values.
func (o *object) onlyUses() bool { return !o.isConfig() && kube.IsBuiltinGroup(o.id.Group) }

// key is the key of an object in an index: the same whether or not the manifest states the release's namespace.
func (d *decider) key(id kube.ID) kube.ID {
	if id.Namespace == d.in.Namespace {
		id.Namespace = ""
	}
	return id
}

// readInputs reads the documents that differ between renderings, and those to compare them with.
func (d *decider) readInputs() {
	counts := countDocuments(d.in.Rerendered)
	same := map[string]bool{}
	for _, text := range documentTexts(d.in.Rendered) {
		doc := &document{text: text}
		if counts[text] == len(d.in.Rerendered) {
			same[text] = true
		} else {
			doc = parseDocument(text)
			d.objects = append(d.objects, doc.objects...)
		}
		d.documents = append(d.documents, doc)
	}
	if len(d.objects) == 0 {
		return
	}
	for _, r := range d.in.Rerendered {
		d.rerendered = append(d.rerendered, d.readIndex(r, same))
	}
	for _, r := range d.in.Earlier {
		d.earlier = append(d.earlier, d.readIndex(r, same))
	}
}

func (d *decider) readIndex(r Revision, without map[string]bool) index {
	out := index{byKey: map[kube.ID]*object{}}
	for _, text := range documentTexts(r) {
		if !without[text] {
			out.objects = append(out.objects, parseDocument(text).objects...)
		}
	}
	for _, o := range out.objects {
		out.byKey[d.key(o.id)] = o
	}
	return out
}

// versionsOf are those of an object in all renderings; nil unless each of them has it.
func (d *decider) versionsOf(o *object) []*node {
	versions := []*node{o.node}
	for _, rendering := range d.rerendered {
		other := rendering.byKey[d.key(o.id)]
		if other == nil {
			return nil
		}
		versions = append(versions, other.node)
	}
	return versions
}

// find finds what is generated in an object, and what is recorded of it.
func (d *decider) find(o *object) {
	versions := d.versionsOf(o)
	if versions == nil {
		d.generatedNames = append(d.generatedNames, o.id.Name)
		d.values = append(d.values, Value{ID: o.id, Path: "metadata.name", Reason: "a generated name is never kept"})
		versions = d.sameKindAndPosition(o)
	}
	if versions == nil || sameInAll(versions) {
		return // only comments differ, or there is nothing to compare with
	}
	o.compared = true
	recorded, revision := d.recordedObject(o, versions)
	o.fitsRecorded = recorded != nil && fits(versions, recorded.node)
	found := d.walk(o, versions, recorded, d.unchanged && revision == d.baseNumber())
	for i, p := range found.places {
		p.recorded, p.missing, p.revision = found.recorded[i], found.missing[i], revision
	}
	d.places = append(d.places, found.places...)
	d.values = append(d.values, found.other...)
	d.result.cutsWord = d.result.cutsWord || found.cutsWord
	if recorded != nil && len(o.doc.objects) == 1 && len(recorded.doc.objects) == 1 {
		o.doc.layer.recorded = recorded.doc.text
	}
}

// walk compares an object with a recorded one, which may be nil.
func (d *decider) walk(o *object, versions []*node, recorded *object, unchanged bool) *findings {
	w := walk{object: o, unchanged: unchanged, out: &findings{}}
	var old *node
	if recorded != nil {
		old = recorded.node
		if !d.haveRecordedOwner(o, versions, old) {
			w.missing = missingOwner
		}
	}
	w.compare(versions, old)
	return w.out
}

// haveRecordedOwner reports whether an object belongs to whom it did, as far as its name, labels and annotations say. As for the keys
// of a map, a number in the name is only a position.
func (d *decider) haveRecordedOwner(o *object, versions []*node, old *node) bool {
	withoutRelease := func(name string) string { return strings.TrimPrefix(name, d.in.Release) }
	name := withoutRelease(o.id.Name)
	position := positionIn(name)
	isNumbered := position != "" && len(name) > 1
	if !ownersInFit(mapped(versions, func(n *node) *node { return ownerLabels(n, isNumbered) }), ownerLabels(old, isNumbered)) {
		return false
	}
	if !isNumbered || o.onlyUses() {
		return true
	}
	names := stems{}
	for _, other := range d.objects {
		if other.id.GroupKind() == o.id.GroupKind() {
			names.add(withoutRelease(other.id.Name))
		}
	}
	content := func(n *node) *node { return withoutField(o.body(n), "metadata") }
	return (!isFirst(position, true) || zeroOfName().MatchString(name)) && !names.isOneOfMany(name) || fits(mapped(versions, content), content(old))
}

// zeroOfName matches a name in which 0 is no position, such as auth0.
var zeroOfName = lazyregexp.New(`\pL0`)

// ownerLabels are the labels and annotations that say whose an object is: its user, or where the object has a number whatever says it
// of a field.
func ownerLabels(n *node, isNumbered bool) *node {
	out := &node{kind: fields}
	for _, field := range []string{"labels", "annotations"} {
		of := n.at("metadata", field)
		if of == nil {
			continue
		}
		for _, label := range of.children {
			prefix, key, found := strings.Cut(label.name, "/")
			if !found {
				key = prefix
			} else if strings.HasSuffix(prefix, "kubernetes.io") || strings.HasSuffix(prefix, "helm.sh") {
				continue
			}
			isUser := slices.ContainsFunc(wordsOfKey(key), func(word string) bool { return strings.HasPrefix(word, "user") || word == "login" })
			if isIdentityKey(key, "host", "key", "name", "id") && (isUser || isNumbered) { // charts name themselves
				out.add(field+" "+key, &node{text: label.text})
			}
		}
	}
	return out
}

// withoutField returns a map without a key.
func withoutField(n *node, key string) *node {
	out := &node{kind: fields}
	if n == nil { // the data of a Secret may be none
		return out
	}
	out.children = slices.DeleteFunc(slices.Clone(n.children), func(child *node) bool { return child.name == key })
	return out
}

// sameKindAndPosition returns the versions of an object with a generated name: those at its position among those of its kind in each
// rendering; nil when their number differs. It is only compared to see what is generated.
func (d *decider) sameKindAndPosition(o *object) []*node {
	ofKind := func(list []*object) []*object {
		return slices.DeleteFunc(slices.Clone(list), func(other *object) bool { return other.id.GroupKind() != o.id.GroupKind() })
	}
	mine := ofKind(d.objects)
	out := []*node{o.node}
	for _, rendering := range d.rerendered {
		others := ofKind(rendering.objects)
		if len(others) != len(mine) {
			return nil
		}
		out = append(out, others[slices.Index(mine, o)].node)
	}
	return out
}

// nothingFixedHasChanged reports whether the last successful revision has everything that is the same in all renderings, and was
// made of the same values.
func (d *decider) nothingFixedHasChanged() bool {
	base := d.lastSuccessful()
	if base < 0 || !d.in.SameInput {
		return false
	}
	recorded := countDocuments(d.in.Earlier[base : base+1])
	for _, doc := range d.documents {
		if len(doc.objects) == 0 && recorded[doc.text] == 0 {
			return false
		}
		for _, o := range doc.objects {
			old, versions := d.earlier[base].byKey[d.key(o.id)], d.versionsOf(o)
			if old == nil || versions == nil || !fits(versions, old.node) {
				return false
			}
		}
	}
	return true
}

// lastSuccessful is the position of the last successful revision; -1 if there is none.
func (d *decider) lastSuccessful() int {
	for i, r := range slices.Backward(d.in.Earlier) {
		if r.Successful {
			return i
		}
	}
	return -1
}

// baseNumber is the number of the last successful revision; 0 if there is none.
func (d *decider) baseNumber() int {
	if base := d.lastSuccessful(); base >= 0 {
		return d.in.Earlier[base].Number
	}
	return 0
}

// recordedObject returns the recorded object whose generated values are kept, and its revision; nil if there is none. It is that
// of the last successful revision, unless the live object has the values of a later revision.
func (d *decider) recordedObject(o *object, versions []*node) (*object, int) {
	base := d.lastSuccessful()
	at := func(i int) *object {
		if i < 0 {
			return nil
		}
		return d.earlier[i].byKey[d.key(o.id)]
	}
	number := d.baseNumber()
	ofBase := func() *findings { return d.walk(o, versions, at(base), d.unchanged) }
	var live *object
	read := false
	for i := len(d.earlier) - 1; i > base; i-- {
		if at(i) == nil {
			continue
		}
		later := d.walk(o, versions, at(i), false)
		if at(base) != nil && later.agree(ofBase()) {
			continue // its generated values are the same
		}
		if !read {
			live, read = d.liveObject(o), true
		}
		if live == nil {
			continue
		}
		now := d.walk(o, versions, live, d.unchanged)
		if at(base) != nil && ofBase().agree(now) {
			return at(base), number
		}
		if later.agree(now) {
			return at(i), d.in.Earlier[i].Number
		}
	}
	return at(base), number
}

// agree reports whether what was recorded is the same in another revision or the live object, and there is any. Values in pod
// templates don't count: they only restart pods, or have a copy elsewhere.
func (f *findings) agree(other *findings) bool {
	found := false
	for i, text := range f.recorded {
		if text == nil || f.places[i].inPod {
			continue
		}
		if other.recorded[i] == nil || *other.recorded[i] != *text {
			return false
		}
		found = true
	}
	return found
}

// liveObject reads an object; nil when it doesn't exist or can't be read. A read error is a warning.
func (d *decider) liveObject(o *object) *object {
	if d.in.Live == nil {
		return nil
	}
	id := d.idOf(o)
	live, err := d.in.Live(id)
	if err != nil {
		d.result.Warnings = append(d.result.Warnings, "what is generated in "+id.String()+" is compared with its last successful revision only: "+err.Error())
	}
	if live == nil {
		return nil
	}
	return &object{id: o.id, node: nodeOfObject(live), doc: &document{}}
}
