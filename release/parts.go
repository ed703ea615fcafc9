package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A record too large for one Secret is split. What changes during a run (status, journal,
// hook results) stays in the head, the Secret that Helm sees. The rest is the body, cut
// into parts. Parts are written before the head that refers to them, and never changed.
// The head refers to them in a label, because Helm keeps only our labels when it writes a
// record.

const (
	partType   = corev1.SecretType("deployer.io/release.part.v1")
	partPrefix = "sh.deployer.release.v1."
	ownerParts = "deployer" // Helm looks for owner=helm
	labelParts = prefix + "parts"
	labelBody  = prefix + "body" // on parts: the digest of the body they belong to

	// partSize is how much of the body one part holds, in bytes. With metadata
	// it stays below maxSecret, and below etcd's limit of a request.
	partSize = 900 << 10

	// maxParts limits what one revision may take of etcd: 28 MiB.
	maxParts = 32

	// maxHeadConfig limits the size of values that are repeated in the head, for `helm
	// get values`.
	maxHeadConfig = 64 << 10

	largeSuffix = " [large release in several Secrets: only deployer can read it]"
	largeKind   = "ReleaseTooLargeForHelmUseDeployer"
)

// body is the part of a record that doesn't change once it is begun.
type body struct {
	Run      string              `json:"run"` // makes the bodies of two runs differ
	Chart    *helmchart.Chart    `json:"chart,omitempty"`
	Config   map[string]any      `json:"config,omitempty"`
	Manifest string              `json:"manifest,omitempty"`
	Hooks    []*helmrelease.Hook `json:"hooks,omitempty"` // without LastRun
	Notes    string              `json:"notes,omitempty"`
}

// head is what Helm sees of a large record: a release whose manifest it can't process, so
// that it refuses instead of deleting objects that it doesn't see.
type head struct {
	Record
	LastRuns []helmrelease.HookExecution `json:"deployer_runs,omitempty"` // by index of the body's hooks
}

// splitRecord encodes a record as head and parts.
func splitRecord(rec *Record) (*encoded, error) {
	packed, m, err := packMeasured(bodyOf(rec))
	if err != nil {
		return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	sum := sha256.Sum256(packed)
	enc := &encoded{
		digest: hex.EncodeToString(sum[:])[:32],
		parts:  slices.Collect(slices.Chunk(packed, partSize)),
	}
	top, headMeter, err := packMeasured(headOf(rec))
	if err != nil {
		return nil, fmt.Errorf("encoding release %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	enc.head = toText(top)
	if len(enc.parts) > maxParts || len(enc.head)+reservedSize(rec) > maxSecret || m.tooLarge(maxSplitJSON) != "" || headMeter.tooLarge(maxSingleSecretJSON) != "" {
		return nil, &SizeError{Namespace: rec.Namespace, Name: rec.Name, Estimate: estimate(rec, enc)}
	}
	return enc, nil
}

func bodyOf(rec *Record) *body {
	b := &body{Chart: rec.Chart, Config: rec.Config, Manifest: rec.Manifest, Notes: rec.Info.Notes}
	if rec.Journal != nil {
		b.Run = rec.Journal.Run
	}
	for _, hook := range rec.Hooks {
		still := *hook
		still.LastRun = helmrelease.HookExecution{}
		b.Hooks = append(b.Hooks, &still)
	}
	return b
}

func headOf(rec *Record) *head {
	h := &head{Record: *rec}
	info := *rec.Info
	info.Notes = ""
	info.Description = strings.TrimSuffix(info.Description, largeSuffix) + largeSuffix
	h.Info = &info
	h.Hooks = nil
	for _, hook := range rec.Hooks {
		h.LastRuns = append(h.LastRuns, hook.LastRun)
	}
	if rec.Chart != nil {
		h.Chart = &helmchart.Chart{Metadata: rec.Chart.Metadata}
	}
	if config, err := json.Marshal(rec.Config); err != nil || len(config) > maxHeadConfig {
		h.Config = nil
	}
	h.Manifest = headManifest(rec)
	return h
}

// headManifest returns a manifest that Helm can print and split, but not build, because
// the kind doesn't exist. Helm's upgrade, rollback and uninstall fail with this name in
// their message, before they change any object.
func headManifest(rec *Record) string {
	return fmt.Sprintf(`---
# Release %s, revision %d, is too large for Helm: its manifest is kept in
# several Secrets, which only deployer reads:
#   deployer get manifest -n %s %s --revision %d
apiVersion: deployer.io/v1
kind: %s
metadata:
  name: %s
`, rec.Name, rec.Version, rec.Namespace, rec.Name, rec.Version, largeKind, rec.Name)
}

// joinRecord joins the head and body of a large record. The head wins: another tool may
// have changed the status there.
func joinRecord(text, packed []byte) (*Record, error) {
	var h head
	var b body
	data, err := unpack(text)
	if err != nil {
		return nil, err
	}
	if _, err := decodeJSON(data); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, err
	}
	if data, err = decompress(packed, maxSplitJSON); err != nil {
		return nil, fmt.Errorf("its parts: %w", err)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("its parts: %w", err)
	}
	rec := h.Record
	rec.Slim = true
	rec.Chart, rec.Config, rec.Manifest, rec.Hooks = b.Chart, b.Config, b.Manifest, b.Hooks
	rec.Info.Notes = b.Notes
	rec.Info.Description = strings.TrimSuffix(rec.Info.Description, largeSuffix)
	for i, hook := range rec.Hooks {
		if i < len(h.LastRuns) {
			hook.LastRun = h.LastRuns[i]
		}
	}
	return &rec, nil
}

// partsLabel returns the label that refers to a record's parts: "v7.3.<digest>". It has
// the revision because Helm copies labels to the next revision, where this one is
// invalid.
func partsLabel(revision, count int, digest string) string {
	return fmt.Sprintf("v%d.%d.%s", revision, count, digest)
}

var partsLabels = regexp.MustCompile(`^v([0-9]{1,9})\.([0-9]{1,2})\.([0-9a-f]{32})$`)

// parseParts reads the label of a revision's head; count is 0 when the record
// is in one Secret.
func parseParts(label string, revision int) (count int, digest string) {
	m := partsLabels.FindStringSubmatch(label)
	if m == nil || m[1] != strconv.Itoa(revision) {
		return 0, ""
	}
	count, err := strconv.Atoi(m[2])
	if err != nil || count > maxParts {
		return 0, ""
	}
	return count, m[3]
}

func partName(name string, revision int, digest string, index int) string {
	return fmt.Sprintf("%s%s.v%d.%s.%d", partPrefix, name, revision, digest, index)
}

func newPart(rec *Record, enc *encoded, index int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      partName(rec.Name, rec.Version, enc.digest, index),
			Namespace: rec.Namespace,
			Labels: map[string]string{
				"name":    rec.Name,
				"owner":   ownerParts,
				"version": strconv.Itoa(rec.Version),
				labelBody: enc.digest,
			},
		},
		Type:      partType,
		Immutable: new(true),
		Data:      map[string][]byte{"part": enc.parts[index]},
	}
}

// joinParts joins parts and checks them against the digest.
func joinParts(parts [][]byte, digest string) ([]byte, error) {
	packed := bytes.Join(parts, nil)
	sum := sha256.Sum256(packed)
	if hex.EncodeToString(sum[:])[:32] != digest {
		return nil, fmt.Errorf("its %d parts don't match their digest", len(parts))
	}
	return packed, nil
}
