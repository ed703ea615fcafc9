package generated

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"deployer/internal/annotation"
)

// shared is how long a token has to be for two equal ones to be copies of one
// value, and not by chance.
const shared = 8

// A group is a generated value with its copies.
type group struct {
	tokens []*token
	cert   *x509.Certificate
	key    crypto.Signer
	set    *group // representative; itself for one

	hashOf *derivation // how it comes from another group
	source *group      // of hashOf, or of what a salted hash is made of

	past     string
	has      bool
	revision int
}

func (g *group) text() string { return g.tokens[0].text }

func (g *group) root() *group {
	for g.set != g {
		g = g.set
	}
	return g
}

func join(a, b *group) {
	if ra, rb := a.root(), b.root(); ra != rb {
		rb.set = ra
	}
}

// resolve decides which tokens are kept: values with their copies, and everything
// that was made of them, together.
func (k *keeper) resolve() {
	groups := k.groups()
	k.link(groups)
	var order []*group
	sets := map[*group][]*group{}
	for _, g := range groups {
		root := g.root()
		if sets[root] == nil {
			order = append(order, root)
		}
		sets[root] = append(sets[root], g)
	}
	for _, root := range order {
		k.decide(sets[root])
	}
}

// groups puts copies together. Annotations that force restarts are only in the
// group of something else; what is part of a generated name is in none.
func (k *keeper) groups() []*group {
	var out []*group
	byText := map[string]*group{}
	add := func(t *token) {
		key := strings.TrimSpace(t.text)
		if t.whole == nil && len(t.text) >= shared && strings.ContainsFunc(key, isLetter) {
			if g := byText[key]; g != nil {
				g.tokens = append(g.tokens, t)
				return
			}
		}
		if t.forced && (byText[key] == nil || t.whole != nil) {
			return // see checksums
		}
		g := &group{tokens: []*token{t}}
		g.set = g
		byText[key] = g
		out = append(out, g)
	}
	for _, t := range k.tokens {
		switch {
		case t.whole == nil && len(t.text) >= 4 && slices.ContainsFunc(k.names, func(name string) bool { return strings.Contains(name, t.text) }):
			t.renew("it is part of a generated name, which is never kept")
		case !t.forced:
			add(t)
		}
	}
	for _, t := range k.tokens {
		if t.forced && t.reason == "" {
			add(t)
		}
	}
	return out
}

func isLetter(r rune) bool { return isWord(r) && (r < '0' || r > '9') }

// link joins what belongs together: keys and certificates, a CA and what it signed,
// hashes and what they are made of.
func (k *keeper) link(groups []*group) {
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
			join(key, g)
		}
		for _, ca := range certs {
			if ca != g && signs(ca.cert, g.cert) {
				join(ca, g)
			}
		}
	}
	for t, d := range derivations(k.tokens) {
		if g, source := of[t], of[d.source]; g == nil && source != nil && t.forced {
			g = &group{tokens: []*token{t}, hashOf: &d, source: source}
			k.derive(g, source)
		} else if g != nil && source != nil && g != source {
			g.hashOf, g.source = &d, source
			join(source, g)
		}
	}
	for _, g := range groups {
		if t := g.tokens[0]; t.isBcrypt() {
			if g.source = madeOf(t, groups); g.source != nil {
				join(g.source, g)
			}
		}
	}
}

// derive makes of an annotation that is a hash of a value a member of its set. It
// isn't in the groups: nothing depends on it.
func (k *keeper) derive(g, source *group) {
	g.set = source
	source.tokens[0].hashes = append(source.tokens[0].hashes, g)
}

// madeOf finds the generated value of which a salted hash is.
func madeOf(t *token, groups []*group) *group {
	plain := t.plains()
	for _, g := range groups {
		if other := g.tokens[0]; other != t && len(plain) > 0 && other.whole == nil && len(plain[0]) >= 4 && slices.Equal(other.again, plain) {
			return g
		}
	}
	return nil
}

// decide keeps or renews a set.
func (k *keeper) decide(set []*group) {
	for _, g := range set {
		g.recall()
	}
	reason := k.asked(set)
	if reason == "" {
		reason = disagreement(set)
	}
	if reason == "" {
		reason = k.certificates(set)
	}
	for _, g := range set {
		if g.source == nil {
			g.assign(reason)
			if reason == "" && g.has {
				k.saltOrCipher(g)
			}
		}
	}
	for _, g := range set {
		if g.source != nil {
			k.follow(g, reason)
		}
		for _, h := range g.tokens[0].hashes {
			k.follow(h, reason)
		}
	}
}

// asked says why a set is renewed although it could be kept: an object's annotation
// comes before the policy, and renewing before keeping.
func (k *keeper) asked(set []*group) string {
	var keep bool
	for _, g := range set {
		for _, t := range g.tokens {
			switch t.owner.policy {
			case Renew:
				return fmt.Sprintf("%s: renew on %s", annotation.Generated.Name, k.show(t.owner))
			case Keep:
				keep = true
			}
		}
	}
	if k.in.Policy == Renew && !keep {
		return "--generated renew"
	}
	return ""
}

// show names an object for people.
func (k *keeper) show(o *object) string {
	id := o.id
	if id.Namespace == "" && (o.isHashed() || !clusterScoped[id.Kind]) {
		id.Namespace = k.in.Namespace
	}
	return id.String()
}

// clusterScoped are kinds with generated content that are in no namespace.
// https://kubernetes.io/docs/reference/kubernetes-api/
var clusterScoped = map[string]bool{
	"ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true, "CustomResourceDefinition": true,
	"APIService": true, "Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "PersistentVolume": true,
	"StorageClass": true, "PriorityClass": true, "IngressClass": true,
}

// recall collects what is recorded of a value.
func (g *group) recall() {
	for _, t := range g.tokens {
		if t.past == nil {
			continue
		}
		if !g.has || t.revision > g.revision {
			g.past, g.has, g.revision = *t.past, true, t.revision
		}
	}
}

// disagreement says that copies of one value are recorded otherwise.
func disagreement(set []*group) string {
	for _, g := range set {
		if g.source != nil || len(g.tokens) < 2 {
			continue
		}
		for _, t := range g.tokens {
			if t.past != nil && strings.TrimSpace(*t.past) != strings.TrimSpace(g.past) {
				return "its copies are recorded with different values"
			}
		}
	}
	return ""
}

// assign keeps what is recorded, unless there is a reason not to.
func (g *group) assign(reason string) {
	for _, t := range g.tokens {
		switch {
		case reason != "":
			t.renew(reason)
		case !g.has:
			t.renew(t.why)
		case t.past != nil:
			t.keep(*t.past, t.revision)
		default:
			t.keep(g.past, g.revision)
		}
	}
}

// follow gives a hash the value that fits what it is made of.
func (k *keeper) follow(g *group, reason string) {
	source := g.source.tokens[0]
	if reason == "" && !source.kept {
		reason = "what it is made of is new"
	}
	if reason != "" {
		for _, t := range g.tokens {
			t.renew(reason)
		}
		return
	}
	value := ""
	switch {
	case g.hashOf != nil:
		value = g.hashOf.of(source.final)
	case g.has && fits(g.past, source.final):
		value = g.past
	default:
		var err error
		if value, err = salted(source.final); err != nil {
			value = g.text()
		}
	}
	for _, t := range g.tokens {
		t.keep(value, max(t.revision, source.revision))
	}
}

// saltOrCipher renews a salted hash or a cipher that is made of something else now.
func (k *keeper) saltOrCipher(g *group) {
	t := g.tokens[0]
	const changed = "it is made of another value now"
	if t.isBcrypt() {
		if plains := t.plains(); !fits(g.past, plains[0]) {
			g.assign(changed)
		}
		return
	}
	if password, text, ok := t.cipherOf(); ok && decrypted(password, g.past) != text {
		g.assign(changed)
	}
}

// certificates says why a set with certificates can't be kept.
func (k *keeper) certificates(set []*group) string {
	pastCert, pastKey := map[*group]*x509.Certificate{}, map[*group]crypto.Signer{}
	var crypts []*group
	var recorded int
	for _, g := range set {
		if g.cert == nil && g.key == nil {
			continue
		}
		crypts = append(crypts, g)
		if g.has {
			recorded++
			pastCert[g], pastKey[g] = readCertificate(g.past), readKey(g.past)
		}
	}
	if recorded == 0 {
		return ""
	}
	for _, g := range crypts {
		t := g.tokens[0]
		place := k.show(t.owner) + " " + t.path
		if !g.has {
			return fmt.Sprintf("%s belongs to it and is new", place)
		}
		if reason := unlike(g, pastCert[g], pastKey[g]); reason != "" {
			return fmt.Sprintf("%s: %s", place, reason)
		}
	}
	if !consistent(crypts, pastCert, pastKey) {
		return "what is recorded of it doesn't belong together"
	}
	for _, g := range crypts {
		if c := pastCert[g]; c != nil && due(c, k.in.Now) {
			text := fmt.Sprintf("certificate of %s expires on %s: renewed", k.show(g.tokens[0].owner), c.NotAfter.UTC().Format(time.DateOnly))
			if !slices.Contains(k.warns, text) {
				k.warns = append(k.warns, text)
			}
			return text
		}
	}
	return ""
}

// unlike says why a recorded certificate or key isn't what the chart wants now.
func unlike(g *group, cert *x509.Certificate, key crypto.Signer) string {
	if g.key != nil {
		switch {
		case key == nil:
			return "no private key is recorded"
		case keyKind(key.Public()) != keyKind(g.key.Public()):
			return "the kind of key has changed"
		}
		return ""
	}
	if cert == nil {
		return "no certificate is recorded"
	}
	var again []*x509.Certificate
	for _, text := range g.tokens[0].again {
		again = append(again, readCertificate(text))
	}
	if trait := changedTrait(g.cert, again, cert); trait != "" {
		return "the " + trait + " of the certificate changed"
	}
	return ""
}

// consistent tells whether recorded keys and signatures fit as the rendered ones do.
func consistent(crypts []*group, certs map[*group]*x509.Certificate, keys map[*group]crypto.Signer) bool {
	for _, g := range crypts {
		if g.cert == nil {
			continue
		}
		for _, other := range crypts {
			switch {
			case other.key != nil && publicKey(other.key.Public()) == publicKey(g.cert.PublicKey):
				if publicKey(keys[other].Public()) != publicKey(certs[g].PublicKey) {
					return false
				}
			case other.cert != nil && other != g && signs(other.cert, g.cert):
				if !signs(certs[other], certs[g]) {
					return false
				}
			}
		}
	}
	return true
}
