package retain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"deployer/internal/kube"
)

// A copy can stand where nothing says whose it is, and keep a value there, while it belongs to somebody else everywhere else. So
// a value is renewed in all places if
//
//   - one of them, or of what is computed from it, belongs to another owner now,
//   - or one of them is new, and the recorded value stood, or has once stood, where it isn't any more: it may have been that of
//     somebody else.
const (
	movedOwner = "a copy of it belongs to somebody else now"
	movedCopy  = "it would come to a new place after it has left another one"
)

// renewMoved forgets what is recorded of values that would come to another owner.
func (d *decider) renewMoved(values []*value) {
	for _, v := range values {
		if v.recorded == nil || len(v.sources) > 0 {
			continue
		}
		madeOfIt := slices.DeleteFunc(slices.Clone(values), func(other *value) bool { return !other.isMadeOf(v) })
		if why := d.whyMoved(v, madeOfIt); why != "" {
			v.forget(why)
		}
	}
}

// forget drops what is recorded of a value. A place that belongs to another owner has its own reason.
func (v *value) forget(why string) {
	v.recorded = nil
	for _, p := range v.places {
		if p.recorded = nil; p.missing != missingOwner {
			p.missing = why
		}
	}
}

// salted and a text stand for all salted hashes of the text among what is computed from a value.
const salted = "\x00"

// whyMoved returns why what is recorded of a value would come to another owner; empty if it wouldn't. madeOfIt are the value itself
// and all that is computed from it.
func (d *decider) whyMoved(v *value, madeOfIt []*value) string {
	hasPlace := func(is func(*value, *place) bool) bool {
		return slices.ContainsFunc(madeOfIt, func(made *value) bool {
			return slices.ContainsFunc(made.places, func(p *place) bool { return is(made, p) })
		})
	}
	isOfAnother := func(_ *value, p *place) bool { return p.missing == missingOwner }
	isNew := func(made *value, p *place) bool { return !made.hasStayedAt(p) && d.mayBeOfSomebody(p) }
	switch {
	case hasPlace(isOfAnother):
		return movedOwner
	case len(strings.TrimSpace(*v.recorded)) >= minCopyLength && hasPlace(isNew) && d.hasLeft(madeOfIt):
		return movedCopy
	}
	return ""
}

// hasStayedAt reports whether what is recorded of a value is certain to have stood in a place.
func (v *value) hasStayedAt(p *place) bool {
	return p.recorded != nil || p.reworded.isOfSameOwner(p.rendered(), v.computed())
}

// hasLeft reports whether what is recorded of values, which are computed from each other, has once stood where it isn't any more.
func (d *decider) hasLeft(values []*value) bool {
	stayed := map[string]int{}
	for _, v := range values {
		stayed[v.computed()] += 0
		for _, p := range v.places {
			if v.hasStayedAt(p) {
				stayed[v.computed()]++
			}
		}
	}
	hasMore := func(r index) bool {
		for computed, n := range d.count(r, slices.Collect(maps.Keys(stayed))) {
			if n > stayed[computed] {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(d.earlier, hasMore) || slices.ContainsFunc(d.olderRevisions(), hasMore)
}

// olderRevisions are the revisions before those that may still be deployed.
func (d *decider) olderRevisions() []index {
	if d.older == nil && d.in.Older != nil {
		d.older = []index{}
		for _, r := range d.in.Older() {
			d.older = append(d.older, d.readIndex(r, nil))
		}
	}
	return d.older
}

// mayBeOfSomebody reports whether a new place may say that its value is somebody's. New workloads and configuration only use a
// value.
func (d *decider) mayBeOfSomebody(p *place) bool {
	isKnown := func(r index) bool { return r.byKey[d.key(p.owner.id)] != nil }
	switch {
	case p.missing != "": // a new entry
		return true
	case p.inPod:
		return false
	case slices.ContainsFunc(d.earlier, isKnown): // a new field
		return true
	}
	isCustom := !kube.IsBuiltinGroup(p.owner.id.Group) // which may be a user of its name
	return p.owner.isSecret() || isCustom || len(identities(p.owner.node)) > 0
}

// count counts where the texts that are computed from a recorded one stand in the objects of a revision. One that is cut off from
// another doesn't count where that stands.
func (d *decider) count(r index, computed []string) map[string]int {
	slices.SortFunc(computed, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	out := map[string]int{}
	for _, o := range r.byKey {
		o.node.eachOpened(func(s string) {
			for _, c := range computed {
				plain, isSalted := strings.CutPrefix(c, salted)
				if !isSalted {
					out[c] += strings.Count(s, c)
					s = strings.ReplaceAll(s, c, "\x01")
					continue
				}
				for _, hash := range saltedHashes().FindAllString(s, -1) {
					if d.bcryptMatches(hash, plain) {
						out[c]++
					}
				}
			}
		})
	}
	return out
}

// computed is what a value was with what is recorded of its sources: for a salted hash, and what is made of it, salted and what it is
// the hash of.
func (v *value) computed() string { return v.computedOnce(map[*value]string{}) }

func (v *value) computedOnce(known map[*value]string) string {
	if text, ok := known[v]; ok {
		return text
	}
	known[v] = v.computedBy(known)
	return known[v]
}

// computedBy is computed with what is known of others.
func (v *value) computedBy(known map[*value]string) string {
	switch {
	case v.recorded != nil && (len(v.sources) == 0 || v.isRough):
		return strings.TrimSpace(*v.recorded)
	case len(v.sources) == 0:
		return v.core()
	}
	var texts []string
	for _, source := range v.sources {
		texts = append(texts, source.computedOnce(known))
	}
	isSalted := func(text string) bool { return strings.HasPrefix(text, salted) }
	if v.derive == nil {
		return salted + texts[0]
	}
	if i := slices.IndexFunc(texts, isSalted); i >= 0 {
		return texts[i]
	}
	return v.derive(texts)
}

// eachOpened calls do for each text below a node that has no parts of its own, and what is in base64 in it, and for each key.
func (n *node) eachOpened(do func(string)) {
	n.eachKey(do)
	n.each(func(s *node) {
		l := s.open()
		if l == nil {
			do(s.text)
			for _, run := range runs().FindAllString(s.text, -1) {
				if plain, err := decode64(run); err == nil && isReadable([]byte(plain)) {
					do(plain)
				}
			}
			return
		}
		l.root.eachOpened(do)
		for _, comment := range l.comments.children {
			do(comment.text)
		}
	})
}

func (n *node) eachKey(do func(string)) {
	for _, child := range n.children {
		if n.kind == fields {
			do(child.name)
		}
		child.eachKey(do)
	}
}

// A rewording is a line of which other words are recorded.
type rewording struct{ now, before string }

// isOfSameOwner reports whether a line had a recorded text in place of a rendered one, behind the same word and with the same
// users in it.
func (r *rewording) isOfSameOwner(rendered, recorded string) bool {
	if r == nil {
		return false
	}
	now, _, _ := strings.Cut(r.now, rendered)
	before, _, found := strings.Cut(r.before, recorded)
	lastWord := func(s string) string {
		words := strings.FieldsFunc(s, isNotWord)
		return strings.Join(words[max(0, len(words)-1):], "")
	}
	return found && lastWord(now) == lastWord(before) && userBefore(now) == userBefore(before) && maps.Equal(usersIn(r.now, rendered), usersIn(r.before, recorded))
}

// usersIn returns what the words of a line that say whose it is say: the words behind them. What is generated says nothing, even
// if it reads like such a word by chance.
func usersIn(line, generated string) map[string]string {
	words := strings.FieldsFunc(strings.ReplaceAll(line, generated, "0"), func(r rune) bool { return isNotWord(r) && !strings.ContainsRune("_.@+-", r) })
	out := map[string]string{}
	for i, word := range words[:max(0, len(words)-1)] {
		if isOwnerKey(word) || word == "of" {
			out[strings.ToLower(word)] += " " + words[i+1]
		}
	}
	return out
}
