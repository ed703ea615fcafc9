package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/ownership"
	"deployer/apply/provenance"
)

// RecordedFingerprint returns the fingerprint to record for a change that was carried out
// or not needed; zero when there is none. It makes no requests.
//
// A fingerprint proves that applying the same manifest again would change nothing: if
// another manager changes a field that we own, it disappears from our managedFields
// entry, and another apply under our name changes the entry's time. An object in which
// fields were relinquished gets no fingerprint, because there it proves nothing.
func (c Change) RecordedFingerprint() Fingerprint {
	if c.fingerprint.Hash != "" {
		return c.fingerprint
	}
	obj := c.Applied
	if obj == nil && c.Action == Unchanged {
		obj = c.Live
	}
	if obj == nil || c.hasYieldedConflict() {
		return Fingerprint{}
	}
	return fingerprintOf(c.manifestHash, obj)
}

func (c Change) hasYieldedConflict() bool {
	return slices.ContainsFunc(c.Conflicts, func(f FieldConflict) bool { return f.Outcome == OutcomeYielded })
}

// fingerprintOf returns the fingerprint of an object for the hash of its manifest. It is zero
// when that hash is empty or the metadata proves nothing: without an entry of ours, or with
// entries that would have to be migrated.
//
// The fingerprint of an object with a generation includes the generation and the metadata
// that we state, which the generation doesn't cover: an entry's time has a resolution of
// one second, and managedFields can be restored by hand. Objects without a generation,
// such as ConfigMaps and Roles, are rarely written by controllers, so their fingerprint
// includes the resourceVersion, the strictest proof.
func fingerprintOf(manifestHash string, obj metav1.Object) Fingerprint {
	var mine *metav1.ManagedFieldsEntry
	for i, e := range obj.GetManagedFields() {
		switch {
		case e.Subresource != "":
		case ownership.IsOurApply(e):
			mine = &obj.GetManagedFields()[i]
		case ownership.ClassOf(e.Manager) == ownership.Helm:
			return Fingerprint{}
		}
	}
	if mine == nil || mine.FieldsV1 == nil || mine.Time == nil || manifestHash == "" || obj.GetUID() == "" {
		return Fingerprint{}
	}
	state := obj.GetResourceVersion()
	if g := obj.GetGeneration(); g != 0 {
		state = "g" + strconv.FormatInt(g, 10) + statedMetadata(mine, obj)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", manifestHash, state, mine.APIVersion, mine.Time.UTC().Format(time.RFC3339))
	h.Write(mine.FieldsV1.GetRawBytes())
	return Fingerprint{UID: string(obj.GetUID()), Hash: base64.RawStdEncoding.EncodeToString(h.Sum(nil)[:12])}
}

// matchesFingerprint reports whether the recorded fingerprint and the live metadata prove
// that nothing has to be done for t.
func (p *planning) matchesFingerprint(t *target, meta metav1.Object) bool {
	recorded := p.req.Fingerprints[Key(t.id)]
	isOurs := t.fromCRDs || provenance.OwnerOf(meta) == p.a.owner
	return recorded.Hash != "" && isOurs && meta.GetDeletionTimestamp() == nil && recorded == fingerprintOf(p.definitions.fingerprintInput(t), meta)
}

// statedMetadata returns the labels, annotations, finalizers and owner references in our
// managedFields entry, with their values.
func statedMetadata(ours *metav1.ManagedFieldsEntry, obj metav1.Object) string {
	var stated struct {
		Metadata map[string]map[string]any `json:"f:metadata"`
	}
	if err := json.Unmarshal(ours.FieldsV1.GetRawBytes(), &stated); err != nil {
		return obj.GetResourceVersion() // unreadable entry: use the strictest proof
	}
	out := map[string]any{}
	for group, values := range map[string]map[string]string{"f:labels": obj.GetLabels(), "f:annotations": obj.GetAnnotations()} {
		for field := range stated.Metadata[group] {
			name := strings.TrimPrefix(field, "f:")
			if value, ok := values[name]; ok {
				out[group+"/"+name] = value
			}
		}
	}
	if stated.Metadata["f:finalizers"] != nil {
		out["f:finalizers"] = obj.GetFinalizers()
	}
	if stated.Metadata["f:ownerReferences"] != nil {
		out["f:ownerReferences"] = obj.GetOwnerReferences()
	}
	text, err := json.Marshal(out)
	if err != nil {
		return obj.GetResourceVersion()
	}
	return string(text)
}
