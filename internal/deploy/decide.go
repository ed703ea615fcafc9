package deploy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/release"
)

// An UpgradeRequest asks for a chart to be deployed as the next revision of a
// release, or as its first.
type UpgradeRequest struct {
	Name   string
	Chart  *chart.Chart
	Values map[string]any // the user's values
	Reuse  chart.Reuse

	// First says what to do about a release that was never deployed, or was:
	// see the constants.
	First           First
	Replace         bool // re-use the name of an uninstalled or failed release
	CreateNamespace bool
	Description     string
	Labels          map[string]string
	// Render holds the settings of rendering: what doesn't depend on the
	// release is taken from it, the rest is filled in.
	Render chart.Input
}

// First is how a request treats a release that isn't deployed yet.
type First string

// The choices.
const (
	FirstRefused First = ""       // upgrade: there must be a deployed release
	FirstAllowed First = "allow"  // upgrade --install: install when there is none
	FirstOnly    First = "insist" // install: there must be none
)

// Upgrade decides what deploying a chart takes. It only reads.
func (d *Deployer) Upgrade(ctx context.Context, req UpgradeRequest) (*Operation, error) {
	if err := release.ValidateName(req.Name); err != nil {
		return nil, err
	}
	d.Hidden.Values(req.Values)
	missing, err := d.namespaceMissing(ctx, req.CreateNamespace)
	if err != nil {
		return nil, err
	}
	history, err := d.Releases.History(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	verb, err := verbFor(req, history)
	if err != nil {
		return nil, err
	}
	op := &Operation{
		Verb: verb, Release: req.Name, Namespace: d.Namespace, Base: history.Latest(), NewNamespace: missing,
	}
	crds, err := d.render(ctx, op, req, history)
	if err != nil {
		return nil, err
	}
	return op, d.decide(ctx, op, history, crds)
}

// verbFor tells an install from an upgrade: what selects install hooks and
// .Release.IsInstall is that nothing of the release was ever deployed, not a
// flag.
func verbFor(req UpgradeRequest, history *release.History) (Verb, error) {
	latest := history.Latest()
	switch {
	case latest == nil && req.First == FirstRefused:
		return "", &release.NoDeployedError{Namespace: history.Namespace, Name: req.Name}
	case latest == nil:
		return Install, nil
	case latest.Status == helmrelease.StatusUninstalled:
		if req.First == FirstRefused {
			return "", &release.NoDeployedError{Namespace: history.Namespace, Name: req.Name}
		}
		if req.First == FirstOnly && !req.Replace {
			return "", &NameInUseError{Name: req.Name, Status: latest.Status.String()}
		}
		return Install, nil
	case req.First == FirstOnly && !(req.Replace && latest.Status == helmrelease.StatusFailed):
		return "", &NameInUseError{Name: req.Name, Status: latest.Status.String()}
	case everDeployed(history):
		return Upgrade, nil
	}
	return Install, nil
}

// everDeployed tells whether the release was ever up since it was installed,
// as far as its records go back.
func everDeployed(history *release.History) bool {
	for _, r := range slices.Backward(history.Revisions) {
		switch r.Status {
		case helmrelease.StatusDeployed, helmrelease.StatusSuperseded:
			return true
		case helmrelease.StatusUninstalled:
			return false
		}
	}
	return false
}

// A NameInUseError refuses an install over a release that exists.
type NameInUseError struct{ Name, Status string }

func (e *NameInUseError) Error() string {
	return fmt.Sprintf("cannot re-use a name that is still in use: release %s is %s", e.Name, e.Status)
}

// Hint says what to do about it.
func (e *NameInUseError) Hint() string {
	return fmt.Sprintf("to deploy over it:      deployer upgrade --install %s CHART\nto start from nothing:  deployer uninstall %s", e.Name, e.Name)
}

// render turns the chart into the record of the next revision and the objects
// of its crds/ directory.
func (d *Deployer) render(ctx context.Context, op *Operation, req UpgradeRequest, history *release.History) ([]kube.Manifest, error) {
	server, err := d.Cluster.Server(ctx)
	if err != nil {
		return nil, err
	}
	source, values := req.Chart, req.Values
	base, err := d.baseline(ctx, op, history)
	if err != nil {
		return nil, err
	}
	if base != nil {
		previous := chart.Previous{Chart: base.Chart, Values: base.Config}
		if source, values, err = source.Reused(req.Reuse, previous, values); err != nil {
			return nil, err
		}
	}
	in := req.Render
	in.Release, in.Namespace, in.Revision = req.Name, d.Namespace, history.Next()
	in.Upgrade, in.Values = op.Verb == Upgrade, values
	in.Server, in.Lookup = server, d.Cluster
	rendered, err := source.Render(ctx, in)
	if err != nil {
		return nil, err
	}
	op.Warnings = slices.Concat(req.Chart.Warnings, rendered.Warnings)
	op.variants = func(ctx context.Context) ([]*chart.Rendered, error) { return source.Variants(ctx, in) }
	op.Next = newRecord(helmrelease.Release{
		Name: req.Name, Namespace: d.Namespace, Version: history.Next(), Chart: rendered.Chart, Config: values,
		Manifest: rendered.Manifest, Hooks: rendered.Hooks, Labels: labelsFor(req.Labels, base),
	}, rendered.Notes, req.Description)
	if base != nil {
		op.Next.Info.FirstDeployed = base.Info.FirstDeployed
	}
	d.renew(ctx, op)
	return chart.CRDs(rendered.Chart)
}

// baseline is the revision whose values an upgrade may use again; nil for an
// install. What killed runs left pending doesn't count: it is settled before
// the operation is carried out.
func (d *Deployer) baseline(ctx context.Context, op *Operation, history *release.History) (*release.Record, error) {
	if op.Verb != Upgrade {
		return nil, nil
	}
	if deployed := history.Deployed(); deployed != nil {
		return history.Load(ctx, deployed.Revision)
	}
	return history.Load(ctx, history.Latest().Revision)
}

// labelsFor lays the labels given now over those of the baseline, as Helm does
// (helm.sh/helm/v3/pkg/action/upgrade.go, mergeCustomLabels): the value "null"
// removes one.
func labelsFor(given map[string]string, base *release.Record) map[string]string {
	labels := map[string]string{}
	if base != nil {
		maps.Copy(labels, base.Labels)
	}
	for name, value := range given {
		labels[name] = value
		if value == "null" {
			delete(labels, name)
		}
	}
	return labels
}

// newRecord makes the record of a revision from what it consists of.
func newRecord(content helmrelease.Release, notes, description string) *release.Record {
	content.Info = &helmrelease.Info{Notes: notes, Description: description}
	content.Hooks = freshHooks(content.Hooks)
	return &release.Record{Release: content, Journal: &release.Journal{}}
}

// freshHooks copies hooks without the outcomes of an earlier run.
func freshHooks(hooks []*helmrelease.Hook) []*helmrelease.Hook {
	out := make([]*helmrelease.Hook, 0, len(hooks))
	for _, h := range hooks {
		hook := *h
		hook.LastRun = helmrelease.HookExecution{}
		out = append(out, &hook)
	}
	return out
}

// A RollbackRequest asks for the content of an earlier revision. Revision 0
// means the last successful one before the latest.
type RollbackRequest struct {
	Name        string
	Revision    int
	Description string
}

// Rollback decides what going back takes. It only reads.
func (d *Deployer) Rollback(ctx context.Context, req RollbackRequest) (*Operation, error) {
	history, err := d.existing(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	target, err := history.Find(ctx, req.Revision)
	if err != nil {
		return nil, err
	}
	next := newRecord(helmrelease.Release{
		Name: req.Name, Namespace: d.Namespace, Version: history.Next(), Chart: target.Chart, Config: target.Config,
		Manifest: target.Manifest, Hooks: target.Hooks, Labels: maps.Clone(target.Labels),
	}, target.Info.Notes, req.Description)
	next.Info.FirstDeployed = target.Info.FirstDeployed
	op := &Operation{
		Verb: Rollback, Release: req.Name, Namespace: d.Namespace,
		Base: history.Latest(), Next: next, Target: target.Version,
	}
	d.renew(ctx, op)
	return op, d.decide(ctx, op, history, nil)
}

// existing reads the history of a release that has one.
func (d *Deployer) existing(ctx context.Context, name string) (*release.History, error) {
	if err := release.ValidateName(name); err != nil {
		return nil, err
	}
	history, err := d.Releases.History(ctx, name)
	if err == nil && history.Latest() == nil {
		err = &release.NotFoundError{Namespace: d.Namespace, Name: name}
	}
	return history, err
}

// An UninstallRequest asks for everything of a release to be deleted.
type UninstallRequest struct {
	Name        string
	KeepHistory bool
	Description string
}

// Uninstall decides what removing a release takes. It only reads. The
// operation is nil when only the records of an uninstalled release are left
// and they are to be kept.
func (d *Deployer) Uninstall(ctx context.Context, req UninstallRequest) (*Operation, error) {
	history, err := d.existing(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	latest := history.Latest()
	record, err := history.Load(ctx, latest.Revision)
	if err != nil {
		return nil, err
	}
	op := &Operation{
		Verb: Uninstall, Release: req.Name, Namespace: d.Namespace,
		Base: latest, Next: record, KeepHistory: req.KeepHistory, Description: req.Description,
		Cascade: d.Settings.Apply.Propagation,
	}
	if latest.Status == helmrelease.StatusUninstalled {
		if req.KeepHistory {
			return nil, fmt.Errorf("the release named %q is already deleted", req.Name)
		}
		op.Plan = &apply.Plan{} // only records are left to remove
		return op, nil
	}
	return op, d.decide(ctx, op, history, nil)
}

// decide is where upgrade, rollback and uninstall become the same thing: it
// fills in the plan and the hooks of the operation.
func (d *Deployer) decide(ctx context.Context, op *Operation, history *release.History, crds []kube.Manifest) error {
	owned, err := history.Owned(ctx)
	if err != nil {
		return err
	}
	var parser chart.Parser
	past, err := pastOf(owned, &parser)
	if err != nil {
		return err
	}
	op.past, op.CRDs, op.Hidden = past, crds, d.Hidden
	if len(owned) > 0 {
		op.resume(owned[len(owned)-1])
	}
	if !d.Settings.NoHooks {
		events := hookEvents[op.Verb]
		op.Hooks = Hooks{Before: hooksFor(events[0], op.Next.Hooks), After: hooksFor(events[1], op.Next.Hooks)}
	}
	req := apply.Request{CRDs: crds, Past: past, Marks: marksOf(owned), Leftover: leftoverOf(owned), Uninstall: op.Verb == Uninstall}
	if op.NewNamespace {
		req.NewNamespaces = []string{d.Namespace}
	}
	if req.Hooks, err = hookManifests(slices.Concat(op.Hooks.Before, op.Hooks.After)); err != nil {
		return err
	}
	if op.Verb != Uninstall {
		if req.Objects, err = parser.Parse(op.Next.Manifest); err != nil {
			return err
		}
		if req.Resting, err = hookManifests(op.Next.Hooks); err != nil {
			return err
		}
	}
	d.learn(append(owned, op.Next), past, req.Objects, req.Hooks, req.Resting)
	op.Plan, err = d.applier(op).Plan(ctx, req)
	if err != nil {
		return err
	}
	for _, c := range op.Plan.Changes() {
		d.Hidden.Object(c.Live)
	}
	if d.Settings.Wait {
		op.Awaits = d.awaits(op)
	}
	return nil
}

// awaits lists what the wait at the end is about: objects that aren't ready just
// because they are there.
func (d *Deployer) awaits(op *Operation) []apply.Need {
	var out []apply.Need
	for _, wave := range op.Plan.Waves {
		for _, c := range wave.Changes {
			obj := cmp.Or(c.Want, c.Live)
			if obj != nil && !d.Settings.Track.Still(obj) && (d.Settings.WaitJobs || !isJob(c.ID)) {
				out = append(out, apply.Need{ID: c.ID, State: apply.Ready})
			}
		}
	}
	for _, c := range op.Plan.Prune {
		if op.Verb == Uninstall && c.Action == apply.Delete {
			out = append(out, apply.Need{ID: c.ID, State: apply.Gone})
		}
	}
	return out
}

func isJob(id kube.ID) bool { return id.Kind == "Job" && id.Group == "batch" }

func (d *Deployer) applier(op *Operation) *apply.Applier {
	opts := d.Settings.Apply
	opts.RetryTimeout, opts.Warn = d.Settings.Timeout, d.Warn
	if op.Verb == Uninstall {
		// What the templates made goes with the release, as with Helm; the
		// annotation helm.sh/resource-policy keeps what must outlive it.
		opts.PruneKinds = []string{"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"}
	}
	return apply.New(d.Cluster, apply.Owner{Release: op.Release, Namespace: op.Namespace}, opts)
}

// marksOf gives the marks of the latest revision, if deployer made it.
func marksOf(owned []*release.Record) map[string]apply.Mark {
	if len(owned) == 0 || owned[len(owned)-1].Journal == nil {
		return nil
	}
	marks := map[string]apply.Mark{}
	for key, m := range owned[len(owned)-1].Journal.Objects {
		if m.Print == "" {
			continue // only planned, or nothing to recognise it by
		}
		marks[key] = apply.Mark{UID: m.UID, Print: m.Print}
	}
	return marks
}

// leftoverOf lists what earlier releases kept and wanted looked at again. A
// failed one may not have come to it, so those since the last successful one
// all count.
func leftoverOf(owned []*release.Record) []string {
	var keys []string
	for _, r := range owned {
		if r.Journal != nil {
			keys = append(keys, r.Journal.Leftover...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func pastOf(owned []*release.Record, parser *chart.Parser) ([]apply.Past, error) {
	var past []apply.Past
	for _, r := range owned {
		p := apply.Past{Revision: r.Version, Status: r.Info.Status.String()}
		var err error
		if p.Objects, err = parser.Parse(r.Manifest); err != nil {
			return nil, fmt.Errorf("reading the manifest of revision %d: %w", r.Version, err)
		}
		for _, h := range r.Hooks {
			objects, err := chart.ParseHook(h)
			if err != nil {
				return nil, fmt.Errorf("reading the hooks of revision %d: %w", r.Version, err)
			}
			p.Hooks = append(p.Hooks, objects...)
		}
		past = append(past, p)
	}
	return past, nil
}

// hookManifests are the objects of hooks, each once: one hook may run at both
// events.
func hookManifests(hooks []*helmrelease.Hook) ([]kube.Manifest, error) {
	var out []kube.Manifest
	seen := map[*helmrelease.Hook]bool{}
	for _, h := range hooks {
		if seen[h] {
			continue
		}
		seen[h] = true
		objects, err := chart.ParseHook(h)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

func (d *Deployer) namespaceMissing(ctx context.Context, create bool) (bool, error) {
	typed, err := d.Cluster.Typed()
	if err != nil {
		return false, err
	}
	_, err = typed.CoreV1().Namespaces().Get(ctx, d.Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsForbidden(err):
		return false, nil // whoever may deploy into it need not be allowed to read it
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading Namespace/%s: %w", d.Namespace, err)
	case create:
		return true, nil
	}
	return false, &NoNamespaceError{Namespace: d.Namespace}
}

// A NoNamespaceError says that the namespace of a release isn't there.
type NoNamespaceError struct{ Namespace string }

func (e *NoNamespaceError) Error() string {
	return fmt.Sprintf("namespaces %q not found", e.Namespace)
}

// Hint says what to do about it.
func (e *NoNamespaceError) Hint() string {
	return "create it with --create-namespace, or name another with --namespace"
}
