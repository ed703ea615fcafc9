package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"deployer/apply/decide"
	"deployer/apply/definition"
	"deployer/apply/fields"
	"deployer/apply/provenance"
	"deployer/internal/kube"
)

// decideDefinition decides about a definition of crds/ that exists. By default the chart
// only adds to the definitions of others: an update that would remove something isn't
// made.
func (p *planning) decideDefinition(t *target, f *facts) (Change, error) {
	var contribution *definition.Contribution
	if recorded := p.req.Contributions[Key(t.id)]; recorded.Describes(f.full) {
		contribution = &recorded
	}
	lost, stored := contribution.LossesOfOthers(definition.LossesByApply(f.full, f.desired)), definition.DroppedStoredVersions(f.full, f.desired)
	if !p.a.opts.CRDs.removesOthers() && len(lost)+len(stored) > 0 {
		return p.keepDefinition(t, f.full, f.desired, lost, stored), nil
	}
	c, err := p.decideExisting(t, f)
	if err != nil {
		return Change{}, err
	}
	return p.protectParts(t, c, contribution), nil
}

// protectParts keeps a definition as it is if its update, as the API server predicts it, removes what the release didn't add.
func (p *planning) protectParts(t *target, c Change, contribution *definition.Contribution) Change {
	c.Contribution = contribution
	if c.Action != decide.Update || c.Predicted == nil {
		return c
	}
	c.writes = boundTo(c.Live, c.writes) // the losses were computed from this version
	switch lost := contribution.LossesOfOthers(definition.LossesOf(c.Live, c.Predicted)); {
	case len(lost) > 0 && !p.a.opts.CRDs.removesOthers():
		return p.keepDefinition(t, c.Live, c.Desired, lost, definition.DroppedStoredVersions(c.Live, c.Desired))
	case len(lost) > 0:
		p.warnings.add(t.id, t.source, "the chart's definition removes what this release didn't add: %s", lost)
	}
	return c
}

// keepDefinition keeps a definition that has what others have added, or versions in which objects may be stored.
func (p *planning) keepDefinition(t *target, live, desired *unstructured.Unstructured, lost definition.Losses, stored []string) Change {
	whose := ""
	if owner := provenance.OwnerOf(live); owner != (provenance.Owner{}) && owner != p.a.owner {
		whose = " of release " + owner.String()
	}
	why := fmt.Sprintf("the definition%s in the cluster has what is not in the chart and was not added by this release: %s", whose, lost)
	way := "; to replace it anyway: --crds upgrade"
	switch {
	case len(stored) > 0 && len(lost) == 0:
		why = fmt.Sprintf("objects may be stored as %s, which the chart's definition lacks", strings.Join(stored, ", "))
		way = "; write them in the new version and take the old one out of status.storedVersions; the next release updates the definition then"
	case len(stored) > 0:
		way = fmt.Sprintf("; objects may be stored as %s, so even --crds upgrade can't replace it: use a chart whose definition has that version",
			strings.Join(stored, ", "))
	}
	return p.keepAsItIs(t, live, desired, why, way)
}

// keepAsItIs keeps a definition of crds/ as it is, or as absent as it is, and says why, and with way what to do about it.
func (p *planning) keepAsItIs(t *target, live, desired *unstructured.Unstructured, why, way string) Change {
	c := p.newChange(t, decide.Keep)
	c.Live, c.Desired, c.Reason = live, desired, why
	p.warnings.add(t.id, t.source, "kept as it is: %s%s", why, way)
	return c
}

// DefinitionLosses lists what a definition allowed before it was written and no longer allows;
// empty when nothing is lost, and for other objects.
func (c Change) DefinitionLosses() string {
	if c.Action != decide.Update || c.Live == nil || c.Applied == nil || !c.ID.IsCRD() {
		return ""
	}
	return definition.LossesOf(c.Live, c.Applied).String()
}

// ContributionToRecord is what a release has to remember of a definition of crds/ before the change is carried out, in case that
// nobody can record it afterwards, and after that; nil when nothing of it is its own.
func (c Change) ContributionToRecord() *definition.Contribution {
	switch {
	case c.Applied != nil || !c.ID.IsCRD():
	case c.Action == decide.Create && c.Desired != nil:
		return new(definition.ContributionOf(c.Desired))
	case c.Action == decide.Update && c.Live != nil && c.Predicted != nil:
		return c.Contribution.Planned(c.Live, c.Predicted)
	}
	return c.Contribution
}

// contributionAfter is what a release has to remember of a definition of crds/ that it has
// dealt with; nil when nothing of it is its own. planned is what was to be remembered of it if the change came to pass.
func (c Change) contributionAfter(planned *definition.Contribution) *definition.Contribution {
	switch {
	case c.Applied == nil || !c.ID.IsCRD():
		return nil
	case planned != nil && planned.Before != "" && planned.Left == definition.ContributionOf(c.Applied).Left: // also when an answer was lost
		planned.Before = ""
		return planned
	case c.Action == decide.Create:
		return new(definition.ContributionOf(c.Applied))
	case c.Action == decide.Update && c.Live != nil:
		return c.Contribution.After(c.Live, c.Applied)
	}
	return c.Contribution
}

// unused returns the new definitions among changes whose kinds nothing that comes after them may use: no object is of one,
// and there is no Job or Pod, which may use any. Nobody has to wait until they are served, which takes a busy API server many
// seconds. A nil planning has nothing left to write.
func (p *planning) unused(changes []Change) map[kube.ID]bool {
	out := map[kube.ID]bool{}
	for _, c := range changes {
		if p != nil && c.ID.IsCRD() && c.Action == decide.Create && !(p.target(c.ID).fromCRDs && len(p.prerequisites.hooks) > 0) {
			out[c.ID] = true
		}
	}
	isProgram := func(m kube.Manifest) bool { return kube.RunsToEnd(kube.IDOf(m.Object).GroupKind()) }
	if len(out) == 0 || slices.ContainsFunc(p.req.Objects, isProgram) || slices.ContainsFunc(p.req.Hooks, isProgram) {
		return nil
	}
	for _, t := range p.targetsByID {
		delete(out, t.definition())
	}
	for _, t := range p.hooks {
		delete(out, t.definition())
	}
	return out
}

// AwaitKinds waits for the definitions that Run has written and hasn't waited for, because nothing used their kinds: with
// served until the kinds are served, which takes a busy API server many seconds, and else, as Helm does, until those of
// crds/ are established.
func (a *Applier) AwaitKinds(ctx context.Context, served bool) error {
	crds := a.unawaited
	a.unawaited = nil
	if served {
		return a.awaitKinds(ctx, crds)
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.RetryTimeout)
	defer cancel()
	return a.awaitEstablished(ctx, slices.DeleteFunc(crds, func(c Change) bool { return c.Contribution == nil }))
}

// awaitKinds waits until the kinds of CRDs are served. One watch tells when they are accepted and established. Then
// discovery has to list them, as an API server does for the kinds that it can answer for.
func (a *Applier) awaitKinds(ctx context.Context, crds []Change) error {
	if len(crds) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.RetryTimeout)
	defer cancel()
	a.cluster.ForgetKinds()
	if err := a.awaitEstablished(ctx, crds); err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, time.Second) {
		outdated, err := a.outdatedInDiscovery(ctx, crds)
		if err != nil || outdated == nil {
			return err
		}
		if sleepErr := kube.Sleep(ctx, pause); sleepErr != nil {
			return kindNotServedError(*outdated, fmt.Errorf("discovery doesn't list the versions that it serves yet: %w", sleepErr))
		}
		a.cluster.ForgetKinds()
	}
}

// firstPause is the first pause when polling for something that changes soon.
const firstPause = 25 * time.Millisecond

// kindNotServedError adds to err which definition it is about; nil stays nil.
func kindNotServedError(c Change, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{ID: c.ID, Source: c.Source, Doing: "waiting for the kind of", Err: err}
}

// outdatedInDiscovery returns one of the CRDs of which discovery lacks a served version, or still
// lists one that is no longer served; nil when there is none.
func (a *Applier) outdatedInDiscovery(ctx context.Context, crds []Change) (*Change, error) {
	for i, c := range crds {
		served := map[schema.GroupVersionKind]bool{}
		if c.Live != nil {
			for gvk := range definition.Kinds(c.Live) {
				served[gvk] = false
			}
		}
		for gvk := range definition.Kinds(c.Applied) {
			served[gvk] = true
		}
		for gvk, is := range served {
			if listed, err := a.isListed(ctx, gvk); err != nil || listed != is {
				return &crds[i], kindNotServedError(c, err)
			}
		}
	}
	return nil, nil
}

// isListed reports whether discovery lists a version of a kind.
func (a *Applier) isListed(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	_, err := a.cluster.Mapping(ctx, gvk, false)
	if errors.As(err, new(*kube.NoKindMatchError)) || errors.As(err, new(*kube.UnknownKindsError)) {
		return false, nil
	}
	return err == nil, err
}

// A missingConditions maps the names of definitions that aren't served yet to what they lack.
type missingConditions map[string]string

// note notes what a definition lacks by its conditions.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func (m missingConditions) note(crd *unstructured.Unstructured) {
	delete(m, crd.GetName())
	for _, kind := range []string{"NamesAccepted", "Established"} {
		if ok, why := conditionOf(crd, kind); !ok {
			m[crd.GetName()] = strings.TrimSpace(fmt.Sprintf("condition %s is not true %s", kind, why))
			return
		}
	}
}

// awaitEstablished waits until definitions are served. They are read after a watch
// that ended early, and where watching isn't permitted.
func (a *Applier) awaitEstablished(ctx context.Context, crds []Change) error {
	missing, versions := missingConditions{}, make([]string, 0, len(crds))
	for _, c := range crds {
		missing.note(c.Applied)
		versions = append(versions, c.Applied.GetResourceVersion())
	}
	for pause := firstPause; len(missing) > 0; pause = min(2*pause, time.Second) {
		missing.watchUntilMet(ctx, a.cluster, kube.OldestVersion(versions))
		if len(missing) == 0 {
			return nil
		}
		stopped := kube.Sleep(ctx, pause)
		versions = versions[:0]
		for _, c := range crds {
			why, open := missing[c.ID.Name]
			if !open {
				continue
			}
			if stopped != nil {
				return kindNotServedError(c, fmt.Errorf("%s: %w", why, stopped))
			}
			live, err := a.get(ctx, definition.Mapping, c.ID)
			switch {
			case err != nil:
				return kindNotServedError(c, err)
			case live == nil:
				return kindNotServedError(c, errors.New("it has been deleted"))
			}
			missing.note(live)
			versions = append(versions, live.GetResourceVersion())
		}
	}
	return nil
}

// watchLimit is how long one watch lasts at most; then the missing definitions are
// read.
const watchLimit = 10 * time.Second

// watchUntilMet watches until m is empty, the watch has ended, or one of the definitions was
// deleted.
func (m missingConditions) watchUntilMet(ctx context.Context, cluster *kube.Cluster, from string) {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	events, err := cluster.WatchCRDs(ctx, from)
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		crd, ok := event.Object.(*apiextensions.CustomResourceDefinition)
		if !ok {
			return // the watch has expired
		}
		if _, open := m[crd.Name]; !open {
			continue
		}
		if event.Type == watch.Deleted {
			return
		}
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&crd.Status) // definitions are large, and this is all that counts
		if err != nil {
			return
		}
		m.note(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": crd.Name}, "status": status}})
		if len(m) == 0 {
			return
		}
	}
}

// conditionOf reports whether a condition of an object is true, and its message.
func conditionOf(obj *unstructured.Unstructured, kind string) (bool, string) {
	for _, c := range kube.Items(obj.Object, "status", "conditions") {
		if c["type"] == kind {
			return c["status"] == "True", fields.AsString(c["message"])
		}
	}
	return false, ""
}
