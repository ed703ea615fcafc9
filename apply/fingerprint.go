package apply

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/internal/kube"
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
	if obj == nil && c.Action == decide.Unchanged {
		obj = c.Live
	}
	if obj == nil || slices.ContainsFunc(c.Conflicts, func(f FieldConflict) bool { return f.Outcome == decide.OutcomeYielded }) {
		return Fingerprint{}
	}
	return fingerprintOf(c.manifestHash, obj)
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
	var ours *metav1.ManagedFieldsEntry
	for i, e := range obj.GetManagedFields() {
		switch {
		case e.Subresource != "":
		case ownership.IsOurApply(e):
			ours = &obj.GetManagedFields()[i]
		case ownership.MayHoldChart(e):
			return Fingerprint{}
		}
	}
	if ours == nil || ours.FieldsV1 == nil || ours.Time == nil || manifestHash == "" || obj.GetUID() == "" {
		return Fingerprint{}
	}
	state := obj.GetResourceVersion()
	if g := obj.GetGeneration(); g != 0 {
		state = "g" + strconv.FormatInt(g, 10) + statedMetadata(ours, obj)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n", manifestHash, state, ours.APIVersion, ours.Time.UTC().Format(time.RFC3339))
	h.Write(ours.FieldsV1.GetRawBytes())
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
	for field, values := range map[string]any{"f:finalizers": obj.GetFinalizers(), "f:ownerReferences": obj.GetOwnerReferences()} {
		if stated.Metadata[field] != nil {
			out[field] = values
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return obj.GetResourceVersion()
	}
	return string(text)
}

// A CRD determines which stored fields the server returns. A field missing from the CRD
// for a while may be lost without a trace in the metadata. A fingerprint of a custom
// resource therefore covers one generation of its CRD.

// generationOf returns the generation of the CustomResourceDefinition of a target's kind;
// empty for kinds without one. If ok is false, the generation isn't known and no
// fingerprint counts.
func (d *definitions) generationOf(t *target) (state string, ok bool) {
	if kube.IsBuiltinKind(t.mapping.GVK) {
		return "", true
	}
	known, _ := d.generations.Load(t.mapping.Resource.GroupResource())
	read, ok := known.(generation)
	return read.text, ok && read.old == d.p.prerequisites.kindChanges(t)
}

// A generation identifies one state of a CustomResourceDefinition.
type generation struct {
	text string // uid and number; empty for a kind of an aggregated API server
	old  bool   // it was read before the release wrote the definition
}

// readGenerations reads the metadata of the definitions of the targets' kinds, each
// once.
func (d *definitions) readGenerations(ctx context.Context, targets []*target) error {
	var open []schema.GroupResource
	for _, t := range targets {
		gr := t.mapping.Resource.GroupResource()
		if _, known := d.generationOf(t); !known && d.p.prerequisites.deferralOf(t) == nil && !slices.Contains(open, gr) {
			open = append(open, gr)
		}
	}
	return d.p.a.forEach(ctx, len(open), func(i int) error { return d.readGeneration(ctx, open[i]) })
}

// noteGenerations remembers the generations of definitions that were observed, so that they aren't read again.
func (d *definitions) noteGenerations(targets []*target, observed map[kube.ID]observation) {
	for _, t := range targets {
		s := observed[t.id]
		switch {
		case !t.id.IsCRD():
		case s.meta != nil:
			d.noteGeneration(t.id, s.meta)
		case s.full != nil:
			d.noteGeneration(t.id, s.full)
		}
	}
}

func (d *definitions) readGeneration(ctx context.Context, gr schema.GroupResource) error {
	id := definition.ID(gr)
	meta, err := d.p.a.getMeta(ctx, definition.Mapping, id)
	switch {
	case apierrors.IsForbidden(err):
		return nil // not known
	case err != nil:
		return &ObjectError{ID: id, Doing: "reading", Err: err}
	}
	d.noteGeneration(id, cmp.Or(meta, &metav1.PartialObjectMetadata{}))
	return nil
}

// noteGeneration remembers the generation of a definition; one without a UID is absent, as for a kind of an
// aggregated API server.
func (d *definitions) noteGeneration(id kube.ID, crd metav1.Object) {
	read := generation{old: d.p.prerequisites.anyMissing(id)}
	if uid := crd.GetUID(); uid != "" {
		read.text = fmt.Sprintf("%s/%d", uid, crd.GetGeneration())
	}
	d.generations.Store(schema.ParseGroupResource(id.Name), read)
}

// fingerprintInput returns the hash that a fingerprint covers: the object's manifest and
// the generation of its CRD. Empty when a fingerprint would prove nothing.
func (d *definitions) fingerprintInput(t *target) string {
	state, ok := d.generationOf(t)
	if !ok || t.manifestHash == "" {
		return ""
	}
	return t.manifestHash + state
}
