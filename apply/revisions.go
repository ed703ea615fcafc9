package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// releaseHistory has the objects that earlier revisions may have left.
type releaseHistory struct {
	objects       map[kube.ID][]DeclaredObject // oldest first
	hooks         map[kube.ID]DeclaredObject
	order         []kube.ID
	provenance    map[kube.ID]*provenance.Provenance // of objects of that name; see noteProvenance
	lastUninstall int                                // the latest revision that was uninstalled
	lastSuccess   int                                // the latest revision since that has succeeded; 0 for none
}

// A DeclaredObject is an object as a revision declares it.
type DeclaredObject struct {
	Revision int
	Status   string // of that revision, in Helm's words
	Source   string // template; empty when unknown
	Object   *unstructured.Unstructured
}

// indexRevisions indexes the revisions by object. An object of a kind that no longer
// exists is indexed under the namespace that it would have: the kind may exist under
// another group, and is no reason to fail (helm#7219).
func (r *resolver) indexRevisions(ctx context.Context, revisions []Revision) (*releaseHistory, error) {
	out := &releaseHistory{objects: map[kube.ID][]DeclaredObject{}, hooks: map[kube.ID]DeclaredObject{}, provenance: map[kube.ID]*provenance.Provenance{}}
	for _, revision := range revisions {
		var had []kube.ID
		for _, m := range revision.Objects {
			err := r.addDeclaredObject(ctx, revision, m, func(id kube.ID, s DeclaredObject) {
				had = append(had, id)
				if len(out.objects[id]) == 0 {
					out.order = append(out.order, id)
				}
				out.objects[id] = append(out.objects[id], s)
			})
			if err != nil {
				return nil, err
			}
		}
		for _, m := range revision.Hooks {
			if err := r.addDeclaredObject(ctx, revision, m, func(id kube.ID, s DeclaredObject) { out.hooks[id] = s }); err != nil {
				return nil, err
			}
		}
		out.noteProvenance(revision, had)
	}
	return out, nil
}

// addDeclaredObject calls add with an object of a revision, in the namespace that it has or had. An
// object with generateName, which only hooks may have, stands for all that are generated from it. One
// without any name isn't looked for again.
func (r *resolver) addDeclaredObject(ctx context.Context, revision Revision, m kube.Manifest, add func(kube.ID, DeclaredObject)) error {
	if m.Object.GetName() == "" && (m.Object.GetGenerateName() == "" || !decide.IsHook(m.Object)) {
		return nil
	}
	mapping, err := r.p.a.cluster.Mapping(ctx, kube.IDOf(m.Object).GroupKind().WithVersion(""), true)
	switch {
	case errors.As(err, new(*kube.NoKindMatchError)):
		mapping = kube.Mapping{Namespaced: true}
		if m, ok := r.p.definitions.kinds[m.Object.GroupVersionKind()]; ok {
			mapping = m
		}
	case err != nil && r.isUnlisted(kube.IDOf(m.Object).Group):
		mapping = kube.Mapping{Namespaced: true} // until it can be looked up
	case err != nil:
		return err
	}
	o := r.inNamespace(m.Object, mapping)
	id := kube.IDOf(o)
	if id.Name == "" {
		id.Name = o.GetGenerateName() + allGenerated
	}
	add(id, DeclaredObject{Revision: revision.Revision, Status: revision.Status, Source: m.Source, Object: o})
	return nil
}

// isUnlisted reports whether the server couldn't list the kinds of an API group.
func (r *resolver) isUnlisted(group string) bool {
	return slices.ContainsFunc(r.unlistedGroupVersions, func(gv string) bool { return strings.HasPrefix(gv, group+"/") })
}

// noteProvenance updates the provenance of objects with one revision. Each revision
// records it for its own objects. A successful revision of another tool makes its objects
// the release's. An uninstall ends all provenance.
func (h *releaseHistory) noteProvenance(r Revision, had []kube.ID) {
	if r.Status == "uninstalled" {
		h.provenance, h.lastUninstall, h.lastSuccess = map[kube.ID]*provenance.Provenance{}, r.Revision, 0
		return
	}
	if r.Succeeded {
		h.lastSuccess = r.Revision
	}
	final := r.Status == "deployed" || r.Status == "superseded"
	for _, id := range had {
		if o := h.provenance[id]; o.MustBeGivenBack() && (r.Provenance != nil || final) {
			delete(h.provenance, id) // unless this revision records it again, below
		}
	}
	for key, o := range r.Provenance {
		id, ok := ParseKey(key)
		if !ok {
			continue
		}
		if before := h.provenance[id]; o.UID == "" && before != nil {
			o.UID = before.UID
		}
		h.provenance[id] = &o
	}
}

// latestDeclared returns an object as the latest revision declared it; zero when none
// did.
func (h *releaseHistory) latestDeclared(id kube.ID) DeclaredObject {
	if history := h.objects[id]; len(history) > 0 {
		return history[len(history)-1]
	}
	return DeclaredObject{}
}

// isOnRecord reports whether the latest successful revision has an object: it is the release's unless it bears the ownership of
// others. Helm asks no more of what is in the manifest that it upgrades from.
func (h *releaseHistory) isOnRecord(id kube.ID) bool {
	return h.lastSuccess != 0 && slices.ContainsFunc(h.objects[id], func(o DeclaredObject) bool { return o.Revision == h.lastSuccess })
}

// provenanceOf returns the provenance of a live object of the release us; nil when no record
// tells. An object with our ownership that no revision had was labelled by hand, so it is
// adopted too.
func (h *releaseHistory) provenanceOf(t *target, live metav1.Object, us provenance.Owner, adopting bool) *provenance.Provenance {
	if t.fromCRDs {
		return nil
	}
	uid := string(live.GetUID())
	known := h.provenance[t.id]
	switch {
	case t.progress.provenance != nil && t.progress.provenance.UID == uid && (!adopting || t.progress.written):
		return t.progress.provenance.Clone() // it is ours, or partly written, by this run: what it was before counts
	case adopting && known.MustBeGivenBack() && known.Describes(live) && provenance.IsHalfAdopted(known, live):
		return known.Clone() // a run that died was adopting it: what it was before that counts
	case adopting:
	case known != nil && known.UID == uid:
		return known.Clone()
	case t.progress.wasAbsent, max(h.latestDeclared(t.id).Revision, h.hooks[t.id].Revision) > h.lastUninstall:
		return nil // this run has made it, or a revision since the last uninstall had it
	}
	return provenance.NewAdoption(live, us)
}

// rememberPrior records what an update overwrites in an object that may have to be given
// back.
func (u *updateDecision) rememberPrior(c *Change, diff *typed.Comparison, result *unstructured.Unstructured) {
	if !c.Provenance.MustBeGivenBack() {
		return
	}
	over := diff.Modified.Union(diff.Removed)
	if dropsLastApplied(*c) {
		over.Insert(fieldpath.MakePathOrDie("metadata", "annotations", kube.LastAppliedAnnotation))
	}
	c.Provenance.Adopted.Prior.Remember(u.prediction.Live, over, result)
}

// recordPriorState calls OnAdoption for an object that is about to be written and may have to be
// given back: its former state must be on record first.
func (r *changeRun) recordPriorState(ctx context.Context, c Change) error {
	if c.Deferral != nil || c.Action == decide.GiveBack || !c.Provenance.MustBeGivenBack() {
		return nil
	}
	if r.t != nil {
		r.t.progress.provenance = c.Provenance
	}
	if r.a.OnAdoption == nil {
		return nil
	}
	if err := r.a.OnAdoption(ctx, c); err != nil {
		return &ObjectError{ID: c.ID, Source: c.Source, Doing: "recording the former state of", Err: err}
	}
	return nil
}
