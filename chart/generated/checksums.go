package generated

import (
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"

	"deployer/internal/annotation"
	"deployer/internal/lazyregexp"
)

// decideChecksums decides about hashes of what the chart renders, in annotations of pod
// templates and elsewhere: they are kept while no ConfigMap and no Secret of the release
// changes. Any other generated annotation of a pod template is renewed: it is there to
// restart the pods each time.
func (d *decider) decideChecksums() {
	var checksums []*token
	for _, t := range d.tokens {
		switch {
		case t.reason != "" || t.nonText != nil && !t.inPodAnnotation():
		case t.kept:
			if isHash(t.rendered) && !t.isDerived && d.in.MakesHashes {
				checksums = append(checksums, t)
			}
		case !t.inPodAnnotation():
		case t.owner.policy == Renew:
			t.renew(annotation.Generated.Name + ": renew")
		case d.in.Policy == Renew && t.owner.policy != Keep:
			t.renew("--generated renew")
		case t.nonText != nil || !isHash(t.rendered) || !d.in.MakesHashes:
			t.renew("it is random, which restarts the pods each time")
		case t.recorded == nil:
			t.renew(t.missingReason)
		default:
			checksums = append(checksums, t)
		}
	}
	d.keepChecksums(checksums)
}

// keepChecksums keeps the hashes that are checksums, unless a ConfigMap or Secret changes. In
// pod annotations, it renews those that are random; elsewhere these are kept already.
func (d *decider) keepChecksums(hashes []*token) {
	if len(hashes) == 0 {
		return
	}
	d.result.WantsHashInputs = d.in.WithHashInputs == nil
	var checksums []*token
	for _, t := range hashes {
		switch {
		case !t.kept && d.result.WantsHashInputs:
			t.renew("it may be a checksum")
		case d.isContentHash(t):
			checksums = append(checksums, t)
		case !t.kept:
			t.renew("it is random, which restarts the pods each time")
		}
	}
	for _, t := range checksums {
		if !t.kept {
			t.keep(*t.recorded, t.revision)
		}
	}
	if len(checksums) > 0 && d.configChanged() {
		for _, t := range checksums {
			t.renew("a ConfigMap or Secret of the release changes")
		}
	}
}

var (
	base64Run = lazyregexp.New(`[A-Za-z0-9+/]{4,}={0,2}`)
	// contentStart matches the start of rendered content, or of a part of it that is hashed.
	contentStart = lazyregexp.New(`^\s*(---|#|\{|\[|apiVersion|kind|metadata|[A-Za-z0-9_."'/-]+:(\s|$))`)
	// manifestStart matches the beginning of an object, anywhere in a text.
	manifestStart = lazyregexp.New(`(?m)^(apiVersion|kind):\s`)
)

// isContentHash reports whether a hash is that of rendered content and not of random text.
func (d *decider) isContentHash(t *token) bool {
	o := d.withHashInputs[d.objectKey(t.owner.id)]
	if o == nil {
		return false
	}
	text, _ := valueAt(o.content, t.keys).(string)
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil && o.isSecret() {
		text = string(plain)
	}
	runs := base64Run().FindAllString(text, -1)
	if len(runs) == 0 {
		return false
	}
	longest := slices.MaxFunc(runs, func(a, b string) int { return len(a) - len(b) })
	run := strings.TrimRight(longest, "=")
	data, err := base64.RawStdEncoding.DecodeString(run)
	if err != nil { // the run may be cut off
		data, err = base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
	}
	if err != nil {
		return false
	}
	content := string(data)
	if !t.inPodAnnotation() {
		// The hash of less than a whole object may be that of a password.
		return manifestStart().MatchString(content)
	}
	for _, start := range []string{"apiVersion:", "kind:", "metadata:"} {
		if len(content) >= 4 && strings.HasPrefix(start, strings.TrimSpace(content)) {
			return true // the hash is cut off within the first word
		}
	}
	return contentStart().MatchString(content) || d.containsGenerated(content)
}

// containsGenerated reports whether a text contains a generated value of the same rendering.
func (d *decider) containsGenerated(text string) bool {
	for _, t := range d.tokens {
		if t.inPodAnnotation() || t.nonText != nil {
			continue
		}
		o := d.withHashInputs[d.objectKey(t.owner.id)]
		if o == nil {
			continue
		}
		value, _ := fieldOf(o.content, t.keys).(string)
		rendered, _ := fieldOf(t.owner.content, t.keys).(string)
		for _, word := range strings.FieldsFunc(value, isNotWord) {
			if len(word) >= 6 && !strings.Contains(rendered, word) && strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}

// configChanged reports whether a ConfigMap or Secret, with its kept values, differs from the
// last successful revision.
func (d *decider) configChanged() bool {
	last := Revision{}
	for _, r := range d.in.Earlier {
		if r.Successful || last.Number == 0 {
			last = r
		}
	}
	recordedTexts, renderedTexts := documentTexts(last), documentTexts(d.in.Rendered)
	recorded, rendered := index{}, index{}
	for _, text := range recordedTexts {
		if !slices.Contains(renderedTexts, text) {
			d.addConfigObjects(recorded, &document{text: text})
		}
	}
	for _, doc := range d.documents {
		if !slices.Contains(recordedTexts, doc.text) || len(doc.edits) > 0 || len(doc.orders) > 0 {
			d.addConfigObjects(rendered, doc)
		}
	}
	return !maps.EqualFunc(recorded, rendered, func(a, b *object) bool { return reflect.DeepEqual(a.content, b.content) })
}

// addConfigObjects adds the ConfigMaps and Secrets of a document, with its edits.
func (d *decider) addConfigObjects(to index, doc *document) {
	doc.root, _ = decode(doc.text) // one that can't be read has no objects
	for _, o := range objectsIn(doc, doc.content(), nil) {
		if o.isConfig() {
			to[d.objectKey(o.id)] = o
		}
	}
}
