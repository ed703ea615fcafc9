package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/chart"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/release"
)

// An UpgradeRequest asks for a chart to be deployed as the next revision of a
// release, or as its first.
type UpgradeRequest struct {
	Name   string
	Chart  *chart.Chart
	Values map[string]any // the user's values
	Reuse  chart.ReuseMode

	// Install says whether the release must, may or must not have been deployed before:
	// see the constants.
	Install         InstallPolicy
	Replace         bool // re-use the name of an uninstalled or failed release
	CreateNamespace bool
	Description     string
	Labels          map[string]string
	// Render has the settings of rendering that don't depend on the release; the rest is
	// filled in.
	Render chart.Input
}

// InstallPolicy is how a request treats a release that isn't deployed yet.
type InstallPolicy string

// The choices.
const (
	InstallNever     InstallPolicy = ""       // upgrade: there must be a deployed release
	InstallIfMissing InstallPolicy = "allow"  // upgrade --install: install when there is none
	InstallOnly      InstallPolicy = "insist" // install: there must be none
)

// Upgrade decides an install or upgrade of a chart. It only reads.
func (d *Deployer) Upgrade(ctx context.Context, req UpgradeRequest) (*Operation, error) {
	if err := errors.Join(release.ValidateName(req.Name), validateNamespace(d.Namespace), release.ValidateLabels(req.Labels)); err != nil {
		return nil, inputError{err}
	}
	d.Hidden.AddValues(req.Values)
	for _, defaults := range chart.DefaultValues(req.Chart.Helm) {
		d.Hidden.AddValues(defaults)
	}
	history, missing, err := d.readFirst(ctx, req.Name, req.CreateNamespace)
	if req.Install == InstallNever && errors.As(err, new(*NoNamespaceError)) {
		return nil, &release.NoDeployedError{Namespace: d.Namespace, Name: req.Name, NoNamespace: true}
	}
	if err != nil {
		return nil, err
	}
	verb, err := decideVerb(req, history)
	op := d.newOperation(verb, history)
	if err != nil {
		return op, err // with its basis, by which otherRunInterfered finds the reason
	}
	op.NewNamespace = missing
	if err := d.awaitDefaultAccount(ctx, op); err != nil {
		return nil, err
	}
	earlier, err := d.render(ctx, op, req)
	if err != nil {
		return nil, err
	}
	return op, d.planObjects(ctx, op, earlier)
}

// readFirst reads what an install or upgrade begins with: the history of the release, whether its namespace
// has to be created, and which kinds the cluster serves, which d.Cluster caches. It asks for all of that at
// once, because answers of a distant cluster take long.
func (d *Deployer) readFirst(ctx context.Context, name string, createNamespace bool) (history *release.History, missing bool, err error) {
	var ofNamespace, ofRecords, ofKinds error
	var reading sync.WaitGroup
	reading.Go(func() { missing, ofNamespace = d.isNamespaceMissing(ctx, createNamespace) })
	reading.Go(func() { history, ofRecords = d.Releases.HistoryWithRecords(ctx, name) })
	reading.Go(func() { _, ofKinds = d.Cluster.ServerInfo(ctx) })
	reading.Wait()
	if err := cmp.Or(ofNamespace, ofRecords, ofKinds); err != nil {
		return nil, false, err
	}
	return history, missing, nil
}

// decideVerb returns Install or Upgrade. Install hooks run and .Release.IsInstall is true
// if nothing of the release was ever deployed, whatever the flags say.
func decideVerb(req UpgradeRequest, history *release.History) (Verb, error) {
	latest := history.Latest()
	isInstalled := latest != nil && latest.Status != helmrelease.StatusUninstalled
	switch {
	case !isInstalled && req.Install == InstallNever:
		return "", &release.NoDeployedError{Namespace: history.Namespace, Name: req.Name}
	case latest != nil && req.Install == InstallOnly && !(req.Replace && (!isInstalled || latest.Status == helmrelease.StatusFailed)):
		return "", &NameInUseError{Namespace: history.Namespace, Name: req.Name, Status: latest.Status.String()}
	case isInstalled && wasEverDeployed(history):
		return Upgrade, nil
	}
	return Install, nil
}

// wasEverDeployed reports whether the release was deployed since it was last installed, as far as its
// records go back. A revision whose uninstall failed counts if it was deployed before. Of Helm's revisions
// that isn't known, so they count too.
func wasEverDeployed(history *release.History) bool {
	for _, r := range slices.Backward(history.Revisions) {
		switch r.Status {
		case helmrelease.StatusDeployed, helmrelease.StatusSuperseded:
			return true
		case helmrelease.StatusUninstalled:
			return false
		}
		isByHelm := r.Run == ""
		if r.WasDeployed || isByHelm && r.Status == helmrelease.StatusUninstalling {
			return true
		}
	}
	return false
}

// render turns the chart into the record of the next revision and the objects
// of its crds/ directory. In the meantime it reads the earlier revisions.
func (d *Deployer) render(ctx context.Context, op *Operation, req UpgradeRequest) (earlier *earlierRevisions, err error) {
	base, latest, err := reusableRevisions(ctx, req, op.history)
	if err != nil {
		return nil, err
	}
	source, values, err := d.valuesFor(op, req, base)
	if err != nil {
		return nil, err
	}
	read := &hide.Texts{} // what templates have read
	in, err := d.chartInput(ctx, op, req, values, read)
	if err != nil {
		return nil, err
	}
	var crdWarnings []string
	var ofCRDs error
	in.WhileRendering = func(ctx context.Context, c *chart.Chart) {
		if earlier == nil || earlier.err != nil { // else the chart is rendered once more
			earlier = readEarlierRevisions(ctx, op.history)
			d.collectHidden(nil, earlier.request.Revisions) // the slow part of it, ahead of time
			op.Rendered.CRDs, crdWarnings, ofCRDs = chart.CRDs(c.Helm)
		}
	}
	rendered, err := d.renderAndKeep(ctx, op, source, in)
	if err != nil {
		return nil, err
	}
	op.Rendered.ClusterIndependent = !rendered.MayUseCluster
	op.Warnings = slices.Concat(op.Warnings, req.Chart.Warnings, rendered.Warnings)
	op.Next = newRecord(helmrelease.Release{
		Name: req.Name, Namespace: d.Namespace, Version: op.history.Next(), Chart: rendered.Chart, Config: values,
		Manifest: rendered.Manifest, Hooks: rendered.Hooks, Labels: labelsFor(req.Labels, latest),
	}, rendered.Notes, req.Description)
	if base != nil {
		op.Next.Info.FirstDeployed = base.Info.FirstDeployed
	}
	op.recordGenerated()
	op.recordConfidential(read)
	d.replaceRemovedAPIs(ctx, op)
	op.Warnings = append(op.Warnings, crdWarnings...)
	if ofCRDs != nil && d.Settings.CRDs.Applies() {
		return nil, inputError{ofCRDs}
	}
	return earlier, nil
}

// valuesFor returns the chart and the values to render, with those of the revision whose values are reused; base may be nil.
func (d *Deployer) valuesFor(op *Operation, req UpgradeRequest, base *release.Record) (*chart.Chart, map[string]any, error) {
	if base == nil {
		return req.Chart, req.Values, nil
	}
	op.Basis.ReusedRevision = base.Version
	previous := chart.Previous{Chart: base.Chart, Values: base.Config}
	if previous.ReusedByDefault(req.Reuse, req.Values) {
		op.Warnings = append(op.Warnings, valuesReusedWarning(base))
	}
	source, values, err := req.Chart.WithPreviousValues(req.Reuse, previous, req.Values)
	if err != nil {
		return nil, nil, inputError{err}
	}
	return source, values, nil
}

// chartInput completes the settings of rendering. What templates read of the cluster is hidden, and noted in read.
func (d *Deployer) chartInput(ctx context.Context, op *Operation, req UpgradeRequest, values map[string]any, read *hide.Texts) (chart.Input, error) {
	in := req.Render
	in.Release, in.Namespace, in.Revision = req.Name, d.Namespace, op.history.Next()
	in.Upgrade, in.Values = op.Verb == Upgrade, values
	in.Lookup = chart.Lookup{Cluster: d.Cluster, Cache: &chart.LookupCache{}, OnRead: func(obj *unstructured.Unstructured) {
		d.Hidden.AddObject(obj)
		read.AddObject(obj)
	}}
	var err error
	in.Server, err = d.Cluster.ServerInfo(ctx)
	return in, err
}

// valuesReusedWarning returns the warning that the values of a revision are reused
// because none are given. This is Helm's rule, and has surprised many
// (https://github.com/helm/helm/issues/3957).
func valuesReusedWarning(base *release.Record) string {
	names := slices.Sorted(maps.Keys(base.Config))
	return fmt.Sprintf("no values given, so those of revision %d are used again (%s): to leave them out, add --reset-values; to keep them without this warning, add --reset-then-reuse-values",
		base.Version, strings.Join(names, ", "))
}

// reusableRevisions returns the revision whose values may be reused and the latest one, whose labels are, as in Helm
// (helm.sh/helm/v3/pkg/action/upgrade.go, prepareUpgrade): also of a release in which every revision has failed, but nil
// for `install` and after an uninstall.
func reusableRevisions(ctx context.Context, req UpgradeRequest, history *release.History) (base, latest *release.Record, err error) {
	newest := history.Latest()
	if newest == nil || newest.Status == helmrelease.StatusUninstalled || req.Install == InstallOnly {
		return nil, nil, nil
	}
	if latest, err = history.Load(ctx, newest.Revision); err != nil {
		return nil, nil, err
	}
	if deployed := history.Deployed(); deployed != nil {
		base, err = history.Load(ctx, deployed.Revision)
		return base, latest, err
	}
	return latest, latest, nil
}

// labelsFor merges the given labels into those of the latest revision, as Helm does
// (helm.sh/helm/v3/pkg/action/upgrade.go, mergeCustomLabels): the value "null" removes
// one.
func labelsFor(given map[string]string, latest *release.Record) map[string]string {
	labels := map[string]string{}
	if latest != nil {
		maps.Copy(labels, latest.Labels)
	}
	for name, value := range given {
		labels[name] = value
		if value == "null" {
			delete(labels, name)
		}
	}
	return labels
}

// replaceRemovedAPIs replaces API versions that the cluster has removed in the manifest
// and hooks of op, if the settings say so, and warns of each. The result is recorded, so
// that the next rollback has served versions.
func (d *Deployer) replaceRemovedAPIs(ctx context.Context, op *Operation) {
	if !d.Settings.MapRemovedAPIs {
		return
	}
	newer := func(obj *unstructured.Unstructured) string {
		next := kube.ReplacementAPI(obj)
		if next == "" || !d.isRemoved(ctx, obj.GroupVersionKind()) || d.isRemoved(ctx, schema.FromAPIVersionAndKind(next, obj.GetKind())) {
			return ""
		}
		return next
	}
	var changes []string
	op.Next.Manifest, changes = chart.ReplaceAPIVersions(op.Next.Manifest, newer)
	op.Warnings = append(op.Warnings, changes...)
	for _, h := range op.Next.Hooks {
		h.Manifest, changes = chart.ReplaceAPIVersions(h.Manifest, newer)
		op.Warnings = append(op.Warnings, changes...)
	}
}

// isRemoved says that the cluster certainly doesn't serve a kind.
func (d *Deployer) isRemoved(ctx context.Context, gvk schema.GroupVersionKind) bool {
	_, err := d.Cluster.Mapping(ctx, gvk, false)
	return errors.As(err, new(*kube.NoKindMatchError))
}

// MarkAsDryRun gives the record of an install or upgrade that is only shown the
// status, times and words that Helm gives it in a dry run.
// (helm.sh/helm/v3/pkg/action/install.go and upgrade.go)
func (o *Operation) MarkAsDryRun(now time.Time) {
	info := o.Next.Info
	info.Description, info.LastDeployed = "Dry run complete", helmtime.Time{Time: now}
	info.Status = verbs[o.Verb].running
	if info.FirstDeployed.IsZero() {
		info.FirstDeployed = info.LastDeployed
	}
}

// A RenderedRequest is an install or upgrade whose record was rendered before.
type RenderedRequest struct {
	Verb            Verb
	Next            *release.Record // the complete record; Begin refuses it if it is no longer the next one
	CRDs            []kube.Manifest // of the chart's crds/ directory
	CreateNamespace bool
}

// DeployRendered decides what deploying a record that was rendered before takes now.
// It only reads.
func (d *Deployer) DeployRendered(ctx context.Context, req RenderedRequest) (*Operation, error) {
	history, missing, err := d.readFirst(ctx, req.Next.Name, req.CreateNamespace)
	if err != nil {
		return nil, err
	}
	op := d.newOperation(req.Verb, history)
	op.Next, op.NewNamespace, op.Rendered.CRDs = req.Next, missing, req.CRDs
	if err := d.awaitDefaultAccount(ctx, op); err != nil {
		return nil, err
	}
	op.Rendered.Generated = recordedGenerated(req.Next)
	return op, d.planObjects(ctx, op, readEarlierRevisions(ctx, history))
}
