package generated

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// minCopyLength is how long equal tokens must be to count as copies of one value; shorter
// ones may be equal by chance.
const minCopyLength = 8

// A group is a generated value with its copies.
type group struct {
	tokens []*token
	cert   *x509.Certificate
	key    crypto.Signer
	parent *group // of the union-find structure: a group leads to the representative of its set, which is its own parent

	derivation *derivation // how it is computed from source; nil if it isn't, or by a salted hash
	source     *group      // the value that it is computed from; nil if there is none

	recorded *string // nil when nothing is recorded
	revision int

	annotationHashes []*group // hashes of it in annotations of pods; nothing is computed from them

	recordedCert *x509.Certificate // recorded as a certificate or key; nil if it isn't one
	recordedKey  crypto.Signer
}

func (g *group) text() string { return g.tokens[0].rendered }

func (g *group) root() *group {
	for g.parent != g {
		g = g.parent
	}
	return g
}

// mergeSets makes one set of those of two groups.
func mergeSets(a, b *group) {
	if ra, rb := a.root(), b.root(); ra != rb {
		rb.parent = ra
	}
}

// decideSets decides which tokens are kept. Values, their copies and everything computed from
// them are kept or renewed together.
func (d *decider) decideSets() {
	groups := d.groupCopies()
	d.linkGroups(groups)
	sets := map[*group][]*group{}
	for _, g := range groups {
		sets[g.root()] = append(sets[g.root()], g)
	}
	for _, g := range groups {
		if set := sets[g.root()]; set[0] == g {
			d.decideSet(set)
		}
	}
}

// groupCopies groups copies of the same value. An annotation of a pod has no group of its own: it may
// only be a copy of another value. A part of a generated name is in no group.
func (d *decider) groupCopies() []*group {
	var out []*group
	byText := map[string]*group{}
	add := func(t *token) {
		key := strings.TrimSpace(t.rendered)
		if t.nonText == nil && len(t.rendered) >= minCopyLength && strings.ContainsFunc(key, isLetter) {
			if g := byText[key]; g != nil {
				g.tokens = append(g.tokens, t)
				return
			}
		}
		if t.inPodAnnotation() && (byText[key] == nil || t.nonText != nil) {
			return // see decideChecksums
		}
		g := &group{tokens: []*token{t}}
		g.parent = g
		byText[key] = g
		out = append(out, g)
	}
	for _, t := range d.tokens {
		switch {
		case t.nonText == nil && len(t.rendered) >= 4 && slices.ContainsFunc(d.generatedNames, func(name string) bool { return strings.Contains(name, t.rendered) }):
			t.renew("it is part of a generated name, which is never kept")
		case !t.inPodAnnotation():
			add(t)
		}
	}
	for _, t := range d.tokens {
		if t.inPodAnnotation() && t.reason == "" {
			add(t)
		}
	}
	return out
}

func isLetter(r rune) bool { return isWord(r) && (r < '0' || r > '9') }

// linkGroups puts into one set what belongs together: keys and their certificates, a CA and the
// certificates that it has signed, hashes and their inputs.
func (d *decider) linkGroups(groups []*group) {
	of := map[*token]*group{}
	keys := map[string]*group{}
	var certs []*group
	for _, g := range groups {
		for _, t := range g.tokens {
			of[t] = g
		}
		if !strings.HasPrefix(g.text(), "-----BEGIN") {
			continue
		}
		if g.cert = readCertificate(g.text()); g.cert != nil {
			certs = append(certs, g)
		} else if g.key = readKey(g.text()); g.key != nil {
			keys[publicKey(g.key.Public())] = g
		}
	}
	for _, g := range certs {
		if key := keys[publicKey(g.cert.PublicKey)]; key != nil {
			mergeSets(key, g)
		}
		for _, ca := range certs {
			if ca != g && hasSigned(ca.cert, g.cert) {
				mergeSets(ca, g)
			}
		}
	}
	for t, derived := range derivations(d.tokens) {
		if g, source := of[t], of[derived.source]; g == nil && source != nil && t.inPodAnnotation() {
			g = &group{tokens: []*token{t}, derivation: &derived, source: source}
			source.annotationHashes = append(source.annotationHashes, g)
		} else if g != nil && source != nil && g != source {
			g.derivation, g.source = &derived, source
			mergeSets(source, g)
		}
	}
	for _, g := range groups {
		if source := saltedHashSource(g.tokens[0], groups); source != nil {
			g.source = source
			mergeSets(source, g)
		}
	}
}

// saltedHashSource returns the group of the value that a bcrypt hash was made of.
func saltedHashSource(t *token, groups []*group) *group {
	inputs := t.bcryptInputs()
	if len(inputs) == 0 || len(inputs[0]) < 4 {
		return nil
	}
	for _, g := range groups {
		if other := g.tokens[0]; other != t && other.nonText == nil && slices.Equal(other.rerendered, inputs) {
			return g
		}
	}
	return nil
}

// decideSet keeps or renews a set.
func (d *decider) decideSet(set []*group) {
	for _, g := range set {
		g.collectRecorded()
	}
	reason := d.requestedRenewal(set)
	if reason == "" {
		reason = recordedCopiesDiffer(set)
	}
	if reason == "" {
		reason = d.checkCertificates(set)
	}
	for _, g := range set {
		if g.source == nil {
			g.keepOrRenew(reason)
			if reason == "" && g.inputChanged() {
				g.keepOrRenew("it is made of another value now")
			}
		}
	}
	derived := map[*group]bool{}
	for _, g := range set {
		g.deriveAfterSource(reason, derived)
	}
	for _, g := range set {
		for _, hash := range g.annotationHashes {
			hash.deriveFromSource(reason)
		}
	}
}

// deriveAfterSource decides about a value that is computed from another one, after it has decided
// about that one in the same way. It does nothing if there is no other one.
func (g *group) deriveAfterSource(reason string, derived map[*group]bool) {
	if g.source == nil || derived[g] {
		return
	}
	derived[g] = true
	g.source.deriveAfterSource(reason, derived)
	g.deriveFromSource(reason)
}

// requestedRenewal returns the annotation or flag that asks to renew a set; empty if none does. An object's annotation
// overrides the policy, and renew overrides keep.
func (d *decider) requestedRenewal(set []*group) string {
	var keep bool
	for _, g := range set {
		for _, t := range g.tokens {
			switch t.owner.policy {
			case Renew:
				return fmt.Sprintf("%s: renew on %s", annotation.Generated.Name, d.idOf(t.owner))
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

// collectRecorded finds the latest recorded value among the copies of a group.
func (g *group) collectRecorded() {
	for _, t := range g.tokens {
		if t.recorded != nil && (g.recorded == nil || t.revision > g.revision) {
			g.recorded, g.revision = t.recorded, t.revision
		}
	}
}

// recordedCopiesDiffer returns a reason when copies of one value are recorded with different
// values; otherwise the empty string.
func recordedCopiesDiffer(set []*group) string {
	for _, g := range set {
		if g.source != nil || len(g.tokens) < 2 {
			continue
		}
		for _, t := range g.tokens {
			if t.recorded != nil && strings.TrimSpace(*t.recorded) != strings.TrimSpace(*g.recorded) {
				return "its copies are recorded with different values"
			}
		}
	}
	return ""
}

// keepOrRenew keeps what is recorded, unless there is a reason not to.
func (g *group) keepOrRenew(reason string) {
	for _, t := range g.tokens {
		switch {
		case reason != "":
			t.renew(reason)
		case g.recorded == nil:
			t.renew(t.missingReason)
		case t.recorded != nil:
			t.keep(*t.recorded, t.revision)
		default:
			t.keep(*g.recorded, g.revision)
		}
	}
}

// deriveFromSource computes a hash from the final value of its source, or renews it for a reason.
func (g *group) deriveFromSource(reason string) {
	source := g.source.tokens[0]
	if reason == "" && !source.kept {
		reason = "what it is made of is new"
	}
	value := ""
	switch {
	case reason != "":
	case g.derivation != nil:
		value = g.derivation.apply(source.final)
	case g.recorded != nil && bcryptMatches(*g.recorded, source.final):
		value = *g.recorded
	default:
		var err error
		if value, err = bcryptHash(source.final); err != nil {
			value = g.text()
		}
	}
	for _, t := range g.tokens {
		t.isDerived = true
		if reason != "" {
			t.renew(reason)
			continue
		}
		t.keep(value, max(t.revision, source.revision))
	}
}

// inputChanged reports whether a recorded salted hash or cipher was made of another input than the rendered one.
func (g *group) inputChanged() bool {
	if g.recorded == nil {
		return false
	}
	if inputs := g.tokens[0].bcryptInputs(); len(inputs) > 0 {
		return !bcryptMatches(*g.recorded, inputs[0])
	}
	password, text, ok := g.tokens[0].cipherInput()
	return ok && decryptAES(password, *g.recorded) != text
}

// checkCertificates returns why a set with certificates can't be kept; empty if it can.
func (d *decider) checkCertificates(set []*group) string {
	var certsAndKeys []*group
	var recorded int
	for _, g := range set {
		if g.cert == nil && g.key == nil {
			continue
		}
		certsAndKeys = append(certsAndKeys, g)
		if g.recorded != nil {
			recorded++
			g.recordedCert, g.recordedKey = readCertificate(*g.recorded), readKey(*g.recorded)
		}
	}
	if recorded == 0 {
		return ""
	}
	for _, g := range certsAndKeys {
		t := g.tokens[0]
		place := d.idOf(t.owner).String() + " " + t.fieldPath
		if g.recorded == nil {
			return fmt.Sprintf("%s belongs to it and is new", place)
		}
		if reason := certificateMismatch(g); reason != "" {
			return fmt.Sprintf("%s: %s", place, reason)
		}
	}
	if !chainsMatch(certsAndKeys) {
		return "its recorded parts don't match"
	}
	for _, g := range certsAndKeys {
		if c := g.recordedCert; c != nil && needsRenewal(c, d.in.Now) {
			text := fmt.Sprintf("certificate of %s expires on %s: renewed", d.idOf(g.tokens[0].owner), c.NotAfter.UTC().Format(time.DateOnly))
			if !slices.Contains(d.result.Warnings, text) {
				d.result.Warnings = append(d.result.Warnings, text)
			}
			return text
		}
	}
	return ""
}

// certificateMismatch returns why a recorded certificate or key isn't what the chart asks for now; empty if it is.
func certificateMismatch(g *group) string {
	if g.key != nil {
		switch {
		case g.recordedKey == nil:
			return "no private key is recorded"
		case keyKind(g.recordedKey.Public()) != keyKind(g.key.Public()):
			return "the kind of key has changed"
		}
		return ""
	}
	if g.recordedCert == nil {
		return "no certificate is recorded"
	}
	var rerendered []*x509.Certificate
	for _, text := range g.tokens[0].rerendered {
		rerendered = append(rerendered, readCertificate(text))
	}
	if trait := changedTrait(g.cert, rerendered, g.recordedCert); trait != "" {
		return "the " + trait + " of the certificate changed"
	}
	return ""
}

// chainsMatch reports whether the recorded keys and certificates belong together in the same
// way as the rendered ones.
func chainsMatch(certsAndKeys []*group) bool {
	for _, g := range certsAndKeys {
		if g.cert == nil {
			continue
		}
		for _, other := range certsAndKeys {
			switch {
			case other.key != nil && publicKey(other.key.Public()) == publicKey(g.cert.PublicKey):
				if publicKey(other.recordedKey.Public()) != publicKey(g.recordedCert.PublicKey) {
					return false
				}
			case other.cert != nil && other != g && hasSigned(other.cert, g.cert):
				if !hasSigned(other.recordedCert, g.recordedCert) {
					return false
				}
			}
		}
	}
	return true
}
