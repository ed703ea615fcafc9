package planfile

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/release"
)

// A Cluster identifies one cluster, namespace and release.
type Cluster struct {
	Server string `json:"server"` // address of the API server, for people
	Salt   []byte `json:"salt"`
	// UIDDigests are salted digests of identifying UIDs. When the plan is carried out,
	// each one that can be read must be the same.
	UIDDigests map[keySource]string `json:"identities"`
	// Key lists the sources of the key for all keyed digests.
	Key []keySource `json:"key"`
}

// A keySource is a secret random value that the keys of a plan's digests come from. Accounts
// that may deploy can read it; the file alone does not reveal it.
type keySource string

// The sources.
const (
	sourceCluster   keySource = "cluster"   // UID of the namespace kube-system
	sourceNamespace keySource = "namespace" // UID of the release's namespace
	sourceRevision  keySource = "revision"  // UID of the latest revision's Secret
	sourceContent   keySource = "content"   // a random number in the encrypted content
)

// clusterUIDs are the UIDs that an account can read, by source. A source that doesn't
// exist has an empty UID; one that can't be read is absent.
type clusterUIDs map[keySource]string

// readClusterUIDs reads the UIDs that identify the cluster, the namespace and the latest
// revision of the release. It only reads.
func readClusterUIDs(ctx context.Context, c *kube.Cluster, namespace string, base *release.Summary) (clusterUIDs, error) {
	typed := c.Typed()
	known := clusterUIDs{}
	for source, name := range map[keySource]string{sourceCluster: metav1.NamespaceSystem, sourceNamespace: namespace} {
		ns, err := typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			known[source] = string(ns.UID)
		case apierrors.IsNotFound(err):
			known[source] = ""
		case !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("reading Namespace/%s: %w", name, err)
		}
	}
	known[sourceRevision] = ""
	if base != nil {
		known[sourceRevision] = base.UID
	}
	return known, nil
}

// newCluster chooses the sources of a new plan's key. The UID of a stored revision is the
// best one: everybody who may deploy the release can read it, and hardly anybody else.
func newCluster(server string, known clusterUIDs, content []byte) (Cluster, key, error) {
	c := Cluster{Server: server, Salt: randomBytes(), UIDDigests: map[keySource]string{}}
	for source, uid := range known {
		c.UIDDigests[source] = c.uidDigest(source, uid)
	}
	best := []keySource{sourceCluster, sourceNamespace}
	if known[sourceRevision] != "" {
		best = []keySource{sourceRevision}
	}
	for _, source := range best {
		if known[source] != "" {
			c.Key = append(c.Key, source)
		}
	}
	if content != nil {
		c.Key = append(c.Key, sourceContent)
	}
	k, err := c.key(known, content)
	return c, k, err
}

// uidDigest hashes a UID, whose 122 random bits can't be guessed.
func (c Cluster) uidDigest(source keySource, uid string) string {
	h := hmac.New(sha256.New, c.Salt)
	fmt.Fprintf(h, "identity %s\n%s", source, uid)
	return encodeBase64(h.Sum(nil))
}

// differences returns whether the cluster or the namespace is another one.
func (c Cluster) differences(f *File, server string, known clusterUIDs) []Difference {
	differs := func(source keySource) bool {
		planned, ok := c.UIDDigests[source]
		uid, readable := known[source]
		return ok && readable && planned != c.uidDigest(source, uid)
	}
	missing := c.uidDigest(sourceNamespace, "")
	switch namespace := "Namespace/" + f.Namespace; {
	case differs(sourceCluster):
		return []Difference{{Subject: "cluster", Planned: "for " + c.Server, Now: server + " is another cluster"}}
	case !differs(sourceNamespace) || c.UIDDigests[sourceNamespace] == missing:
		// A namespace that the plan creates may have been created meanwhile.
		return nil
	case known[sourceNamespace] == "":
		return []Difference{{Subject: namespace, Now: "it no longer exists"}}
	default:
		return []Difference{{Subject: namespace, Now: "it was deleted and recreated"}}
	}
}

// isBoundToCluster reports whether the key comes from the cluster, so that only somebody
// with access to it can have signed the file.
func (c Cluster) isBoundToCluster() bool {
	return slices.ContainsFunc(c.Key, func(source keySource) bool { return source != sourceContent })
}

// key derives the key of the file's digests.
func (c Cluster) key(known clusterUIDs, content []byte) (key, error) {
	var material []byte
	for _, source := range c.Key {
		part := []byte(known[source])
		if source == sourceContent {
			part = content
		}
		if len(part) == 0 {
			return nil, program.WithHint(fmt.Errorf("the plan can't be checked: its key comes from the %s's identity, which this account has no permission to read", source),
				"allow the account to get that namespace, or plan with the account that applies the plan")
		}
		material = fmt.Appendf(material, "%s %d ", source, len(part))
		material = append(material, part...)
	}
	raw, err := hkdf.Key(sha256.New, material, c.Salt, "deployer plan v1", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the plan: %w", err)
	}
	return key(raw), nil
}
