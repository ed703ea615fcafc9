package chart

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"runtime"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// certificateFunctions make a certificate with a new key. Each has a variant, whose name ends with WithKey, that
// takes the key as its last argument. https://masterminds.github.io/sprig/crypto.html
var certificateFunctions = []string{"genCA", "genSelfSignedCert", "genSignedCert"}

// keyedVariants replaces the functions that make a certificate by their variants with a key, which is given as a template
// expression. Each name ends with spaces as no template has them, see restoreCalls.
func keyedVariants(key string) map[string]substitution {
	out := map[string]substitution{}
	for _, name := range certificateFunctions {
		out[name] = substitution{name: name + "WithKey   ", suffix: " " + key}
	}
	return out
}

// newKey makes a private key as certificateFunctions do.
func newKey() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }

// pemOf writes a key as certificateFunctions do.
func pemOf(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// Searching prime numbers takes longer than all else in a chart with certificates, and templates are evaluated
// one after the other. So their keys are made on all processors: a template looks up a made-up kind,
// and finds another new key each time.
const (
	newKeyKind   = "deployer.io/new-key"
	newKeyLookup = `(lookup "" "` + newKeyKind + `" "" "next").key`
)

// A keySupply makes the keys that templates look up, some of them ahead.
type keySupply struct {
	ctx          context.Context // of the one rendering it was made for
	sharedPrimes bool
	calls        int // that the templates have; each may be evaluated several times or not at all
	begun, taken int // keys
	made         chan madeKey
	latest       *rsa.PrivateKey // if keys share their primes
}

type madeKey struct {
	key *rsa.PrivateKey
	err error
}

// useKeySupply changes the templates of a chart, a copy of the caller's own, and of its subcharts so that they
// look up the keys of their certificates. It returns nil if they make none.
func useKeySupply(ctx context.Context, root *helmchart.Chart, sharedPrimes bool) *keySupply {
	s := &keySupply{ctx: ctx, sharedPrimes: sharedPrimes, made: make(chan madeKey)}
	instead := keyedVariants(newKeyLookup)
	for _, c := range allCharts(root) {
		c.Templates = rewriteFiles(c.Templates, func(t *helmchart.File) string {
			if !containsAny(t.Data, certificateFunctions...) {
				return string(t.Data)
			}
			return replaceCalls(string(t.Data), false, instead, func(name string) {
				if instead[name].name != "" {
					s.calls++
				}
			})
		})
	}
	if s.calls == 0 {
		return nil
	}
	return s
}

// next returns a key that nobody else gets. It isn't safe for concurrent use.
func (s *keySupply) next() (string, error) {
	if s.sharedPrimes {
		return s.nextOfSharedPrimes()
	}
	s.taken++
	left := max(s.calls-s.taken, s.taken-s.calls) // a guess: calls in loops need more keys than there are calls
	for ahead := min(left, runtime.GOMAXPROCS(0)-1); s.begun < s.taken+ahead; s.begun++ {
		go s.makeOne()
	}
	select {
	case made := <-s.made:
		if made.err != nil {
			return "", made.err
		}
		return pemOf(made.key), nil
	case <-s.ctx.Done():
		return "", s.ctx.Err()
	}
}

// makeOne makes a key. A search for primes can't be stopped: a key that is being made when the rendering ends is dropped.
func (s *keySupply) makeOne() {
	key, err := newKey()
	select {
	case s.made <- madeKey{key, err}:
	case <-s.ctx.Done():
	}
}

// nextOfSharedPrimes returns a key that nobody else gets, with the same two prime numbers each time, so that they are
// searched for only once, and with another public exponent. Whoever has one of these keys can compute all others.
func (s *keySupply) nextOfSharedPrimes() (string, error) {
	if s.latest == nil {
		key, err := newKey()
		if err != nil {
			return "", err
		}
		s.latest = key
		return pemOf(key), nil
	}
	next := *s.latest
	one := big.NewInt(1)
	totient := new(big.Int).Mul(new(big.Int).Sub(next.Primes[0], one), new(big.Int).Sub(next.Primes[1], one))
	for next.D = nil; next.D == nil; { // an exponent that has a factor in common with the totient has no inverse
		next.E += 2
		next.D = new(big.Int).ModInverse(big.NewInt(int64(next.E)), totient)
	}
	next.Precomputed = rsa.PrecomputedValues{}
	next.Precompute()
	s.latest = &next
	return pemOf(&next), next.Validate()
}
