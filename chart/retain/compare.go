package retain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deployer/internal/kube"
	"deployer/internal/lazyregexp"
)

// A place is where something generated is: a field, or a part of its text.
type place struct {
	owner    *object
	path     string // of the field, as plans write it
	key      string // the last key of the field
	inPod    bool   // in a pod template
	versions []string

	// Of the revision whose values are kept:
	recorded *string // nil if the recorded entry isn't certain to be the same
	revision int
	missing  string     // why recorded is nil; empty when nothing is recorded of the field
	reworded *rewording // its line, if other words of that are recorded; nil otherwise

	final  string
	kept   bool
	reason string // why it isn't kept
}

func (p *place) rendered() string { return p.versions[0] }

// keep sets a place to the value of an earlier revision.
func (p *place) keep(value string, revision int) {
	p.kept, p.final, p.revision, p.reason = true, value, revision, ""
}

// renew leaves a place as it was rendered.
func (p *place) renew(reason string) {
	p.kept, p.final, p.revision, p.reason = false, p.rendered(), 0, reason
}

// A walk compares the renderings of one object with what a revision has recorded of it. It finds the same places in the same
// order, whatever is recorded.
type walk struct {
	object *object
	path   string // of the field in the object; it stays the same inside of its text
	key    string
	inText bool
	inPod  bool
	// unchanged says that nothing but generated values has changed in the release.
	unchanged bool
	around    *level
	siblings  []*node // the versions of what the map counts as that it is in, if it isn't one
	missing   string  // why the entry that it is in isn't recorded; empty if it is, or in none
	reworded  *rewording
	out       *findings
}

// findings are what a walk has found.
type findings struct {
	places   []*place
	recorded []*string // for each place
	missing  []string
	other    []Value // values that can't be compared in detail
	cutsWord bool    // a part of a word is generated, as far as the renderings show
}

const (
	missingEntry = "no recorded entry is certain to be the same one"
	missingLine  = "what is around it isn't what it was"
	missingOwner = "what says whose it is has changed"
)

func (w walk) report(why string) {
	w.out.other = append(w.out.other, Value{ID: w.object.id, Path: w.path, Reason: why})
}

// compare finds what is generated in versions of a node, the rendered one first, and what old has in its place. old is
// nil if nothing is recorded.
func (w walk) compare(versions []*node, old *node) {
	n := versions[0]
	switch {
	case sameInAll(versions):
	case slices.ContainsFunc(versions, func(other *node) bool { return other.kind != n.kind }):
		w.report("it has another structure each time")
	case n.kind != scalar:
		w.compareBranch(versions, old)
	default:
		w.compareScalar(versions, old)
	}
}

func (w walk) compareBranch(versions []*node, old *node) {
	columns, reordered := aligned(versions)
	if columns == nil {
		w.report("it has another number of items each time")
		return
	}
	n := versions[0]
	n.reorderable = n.reorderable || reordered
	if old != nil && old.kind != n.kind {
		old = nil
	}
	b := &branch{versions: versions, old: old, columns: columns, inText: w.inText, onlyUses: w.inPod || w.object.onlyUses(), unchanged: w.unchanged && !reordered}
	if w.siblings != nil {
		b.versions, w.siblings = w.siblings, nil
		b.columns, _ = aligned(b.versions)
	}
	for i, column := range columns {
		if column == nil || !sameInAll(column) {
			w.compareChild(b, n.children[i], i, column)
		}
	}
}

// compareChild compares the versions of a child of a branch.
func (w walk) compareChild(b *branch, n *node, i int, column []*node) {
	below := w.child(b, n, i)
	switch {
	case !w.inText && (below.path == "metadata.name" || below.path == "metadata.namespace"):
		return // see decider.find
	case column == nil:
		below.report("it isn't there each time")
		return
	}
	below.inPod = w.inPod || !w.inText && w.object.isPodTemplate(n.name, n)
	recorded, missing := b.recorded(n, i)
	if recorded == nil && missing != "" {
		below.missing = missing
	}
	c := ofField
	if b.isList() {
		c = ofEntry
	}
	below.around = &level{branch: b, outer: w.around, child: n, column: column, recorded: recorded}
	if recorded != nil && (!below.around.hasRecordedPosition() || w.inText && !c.sameComments(column, recorded)) {
		recorded, below.missing = nil, missingOwner
	}
	if w.path == "" && w.object.isSecret() && (n.name == "data" || n.name == "stringData") {
		recorded = secretData(n.name, b.old)
		below.siblings = mapped(b.versions, func(n *node) *node { return cmp.Or(secretData(n.name, n), &node{kind: fields}) })
	}
	below.compare(column, recorded)
}

// child is a walk of a child. In a text the path stays that of the field.
func (w walk) child(of *branch, n *node, i int) walk {
	switch {
	case w.inText:
	case !of.isList():
		w.path, w.key = joinName(w.path, n.name), n.name
	case n.kind != scalar && n.name != "":
		w.path += "[" + n.name + "]"
	default:
		w.path += "[" + strconv.Itoa(i) + "]"
	}
	return w
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

func (w walk) compareScalar(versions []*node, old *node) {
	n := versions[0]
	if w.compareOpened(versions, old) {
		return
	}
	texts := textsOf(versions)
	if parts := shuffledParts(texts); parts != nil { // only the order is generated
		var recorded *string
		if old != nil && slices.Equal(parts(old.text), parts(n.text)) {
			recorded = &old.text
		}
		w.add(n, texts, recorded, "it has other parts than before, in an order that is generated")
		return
	}
	if n.segments == nil {
		n.segments = segmentsOfLine(versions)
	}
	if len(n.segments) < 2 {
		n.segments = nil
		var recorded *string
		if old != nil && old.kind == scalar {
			recorded = &old.text
		}
		w.add(n, texts, recorded, "")
		return
	}
	var found []string
	if old != nil && old.kind == scalar {
		if found = n.segments.match(old.text); found == nil && w.missing == "" {
			w.missing, w.reworded = missingLine, &rewording{n.text, old.text}
			if n.segments.haveOtherUser(old.text) {
				w.missing = missingOwner
			}
		}
	}
	for _, s := range n.segments {
		if !s.isGenerated {
			continue
		}
		w.out.cutsWord = w.out.cutsWord || s.isPartOfWord
		column := []*node{s.node}
		for _, text := range s.versions[1:] {
			column = append(column, &node{text: text})
		}
		var recorded *node
		if len(found) > 0 {
			recorded, found = &node{text: found[0]}, found[1:]
		}
		w.inText = true
		if !w.compareOpened(column, recorded) {
			var text *string
			if recorded != nil {
				text = &recorded.text
			}
			w.add(s.node, s.versions, text, "")
		}
	}
}

// compareOpened looks into the text of a scalar. It returns false if the text is compared as a whole.
func (w walk) compareOpened(versions []*node, old *node) bool {
	roots := openAll(versions)
	if roots == nil {
		return false
	}
	n := versions[0]
	var recorded, comments *node
	if l := recordedIn(old, n.inner); l != nil {
		recorded, comments, n.inner.recorded = l.root, &l.comments, old.text
	} else if old != nil && w.missing == "" {
		w.missing = missingLine
	}
	w.inText = true
	w.compare(roots, recorded)
	if n.inner.format == inYAML {
		var all []*node
		for _, v := range versions {
			all = append(all, &v.inner.comments)
		}
		w.compare(all, comments)
	}
	return true
}

func textsOf(versions []*node) []string {
	var out []string
	for _, v := range versions {
		out = append(out, v.text)
	}
	return out
}

// add adds a generated place. why says why nothing is recorded.
func (w walk) add(n *node, texts []string, recorded *string, why string) {
	if n.place == nil {
		n.place = &place{owner: w.object, path: w.path, key: w.key, inPod: w.inPod, versions: texts, final: n.text}
	}
	if w.missing != missingOwner && !n.isPEM() && !w.around.haveRecordedOwner() {
		w.missing = missingOwner // a certificate says itself whose it is
	}
	if w.missing != "" {
		recorded, why = nil, w.missing
	}
	n.place.reworded = w.reworded
	w.out.places = append(w.out.places, n.place)
	w.out.recorded = append(w.out.recorded, recorded)
	w.out.missing = append(w.out.missing, why)
}

// shuffledParts returns a function that gives the sorted parts of a text, if all texts have the same words, or else the same
// characters, in another order; otherwise nil. Numbers, and times, may have the same digits by chance.
func shuffledParts(texts []string) func(string) []string {
	words := func(s string) []string { return slices.Sorted(slices.Values(wordsOf(s))) }
	characters := func(s string) []string { return slices.Sorted(slices.Values(strings.Split(s, ""))) }
	withoutDigits := func(s string) []string { return strings.Split(everyDigit().ReplaceAllString(s, "0"), "") }
	isSame := func(parts func(string) []string) bool {
		want := parts(texts[0])
		return len(want) >= 2 && !slices.ContainsFunc(texts, func(s string) bool { return !slices.Equal(parts(s), want) })
	}
	switch {
	case isSame(words):
		return words
	case isSame(characters) && !isSame(withoutDigits):
		return characters
	}
	return nil
}

var everyDigit = lazyregexp.New(`\d`)

func wordsOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",;:| \t\n", r) })
}

// isPodTemplate reports whether a field of an object is a template of pods that are replaced when it changes. Those of a Job and a
// Pod can't be changed.
func (o *object) isPodTemplate(key string, value *node) bool {
	isWorkload := o.id.Group == "apps" || o.id.Kind == "CronJob" || o.id.Kind == "PodTemplate" || o.id.Kind == "ReplicationController"
	return key == "template" && o.id.Kind != "Job" && (isWorkload && value.kind == fields || value.at("spec", "containers") != nil)
}

// secretData returns the data of a Secret as the given field, data or stringData, would have it; nil when
// there is none. https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data
func secretData(field string, secret *node) *node {
	out := &node{kind: fields}
	seen := map[string]bool{}
	for _, from := range []string{"stringData", "data"} {
		data := secret.child(from)
		if data == nil || data.kind != fields {
			continue
		}
		for _, entry := range data.children {
			text := entry.text
			if from == "data" {
				plain, err := decode64(text)
				if err != nil {
					continue
				}
				text = plain
			}
			if field == "data" {
				text = encode64(text)
			}
			if !seen[entry.name] {
				seen[entry.name] = true
				out.add(entry.name, &node{text: text, isData: field == "data"})
			}
		}
	}
	if len(out.children) == 0 {
		return nil
	}
	return out
}

// idOf is the ID of an object with its namespace, also if the manifest doesn't state that.
func (d *decider) idOf(o *object) kube.ID {
	id := o.id
	if id.Namespace == "" && !clusterScoped[id.Kind] {
		id.Namespace = d.in.Namespace
	}
	return id
}

// clusterScoped are kinds with generated content that are in no namespace.
// https://kubernetes.io/docs/reference/kubernetes-api/
var clusterScoped = map[string]bool{
	"ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true, "CustomResourceDefinition": true,
	"APIService": true, "Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "PersistentVolume": true,
	"StorageClass": true, "PriorityClass": true, "IngressClass": true,
}

// where names a place, with its object.
func (d *decider) where(p *place) string { return fmt.Sprintf("%s %s", d.idOf(p.owner), p.path) }

// body is what an object consists of besides its metadata. The data of a Secret is the same in both forms.
func (o *object) body(n *node) *node {
	if o.isSecret() {
		return secretData("stringData", n)
	}
	return n
}
