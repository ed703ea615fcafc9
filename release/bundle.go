package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/lazyregexp"
)

// What doesn't fit into the Secret that Helm sees, the head, is in bundles: the body of the
// record, and the entries of its journal. A bundle is cut into parts, a Secret each. Parts are
// written before the head that refers to them, and never changed. The head refers to bundles in
// labels, because Helm keeps only our labels when it writes a record.

const (
	partType   = corev1.SecretType("deployer.io/release.part.v1")
	partPrefix = "sh.deployer.release.v1."
	ownerParts = "deployer" // Helm looks for owner=helm

	// The labels by which a head refers to its bundles: the body, and the entries of the journal.
	labelBody    = prefix + "parts"
	labelEntries = prefix + "journal"

	labelDigest = prefix + "body" // on parts: the digest of their bundle

	// partSize is how much of a bundle one part holds, in bytes. With metadata
	// it stays below maxSecret, and below etcd's limit of a request.
	partSize = 900 << 10

	// maxParts limits what one revision may take of etcd: 28 MiB.
	maxParts = 32
)

// A bundleRef is what a head says of a bundle.
type bundleRef struct {
	label  string // of the head
	digest string
	count  int // of parts
}

// A bundle is data of a record in parts.
type bundle struct {
	bundleRef
	parts [][]byte // nil for a bundle that is stored already
}

// newBundle cuts packed data into parts.
func newBundle(label string, packed []byte) bundle {
	parts := slices.Collect(slices.Chunk(packed, partSize))
	return bundle{bundleRef{label, digestOf(packed), len(parts)}, parts}
}

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])[:32]
}

// join joins parts and checks them against the digest.
func (b bundleRef) join(parts [][]byte) ([]byte, error) {
	packed := bytes.Join(parts, nil)
	if digestOf(packed) != b.digest {
		return nil, fmt.Errorf("its %d parts don't match their digest", len(parts))
	}
	return packed, nil
}

// labelValue is what the head's label says: "v7.3.<digest>". It has the revision because Helm
// copies labels to the next revision, where this one is invalid.
func (b bundleRef) labelValue(revision int) string {
	return fmt.Sprintf("v%d.%d.%s", revision, b.count, b.digest)
}

var bundleLabel = lazyregexp.New(`^v([0-9]{1,9})\.([0-9]{1,2})\.([0-9a-f]{32})$`)

// bundlesOf reads the labels of a revision's head. It is empty when the record is in one Secret.
func bundlesOf(labels map[string]string, revision int) []bundleRef {
	var out []bundleRef
	for _, label := range []string{labelBody, labelEntries} {
		m := bundleLabel().FindStringSubmatch(labels[label])
		if m == nil || m[1] != strconv.Itoa(revision) {
			continue
		}
		if count, err := strconv.Atoi(m[2]); err == nil && count > 0 && count <= maxParts {
			out = append(out, bundleRef{label, m[3], count})
		}
	}
	return out
}

// partNames are the names of the Secrets of bundles.
func partNames(release string, revision int, bundles ...bundleRef) (names []string) {
	for _, b := range bundles {
		for i := range b.count {
			names = append(names, b.partName(release, revision, i))
		}
	}
	return names
}

func (b bundleRef) partName(release string, revision, index int) string {
	return fmt.Sprintf("%s%s.v%d.%s.%d", partPrefix, release, revision, b.digest, index)
}

// newPart makes the Secret of a part. It is deleted with the head, if that exists already.
func newPart(rec *Record, b bundle, index int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      b.partName(rec.Name, rec.Version, index),
			Namespace: rec.Namespace,
			Labels: map[string]string{
				"name":      rec.Name,
				"owner":     ownerParts,
				"version":   strconv.Itoa(rec.Version),
				labelDigest: b.digest,
			},
			OwnerReferences: headAsOwner(rec),
		},
		Type:      partType,
		Immutable: new(true),
		Data:      map[string][]byte{"part": b.parts[index]},
	}
}

// headAsOwner refers to the head of a record; nil when it isn't stored.
func headAsOwner(rec *Record) []metav1.OwnerReference {
	if rec.stored.uid == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: SecretName(rec.Name, rec.Version), UID: rec.stored.uid}}
}
