package generated

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"

	"deployer/internal/annotation"
	"deployer/internal/lazyregexp"
)

// decideChecksums decides about hashes of what the chart renders, in annotations of pod
// templates and elsewhere: they are kept while no ConfigMap and no Secret of the release
// changes. Any other annotation of a pod template is there to restart the pods each time.
func (k *decider) decideChecksums() {
	var checksums []*token
	for _, t := range k.tokens {
		switch {
		case t.reason != "" || t.nonText != nil && !t.inPodAnnotation:
		case t.kept:
			if isHash(t.text) && !t.isDerived && k.in.HashesFound {
				checksums = append(checksums, t)
			}
		case !t.inPodAnnotation:
		case t.owner.policy == Renew:
			t.renew(annotation.Generated.Name + ": renew")
		case k.in.Policy == Renew && t.owner.policy != Keep:
			t.renew("--generated renew")
		case t.nonText != nil || !isHash(t.text) || !k.in.HashesFound:
			t.renew("it is random, which restarts the pods each time")
		case t.recorded == nil:
			t.renew(t.missingReason)
		default:
			checksums = append(checksums, t)
		}
	}
	k.keepChecksums(checksums)
}

// keepChecksums keeps those of the hashes that have to be: outside of pod annotations
// random ones are kept already.
func (k *decider) keepChecksums(hashes []*token) {
	if len(hashes) == 0 {
		return
	}
	k.wantsHashInputs = k.in.WithHashInputs == nil
	var checksums []*token
	for _, t := range hashes {
		switch {
		case !t.kept && k.wantsHashInputs:
			t.renew("it may be a checksum")
		case k.isContentHash(t):
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
	if len(checksums) > 0 && k.configChanged() {
		for _, t := range checksums {
			t.renew("a ConfigMap or Secret of the release changes")
		}
	}
}

var (
	base64Run = lazyregexp.New(`[A-Za-z0-9+/]{4,}={0,2}`)
	// contentStart matches the start of rendered content, or of a part of it that is hashed.
	contentStart = lazyregexp.New(`^\s*(---|#|\{|\[|apiVersion|kind|metadata|[A-Za-z0-9_."'/-]+:(\s|$))`)
	// manifestStart is in what has the beginning of an object in it.
	manifestStart = lazyregexp.New(`(?m)^(apiVersion|kind):\s`)
)

// isContentHash reports whether a hash is that of rendered content and not of random text.
func (k *decider) isContentHash(t *token) bool {
	o := k.withHashInputs[k.objectKey(t.owner.id)]
	if o == nil {
		return false
	}
	text, _ := valueAt(o.content, t.keys).(string)
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil && o.isSecret() {
		text = string(plain)
	}
	runs := base64Run().FindAllString(text, -1)
	slices.SortFunc(runs, func(a, b string) int { return len(b) - len(a) })
	if len(runs) == 0 {
		return false
	}
	run := strings.TrimRight(runs[0], "=")
	data, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
	if rest, rerr := base64.RawStdEncoding.DecodeString(run); rerr == nil {
		data, err = rest, nil
	}
	if err != nil {
		return false
	}
	content := string(data)
	if !t.inPodAnnotation {
		// Of other text than a whole object it may be a password's.
		return manifestStart().MatchString(content)
	}
	for _, start := range []string{"apiVersion:", "kind:", "metadata:"} {
		if len(content) >= 4 && strings.HasPrefix(start, strings.TrimSpace(content)) {
			return true // the beginning of a shortened one
		}
	}
	return contentStart().MatchString(content) || k.containsGenerated(content)
}

// containsGenerated reports whether a text contains a generated value of the same rendering.
func (k *decider) containsGenerated(text string) bool {
	for _, t := range k.tokens {
		if t.inPodAnnotation || t.nonText != nil {
			continue
		}
		o := k.withHashInputs[k.objectKey(t.owner.id)]
		if o == nil {
			continue
		}
		value, _ := fieldOf(o.content, t.keys).(string)
		now, _ := fieldOf(t.owner.content, t.keys).(string)
		for _, word := range strings.FieldsFunc(value, isNotWord) {
			if len(word) >= 6 && !strings.Contains(now, word) && strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}

// configChanged reports whether a ConfigMap or Secret, with its kept values, differs from the
// last successful revision.
func (k *decider) configChanged() bool {
	last := Revision{}
	for _, r := range k.in.Earlier {
		if r.Successful || last.Number == 0 {
			last = r
		}
	}
	var was, now []string
	was = documentTexts(last)
	for _, d := range k.documents {
		now = append(now, d.text)
	}
	old, next := index{}, index{}
	for _, text := range was {
		if !slices.Contains(now, text) {
			k.addConfigObjects(old, &document{text: text})
		}
	}
	for _, d := range k.documents {
		if !slices.Contains(was, d.text) || len(d.edits) > 0 || len(d.orders) > 0 {
			k.addConfigObjects(next, d)
		}
	}
	if len(old) != len(next) {
		return true
	}
	for id, o := range next {
		if old[id] == nil || !reflect.DeepEqual(o.content, old[id].content) {
			return true
		}
	}
	return false
}

// addConfigObjects adds the ConfigMaps and Secrets of a document, with its edits.
func (k *decider) addConfigObjects(to index, d *document) {
	root, err := decode(d.text)
	if err != nil {
		return
	}
	d.root = root
	for _, o := range objectsIn(d, d.content(), nil) {
		if o.isConfig() {
			to[k.objectKey(o.id)] = o
		}
	}
}
