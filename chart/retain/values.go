package retain

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"deployer/internal/annotation"
)

// minCopyLength is how long equal texts must be to count as one value; shorter ones may be equal by chance.
const minCopyLength = 8

// A value is a generated value with all its places.
type value struct {
	places []*place

	// How it is computed from other values: as a hash or the like of one, or as a text with all of them. There are none if it isn't.
	sources []*value
	derive  func(sources []string) string // nil for a salted hash
	isRough bool                          // something around them is generated too

	set      *[]*value // the values that are kept or renewed together: certificates and their keys; nil for others
	cert     *x509.Certificate
	key      crypto.Signer
	recorded *string // nil when no recorded value is certain
	revision int
	decided  bool

	recordedCert *x509.Certificate // recorded as a certificate or key; nil if it isn't one
	recordedKey  crypto.Signer
}

func (v *value) text() string { return v.places[0].rendered() }

// core is the text without blank characters around it.
func (v *value) core() string { return strings.TrimSpace(v.text()) }

// onlyRestartsPods reports whether all its places are in pod templates, of objects that aren't asked to keep theirs.
func (v *value) onlyRestartsPods() bool {
	return !slices.ContainsFunc(v.places, func(p *place) bool { return !p.inPod || p.owner.policy == Keep })
}

// decideValues decides which values are kept.
func (d *decider) decideValues() {
	values := d.groupPlaces()
	findSources(values)
	d.findSaltedSources(values)
	linkCertificates(values)
	var checksums []*value
	for _, v := range values {
		v.findRecorded()
		if len(v.sources) == 0 && d.isChecksum(v) {
			v.decided = true
			checksums = append(checksums, v)
		}
	}
	d.renewMoved(values)
	for _, v := range values {
		d.decide(v)
	}
	d.decideChecksums(checksums)
}

// groupPlaces groups places with equal texts. Parts of generated names are renewed.
func (d *decider) groupPlaces() []*value {
	var out []*value
	byText := map[string]*value{}
	for _, p := range d.places {
		isOfName := func(name string) bool { return strings.Contains(name, p.rendered()) }
		if len(p.rendered()) >= 4 && slices.ContainsFunc(d.generatedNames, isOfName) {
			p.renew("it is part of a generated name, which is never kept")
			continue
		}
		key := strings.TrimSpace(p.rendered())
		isUnmistakable := len(p.rendered()) >= minCopyLength && strings.ContainsFunc(key, isLetter)
		if v := byText[key]; v != nil && isUnmistakable {
			v.places = append(v.places, p)
			continue
		}
		v := &value{places: []*place{p}}
		out = append(out, v)
		if isUnmistakable {
			byText[key] = v
		}
	}
	return out
}

func isLetter(r rune) bool { return isWord(r) && (r < '0' || r > '9') }

// findRecorded finds what is recorded in places that are certain to be the same.
func (v *value) findRecorded() {
	for _, p := range v.places {
		if p.recorded != nil && (v.recorded == nil || p.revision > v.revision) {
			v.recorded, v.revision = p.recorded, p.revision
		}
	}
}

// decide keeps or renews a value, after those that it is computed from.
func (d *decider) decide(v *value) {
	if v.decided {
		return
	}
	v.decided = true
	if len(v.sources) > 0 {
		d.deriveFromSources(v)
		return
	}
	set := []*value{v}
	if v.set != nil {
		set = *v.set
	}
	reason := d.reasonToRenew(set)
	for _, member := range set {
		member.decided = true
		member.keepOrRenew(reason)
	}
}

// reasonToRenew returns why values that belong together are renewed; empty if they are kept.
func (d *decider) reasonToRenew(set []*value) string {
	if reason := d.requestedRenewal(set); reason != "" {
		return reason
	}
	if !slices.ContainsFunc(set, func(v *value) bool { return !v.onlyRestartsPods() }) {
		return "it is only in a pod template, which restarts the pods each time"
	}
	for _, v := range set {
		for _, p := range v.places {
			if p.recorded != nil && strings.TrimSpace(*p.recorded) != strings.TrimSpace(*v.recorded) {
				return "its copies are recorded with different values"
			}
		}
		if d.inputChanged(v) {
			return "it is made of another value now"
		}
	}
	return d.checkCertificates(set)
}

// requestedRenewal returns the annotation or flag that asks to renew values; empty if none does. An object's annotation
// overrides the policy, and renew overrides keep.
func (d *decider) requestedRenewal(set []*value) string {
	keep := false
	for _, v := range set {
		for _, p := range v.places {
			switch p.owner.policy {
			case Renew:
				return fmt.Sprintf("%s: renew on %s", annotation.Generated.Name, d.idOf(p.owner))
			case Keep:
				keep = true
			}
		}
	}
	if d.in.Policy == Renew && !keep {
		return "--generated renew"
	}
	return ""
}

// keepOrRenew keeps what is recorded in all places, unless there is a reason not to.
func (v *value) keepOrRenew(reason string) {
	for _, p := range v.places {
		switch {
		case reason != "":
			p.renew(reason)
		case v.recorded == nil:
			p.renew(p.missing)
		case p.recorded != nil:
			p.keep(*p.recorded, p.revision)
		default:
			p.keep(p.withCore(*v.recorded), v.revision)
		}
	}
}

// withCore is the text of a place with another value between the same blank characters.
func (p *place) withCore(value string) string {
	return strings.Replace(p.rendered(), strings.TrimSpace(p.rendered()), strings.TrimSpace(value), 1)
}

// deriveFromSources computes a value from the final texts of others. If one of these is kept, so is what there is of it here.
func (d *decider) deriveFromSources(v *value) {
	var texts []string
	revision, isPartlyNew := 0, false
	for _, source := range v.sources {
		d.decide(source)
		texts = append(texts, strings.TrimSpace(source.places[0].final))
		of := source.places[0].revisionIfKept()
		revision, isPartlyNew = max(revision, of), isPartlyNew || of == 0
	}
	text := ""
	switch {
	case revision == 0:
	case v.isRough && d.keepsRecorded(v, texts):
		text = strings.TrimSpace(*v.recorded)
	case v.derive != nil:
		text = v.derive(texts)
	case v.recorded != nil && d.bcryptMatches(*v.recorded, texts[0]):
		text = *v.recorded
	default:
		text = bcryptHash(texts[0])
	}
	for _, p := range v.places {
		if text == "" {
			p.renew("what it is made of is new")
		} else {
			if p.keep(p.withCore(text), max(p.revision, revision)); isPartlyNew {
				p.reason = "a part of what it is made of is new"
			}
		}
	}
}

// keepsRecorded reports whether a value is the same in all places that are recorded, with the final texts of others in it.
func (d *decider) keepsRecorded(v *value, texts []string) bool {
	isOther := func(p *place) bool {
		return p.recorded != nil && strings.TrimSpace(*p.recorded) != strings.TrimSpace(*v.recorded)
	}
	isMissing := func(text string) bool { return !strings.Contains(*v.recorded, text) }
	return v.recorded != nil && d.requestedRenewal([]*value{v}) == "" && !slices.ContainsFunc(v.places, isOther) && !slices.ContainsFunc(texts, isMissing)
}
