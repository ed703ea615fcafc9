package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"deployer/internal/kube"
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

func hasBundle(bundles []bundleRef, label string) bool {
	return slices.ContainsFunc(bundles, func(b bundleRef) bool { return b.label == label })
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

// writeParts writes the parts of a large record that aren't there already.
// Parts are immutable and named by content, so one that exists is right.
func (l *Lock) writeParts(ctx context.Context, rec *Record, enc *encoded) error {
	var parts []*corev1.Secret
	for _, b := range enc.bundles {
		if slices.Contains(rec.stored.bundles, b.bundleRef) {
			continue
		}
		for i := range b.parts {
			parts = append(parts, newPart(rec, b, i))
		}
	}
	return kube.ForEach(len(parts), kube.ParallelRequests, func(i int) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := l.store.write(ctx, parts[i])
			if kube.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	})
}

// replaceParts deletes the parts that the head no longer refers to, and makes a new head
// the owner of its parts, so that they are deleted with it. The next trimming does
// both, so failures are only warnings.
func (l *Lock) replaceParts(ctx context.Context, rec *Record, old stored) {
	former := slices.DeleteFunc(slices.Clone(old.bundles), func(b bundleRef) bool { return slices.Contains(rec.stored.bundles, b) })
	err := l.store.deleteParts(ctx, rec.Name, rec.Version, former)
	if old.uid == "" {
		err = errors.Join(err, l.ownParts(ctx, rec))
	}
	if err != nil {
		l.opts.Warn(fmt.Sprintf("the parts of Secret/%s/%s: %v", rec.Namespace, SecretName(rec.Name, rec.Version), err))
	}
}

// ownParts makes the head the owner of parts that were written before it.
func (l *Lock) ownParts(ctx context.Context, rec *Record) error {
	owner, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": headAsOwner(rec)}})
	if err != nil {
		return err
	}
	names := partNames(rec.Name, rec.Version, rec.stored.bundles...)
	return kube.ForEach(len(names), kube.ParallelRequests, func(i int) error {
		_, err := l.store.secrets().Patch(ctx, names[i], types.MergePatchType, owner, metav1.PatchOptions{})
		if apierrors.IsForbidden(err) {
			return nil // Helm's permissions may lack patch; trimming and FinishUninstall work without it
		}
		return err
	})
}

// errPartGone is wrapped in the error of decodeSecret when a part is missing.
var errPartGone = errors.New("it was deleted")

// readBundles reads the bundles of a large record, by their label; none when it is in one Secret.
func (s *Store) readBundles(ctx context.Context, of *Summary) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, b := range of.bundles {
		parts, err := s.readParts(ctx, of, b)
		if err != nil {
			return nil, err
		}
		if out[b.label], err = b.join(parts); err != nil {
			return nil, &CorruptError{Namespace: s.namespace, Secret: SecretName(of.Name, of.Revision), Reason: "its content is damaged", Err: err}
		}
	}
	return out, nil
}

func (s *Store) readParts(ctx context.Context, of *Summary, b bundleRef) ([][]byte, error) {
	names := partNames(of.Name, of.Revision, b)
	parts := make([][]byte, len(names))
	return parts, kube.ForEach(len(names), kube.ParallelRequests, func(i int) error {
		part, err := s.getSecret(ctx, names[i])
		if apierrors.IsNotFound(err) {
			return &CorruptError{Namespace: s.namespace, Secret: SecretName(of.Name, of.Revision),
				Reason: fmt.Sprintf("its part Secret/%s/%s", s.namespace, names[i]), Err: errPartGone}
		}
		if err != nil {
			return err
		}
		parts[i] = part.Data["part"]
		return nil
	})
}

func (s *Store) deleteParts(ctx context.Context, release string, revision int, bundles []bundleRef) error {
	names := partNames(release, revision, bundles...)
	return kube.ForEach(len(names), kube.ParallelRequests, func(i int) error { return s.deleteSecret(ctx, names[i], "") })
}

// unreferencedParts returns the parts of revisions up to newest that no head refers to, and the journals of their runs that
// have ended. Those of a later revision don't count, because a run writes parts before the head.
func unreferencedParts(heads []Summary, parts []metav1.PartialObjectMetadata, newest int) []metav1.PartialObjectMetadata {
	referenced := map[string]bool{} // digests, and names of journals
	for _, h := range heads {
		referenced[journalName(h.Name, h.Revision)] = isUnfinished(h.Status)
		for _, b := range h.bundles {
			referenced[b.digest] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p metav1.PartialObjectMetadata) bool {
		revision := parseRevision(p.Labels["version"])
		content := p.Labels[labelDigest]
		if p.Name == journalName(p.Labels["name"], revision) {
			content = p.Name
		}
		return content == "" || revision < 1 || revision > newest || referenced[content]
	})
}
