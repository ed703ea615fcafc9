package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"deployer/apply/decide"
	"deployer/apply/ownership"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A write is one request of a change, the requests that give an object back, or the wait until a deletion is done.
type write struct {
	verb         verb
	precondition precondition
	entries      []ownership.Entry          // that migrateOwnership writes
	operations   []patchOperation           // of patchObject
	object       *unstructured.Unstructured // that replaceObject writes; applyObject and createObject write Change.Desired
	propagation  metav1.DeletionPropagation // of deleteObject
	isFirst      bool                       // of migrateOwnership: the change is decided again afterwards
}

// A verb is what kind of request a write is.
type verb int

// The verbs, in the order in which the writes of one change may follow each other.
const (
	deleteObject     verb = iota
	awaitGone             // waits until the object that was deleted is gone
	awaitFinalizers       // waits a little until an object is gone that others hold; the change is decided again afterwards
	createObject          // never changes an object that is there
	postObject            // creates it by a plain POST: a hook, for which Helm needs that permission too, and what no apply can express
	patchObject           // makes changes that no apply can; the change is decided again afterwards
	migrateOwnership      // writes managedFields, and nothing else of the object
	applyObject           // server-side apply
	replaceObject         // writes the whole object if an apply can't express it
	giveBackObject        // restores the object as it was before it was adopted
)

// A precondition is what must be true of the live object for a write to happen.
// The zero value is no condition.
type precondition struct {
	uid             types.UID
	resourceVersion string
}

// mustBeAbsent makes an apply only create: the server compares the version only if the object
// exists. Tested on 1.36 for built-in kinds and custom resources: 201 without an object,
// 409 with one.
func mustBeAbsent() precondition { return precondition{resourceVersion: "1"} }

// boundTo returns writes that fail if the object isn't of the version of live any more.
func boundTo(live *unstructured.Unstructured, writes []write) []write {
	writes = slices.Clone(writes)
	for i := range writes {
		if w := &writes[i]; w.precondition.uid != "" {
			w.precondition.resourceVersion = live.GetResourceVersion()
		}
	}
	return writes
}

// send makes the writes of a change. redecide asks for deciding about it again.
func (r *changeRun) send(ctx context.Context, c Change) (done Change, redecide bool, err error) {
	if c.Deferral != nil {
		return c, true, nil
	}
	if r.t != nil {
		ctx = r.p.warnings.withServerWarnings(ctx, r.t)
	}
	how := mode{isFinal: c.changesOnlyOwners(), quotaChanges: r.p.changedQuotas[c.ID.Namespace]}
	version := "" // resourceVersion after our previous write
	for _, w := range c.writes {
		if version != "" {
			w.precondition.resourceVersion = version
		}
		switch w.verb {
		case deleteObject:
			err = r.a.delete(ctx, r.p.mappingOf(ctx, c), c.ID, w.precondition, w.propagation)
		case awaitGone:
			err = r.a.awaitGone(ctx, r.p.mappingOf(ctx, c), c.ID, w.precondition.uid)
			r.oldDeleted = err == nil
			how.quotaChanges = true // which a controller has to count
		case awaitFinalizers:
			limited, cancel := context.WithDeadline(ctx, r.p.letGoBy())
			_ = r.a.awaitGone(limited, r.p.mappingOf(ctx, c), c.ID, w.precondition.uid) // the decision tells
			cancel()
			r.t.progress.waitedForFinalizers = true
			return c, true, context.Cause(ctx)
		case patchObject:
			_, err = r.a.do(ctx, r.t, w, nil, how)
			r.t.progress.written = r.t.progress.written || err == nil
			return c, true, err
		case migrateOwnership:
			c.Applied, err = r.sendMigration(ctx, c, w, how)
			switch {
			case err == nil && w.isFirst:
				r.t.progress.written = true
				return c, true, nil
			case err == nil:
				version, r.t.progress.written = c.Applied.GetResourceVersion(), true
			case !c.changesOnlyOwners() && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)):
				return r.applyWithoutMigration(ctx, c, how, err)
			}
		case giveBackObject:
			c, err = r.giveBack(ctx, c)
		default:
			c.Applied, err = r.a.do(ctx, r.t, w, c.Desired, how)
		}
		if verify.Read(err).Detail == verify.TooLarge && (w.verb == createObject || w.verb == applyObject) {
			c, err = r.writeLarge(ctx, c, w, how, err)
		}
		switch {
		case err != nil && c.changesOnlyOwners() && verify.Read(err).RefusesWrite():
			c.Applied, c.Reason = c.Live, fieldsStay(c, err)
			return c, false, nil
		case err != nil:
			return c, false, err
		}
	}
	return c, false, nil
}

// changesOnlyOwners reports whether the writes of a change leave the content of the object as it is. They are put off if the
// API server, or a webhook, doesn't let them happen: nothing that the chart says depends on them.
func (c Change) changesOnlyOwners() bool { return c.Action == decide.Unchanged }

// fieldsStay says why the owners of fields stay who they are.
func fieldsStay(c Change, refusal error) string {
	return "its fields stay with their former managers: " + verify.AsServerError(c.object(), refusal).Error()
}

// mappingOf returns where the kind of a change is served. For an orphan that is looked up, because a definition of this
// release may have dropped the version of the plan.
func (p *planning) mappingOf(ctx context.Context, c Change) kube.Mapping {
	if t := p.target(c.ID); t != nil {
		return t.mapping
	}
	if now, err := p.a.cluster.Mapping(ctx, c.orphan.mapping.GVK, true); err == nil {
		return now
	}
	return c.orphan.mapping // gone or unknown: the request tells
}

// sendMigration writes managedFields, and nothing else of the object.
func (r *changeRun) sendMigration(ctx context.Context, c Change, w write, how mode) (*unstructured.Unstructured, error) {
	list, err := ownership.Encode(w.entries)
	if err != nil {
		return nil, err
	}
	operations := []patchOperation{managedFieldsOperation(list)}
	if dropsLastApplied(c) {
		// If it stayed, a later kubectl apply would remove our fields.
		operations = append(operations, patchOperation{Op: "remove", Path: "/metadata/annotations/" + jsonPointerEscaper.Replace(kube.LastAppliedAnnotation)})
	}
	return r.a.sendJSONPatch(ctx, r.t, w.precondition.resourceVersion, operations, how)
}

// dropsLastApplied reports whether the last-applied annotation of kubectl is removed,
// because the migration takes kubectl's fields: see ownership.Migrate.
func dropsLastApplied(c Change) bool {
	_, noted := c.Live.GetAnnotations()[kube.LastAppliedAnnotation]
	return noted && slices.ContainsFunc(c.TakenFrom, func(label string) bool { return strings.HasPrefix(label, "kubectl-client-side-apply ") })
}

// applyWithoutMigration carries out a change without the migration of ownership, because a
// policy refuses that. The policy may object to the object as it is, so the migration is
// tried once more after the apply.
//
// An object of another release isn't applied: both releases use the same field manager,
// so our apply would remove the fields that only the other one states.
func (r *changeRun) applyWithoutMigration(ctx context.Context, c Change, how mode, refusal error) (Change, bool, error) {
	if provenance.OwnerOf(c.Live) != r.a.owner && slices.ContainsFunc(c.Live.GetManagedFields(), ownership.IsOurApply) {
		return c, false, refusal
	}
	c.Applied, c.Reason = c.Live, fieldsStay(c, refusal)
	if r.migrationRefusedAt == c.Live.GetResourceVersion() {
		return c, false, nil
	}
	var err error
	if c.Applied, err = r.a.apply(ctx, r.t, c.Desired, precondition{c.Live.GetUID(), c.Live.GetResourceVersion()}, how); err != nil {
		return c, false, err
	}
	r.migrationRefusedAt = c.Applied.GetResourceVersion()
	return c, true, nil
}

// applyBody encodes an object for server-side apply. The API server reads the body as YAML, which
// has fewer characters than JSON: others are escaped.
// https://yaml.org/spec/1.2.2/#51-character-set
func applyBody(object map[string]any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil || !bytes.ContainsFunc(data, notInYAML) {
		return data, err
	}
	var escaped []byte
	for _, r := range string(data) {
		if notInYAML(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped, nil
}

// notInYAML reports whether YAML doesn't allow a character unless it is escaped, or folds it as a
// line break. JSON has none below the blank.
func notInYAML(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// jsonPointerEscaper escapes the parts of a JSON pointer. https://www.rfc-editor.org/rfc/rfc6901
var jsonPointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// jsonPatchOf returns the JSON patch from one object to another. Unlike a merge patch it
// can write null.
func jsonPatchOf(path string, from, to map[string]any) []patchOperation {
	var ops []patchOperation
	for _, key := range slices.Sorted(maps.Keys(to)) { // always the same, so that it is known when it was tried
		v, at := to[key], path+"/"+jsonPointerEscaper.Replace(key)
		old, had := from[key]
		if had && reflect.DeepEqual(old, v) {
			continue
		}
		a, ok1 := old.(map[string]any)
		b, ok2 := v.(map[string]any)
		if at == "/metadata" && ok1 && ok2 {
			ops = append(ops, jsonPatchOf(at, a, b)...)
		} else {
			ops = append(ops, patchOperation{"add", at, v})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, still := to[key]; !still {
			ops = append(ops, patchOperation{Op: "remove", Path: path + "/" + jsonPointerEscaper.Replace(key)})
		}
	}
	return ops
}

// patchOperation is one of a JSON patch. https://www.rfc-editor.org/rfc/rfc6902
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // which a removal doesn't read
}
