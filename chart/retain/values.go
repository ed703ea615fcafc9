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

	// How it is computed from another value; source is nil if it isn't.
	source *value
	derive func(source string) string // nil for a salted hash
	// parts are the source and what else is in it of other values, if what is around the source is generated too.
	parts []*value

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
		if v.source == nil && d.isChecksum(v) {
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

// decide keeps or renews a value, after the one that it is computed from.
func (d *decider) decide(v *value) {
	if v.decided {
		return
	}
	v.decided = true
	if v.source != nil {
		d.decide(v.source)
		d.deriveFromSource(v)
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

// keepsParts reports whether a value that has others in it is as recorded: in all its places, and with those.
func (d *decider) keepsParts(v *value) bool {
	if v.recorded == nil || d.requestedRenewal([]*value{v}) != "" {
		return false
	}
	for _, part := range v.parts {
		d.decide(part)
		if p := part.places[0]; !p.kept || !strings.Contains(*v.recorded, strings.TrimSpace(p.final)) {
			return false
		}
	}
	return !slices.ContainsFunc(v.places, func(p *place) bool {
		return p.recorded != nil && strings.TrimSpace(*p.recorded) != strings.TrimSpace(*v.recorded)
	})
}

// deriveFromSource computes a value from the final text of another one.
func (d *decider) deriveFromSource(v *value) {
	source := v.source.places[0]
	text := ""
	switch {
	case !source.kept:
	case v.parts != nil && d.keepsParts(v):
		text = strings.TrimSpace(*v.recorded)
	case v.derive != nil:
		text = v.derive(strings.TrimSpace(source.final))
	case v.recorded != nil && d.bcryptMatches(*v.recorded, source.final):
		text = *v.recorded
	default:
		text = bcryptHash(source.final)
	}
	for _, p := range v.places {
		if text == "" {
			p.renew("what it is made of is new")
		} else {
			p.keep(p.withCore(text), max(p.revision, source.revision))
		}
	}
}
