package deploy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/release"
)

// hideStoredRevisions makes known the confidential values of all stored revisions, for
// showing changes: an old value may be a former password. It only reads, and doesn't read
// again what op was decided on.
func (d *Deployer) hideStoredRevisions(ctx context.Context, op *Operation) (err error) {
	ctx, done := LimitStep(ctx, StepDecide, d.Settings.Timeout)
	defer func() { err = done(err) }()
	history := op.history
	if history == nil {
		if history, err = d.Releases.History(ctx, op.Release); err != nil {
			return err
		}
	}
	_, err = d.storedRevisions(ctx, history)
	return err
}

// recordConfidential lists in the record those confidential texts of objects read by templates that the
// manifest, a hook or the notes contain. Later commands hide them: they don't render the chart, and the
// objects may have changed.
func (o *Operation) recordConfidential(read *hide.Texts) {
	texts := []string{o.Next.Manifest, o.Next.Info.Notes}
	for _, h := range o.Next.Hooks {
		texts = append(texts, h.Manifest)
	}
	o.Next.Journal.Confidential = read.OriginsIn(texts...)
}

// collectHidden notes what must not be shown: the confidential values of records, of the
// objects of revisions (also as they were before they were adopted) and of lists of
// objects. Names of objects are shown everywhere and are no secrets.
func (d *Deployer) collectHidden(records []*release.Record, revisions []apply.Revision, lists ...[]kube.Manifest) {
	d.Hidden.AddVisibleName(d.Namespace)
	for _, r := range records {
		d.Hidden.AddValues(r.Config)
		for _, defaults := range chart.DefaultValues(r.Chart) {
			d.Hidden.AddValues(defaults)
		}
		if r.Journal != nil {
			for _, text := range r.Journal.Confidential {
				d.Hidden.AddText(text)
			}
		}
		d.Hidden.AddVisibleName(r.Name)
		if r.Chart != nil && r.Chart.Metadata != nil {
			d.Hidden.AddVisibleName(r.Chart.Metadata.Name)
		}
	}
	for _, r := range revisions {
		lists = append(lists, r.Objects, r.Hooks)
		for _, provenance := range r.Provenance {
			d.Hidden.AddObject(provenance.Adopted.PriorObject())
		}
	}
	for _, list := range lists {
		for _, m := range list {
			var generated []string
			if hide.IsSecret(m.Object) {
				generated = d.generatedPaths(m.Object, records)
			}
			d.Hidden.AddObject(m.Object, generated...)
		}
	}
}

// generatedPaths returns the fields of a Secret that the charts of records have generated.
func (d *Deployer) generatedPaths(secret *unstructured.Unstructured, records []*release.Record) []string {
	id := kube.IDOf(secret)
	id.Namespace = cmp.Or(id.Namespace, d.Namespace)
	var out []string
	for _, r := range records {
		if r.Journal != nil {
			out = slices.AppendSeq(out, maps.Keys(r.Journal.Generated[apply.Key(id)]))
		}
	}
	return out
}

// hideManifest makes known the confidential values of what was rendered for a post-renderer that failed: its message may
// quote them. rendered is nil if templates failed.
func (d *Deployer) hideManifest(rendered *chart.Rendered) {
	if rendered == nil {
		return
	}
	if manifests, err := chart.Parse(rendered.Manifest); err == nil { // otherwise there is an error before the post-renderer
		d.collectHidden(nil, nil, manifests)
	}
}

// storedRevisions returns all stored revisions, with hooks and crds/ among their objects.
// Unreadable ones and those of an uninstall have no objects.
func (d *Deployer) storedRevisions(ctx context.Context, history *release.History) ([]apply.Revision, error) {
	var out []apply.Revision
	var parser chart.Parser
	history.LoadRemaining(ctx)
	for _, s := range history.Revisions {
		record, err := history.Load(ctx, s.Revision)
		var corrupt *release.CorruptError
		if errors.As(err, &corrupt) || err == nil && record.Info.Status == helmrelease.StatusUninstalled {
			out = append(out, apply.Revision{Revision: s.Revision})
			continue
		}
		if err != nil {
			return nil, err
		}
		revisions, err := revisionsOf([]*release.Record{record}, &parser)
		if err != nil {
			return nil, err
		}
		revisions[0].Objects = slices.Concat(revisions[0].Objects, revisions[0].Hooks, appliedCRDs(record, &parser))
		out = append(out, revisions...)
		d.collectHidden([]*release.Record{record}, revisions)
	}
	return out, nil
}
