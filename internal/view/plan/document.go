package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"

	"deployer/apply"
	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/chart"
	"deployer/chart/retain"
	"deployer/internal/deploy"
	"deployer/internal/hide"
	"deployer/internal/kube"
	"deployer/internal/view/diff"
	"deployer/internal/view/output"
	"deployer/internal/view/page"
)

// A Document is an operation as all formats of a plan show it. Its JSON is
// a promise, see docs/json.md. No value of a Secret is in it.
type Document struct {
	Format   int    `json:"format"`
	Document string `json:"document"` // "plan"
	page.Subject
	BaseRevision     int            `json:"base_revision,omitempty"`
	TargetRevision   int            `json:"target_revision,omitempty"`
	HasChanges       bool           `json:"has_changes"`
	CreatesNamespace bool           `json:"creates_namespace"`
	KeepsHistory     bool           `json:"keeps_history"`
	Cascade          string         `json:"cascade,omitempty"` // uninstall: background, foreground or orphan
	Summary          Summary        `json:"summary"`
	Steps            []step         `json:"stages"`
	Warnings         []page.Warning `json:"warnings"`
}

// A Summary counts the objects of a plan by what happens to them, and their fields.
type Summary struct {
	Create     int `json:"create"`
	Update     int `json:"update"`
	Recreate   int `json:"recreate"`
	Delete     int `json:"delete"`
	GiveBack   int `json:"give_back,omitempty"`
	Keep       int `json:"keep"`
	Unchanged  int `json:"unchanged"`
	Hooks      int `json:"hooks"`
	Taken      int `json:"fields_taken"`
	Yielded    int `json:"fields_yielded"`
	Refused    int `json:"fields_refused"`
	Unverified int `json:"unverified"`
	Random     int `json:"random"`                      // objects that change only because templates make values up
	Kept       int `json:"generated_kept,omitempty"`    // generated fields with the values of earlier revisions
	Renewed    int `json:"generated_renewed,omitempty"` // that could have been kept, or never are
}

// A step is a part of an operation; the order within it doesn't matter.
type step struct {
	Name    string       `json:"name"`            // "pre-upgrade hooks", "prune first", "prune for apply 1", "apply 1", "prune"
	Kind    deploy.Step  `json:"kind"`            // namespace, crds, hooks, apply, wait or prune
	After   []dependency `json:"after,omitempty"` // what has to be before it begins; of a wait before it ends
	Objects []object     `json:"objects"`
}

// A dependency is an object that a step or another object waits for.
type dependency struct {
	Object  string         `json:"object"`
	Group   string         `json:"group"`
	State   ordering.State `json:"state"` // ready, present or gone
	Outside bool           `json:"outside,omitempty"`
}

type object struct {
	Object     string                `json:"object"`
	Group      string                `json:"group"`
	Action     decide.Action         `json:"action"` // create, update, recreate, delete, keep, unchanged or hook
	Source     string                `json:"source,omitempty"`
	Reason     string                `json:"reason,omitempty"`
	Impact     string                `json:"impact,omitempty"`
	Unverified string                `json:"unverified,omitempty"`
	Random     bool                  `json:"random,omitempty"` // changes only because its templates make values up
	After      []dependency          `json:"after,omitempty"`
	Weight     *int                  `json:"weight,omitempty"`
	Generated  []retain.Value        `json:"generated,omitempty"`
	Fields     []diff.Field          `json:"fields,omitempty"`
	Conflicts  []apply.FieldConflict `json:"conflicts,omitempty"`
	TakenFrom  []string              `json:"taken_from,omitempty"`
	Hook       *hook                 `json:"hook,omitempty"`
	Manifest   map[string]any        `json:"manifest,omitempty"` // of what is created
}

type hook struct {
	Event          string   `json:"event"`
	Weight         int      `json:"weight"`
	DeletePolicies []string `json:"delete_policies"`
}

// newDocument turns an operation into its document.
func newDocument(op *deploy.Operation) Document {
	return build(op, func(c apply.Change) object {
		return objectOf(c, op.Rendered.Nondeterminism[c.ID], op.GeneratedIn(c.ID))
	})
}

// Outline is newDocument without fields and manifests, for summaries.
func Outline(op *deploy.Operation) Document { return build(op, outlineOf) }

func build(op *deploy.Operation, describe func(apply.Change) object) Document {
	d := Document{
		Format: output.JSONVersion, Document: "plan", Subject: page.SubjectOf(op), TargetRevision: op.Target, CreatesNamespace: op.NewNamespace, KeepsHistory: op.Removal.KeepHistory,
		Cascade: strings.ToLower(string(op.Removal.Cascade)),
		Steps:   []step{}, Warnings: Warnings(op),
	}
	if op.Basis.Latest != nil {
		d.BaseRevision = op.Basis.Latest.Revision
	}
	plan := op.Plan
	if plan == nil {
		plan = &apply.Plan{}
	}
	if op.MadeNamespace || op.NewNamespace && !plan.Declares(kube.ID{Kind: kube.NamespaceKind.Kind, Name: op.Namespace}) {
		d.add(string(deploy.StepNamespace), deploy.StepNamespace, []object{{Object: "Namespace/" + op.Namespace, Action: decide.Create}})
	}
	d.add(string(deploy.StepCRDs), deploy.StepCRDs, objectsOf(plan.CRDs, describe))
	before, after := op.Verb.HookEvents()
	d.addHooks(op, plan, before, op.Hooks.Before)
	d.add(string(deploy.StepPrune)+" first", deploy.StepPrune, objectsOf(plan.PruneFirst, describe))
	for i, wave := range plan.Waves {
		d.add(fmt.Sprintf("%s for apply %d", deploy.StepPrune, i+1), deploy.StepPrune, objectsOf(wave.PruneFirst, describe))
		if wave.Last {
			continue
		}
		d.add("apply "+strconv.Itoa(i+1), deploy.StepApply, objectsOf(wave.Changes, describe))
		d.Steps[len(d.Steps)-1].After = dependenciesOf(wave.Await)
	}
	if op.Verb != deploy.Uninstall {
		d.addWait(op)
	}
	d.add(string(deploy.StepPrune), deploy.StepPrune, objectsOf(plan.Prune, describe))
	if op.Verb == deploy.Uninstall {
		d.addWait(op)
	}
	d.addHooks(op, plan, after, op.Hooks.After)
	d.add(string(deploy.StepApply)+" last", deploy.StepApply, objectsOf(plan.Last(), describe))
	d.add(string(deploy.StepPrune)+" last", deploy.StepPrune, objectsOf(plan.PruneLast, describe))
	d.countObjects()
	for _, v := range op.Rendered.Generated {
		switch {
		case v.Kept():
			d.Summary.Kept++
		case v.Reason != "":
			d.Summary.Renewed++
		}
	}
	d.markChecksums()
	d.hideConfidential(op.Hidden)
	return d
}

// markChecksums says of which changed objects the annotations of pods are checksums, by what they are called: checksum/config.
func (d *Document) markChecksums() {
	var changed []string
	for _, s := range d.Steps {
		for _, o := range s.Objects {
			if (strings.HasPrefix(o.Object, "ConfigMap/") || strings.HasPrefix(o.Object, "Secret/")) && s.Kind == deploy.StepApply && (o.Action == decide.Create || o.Action == decide.Update || o.Action == decide.Recreate) {
				changed = append(changed, o.Object)
			}
		}
	}
	for _, s := range d.Steps {
		for _, o := range s.Objects {
			for i, f := range o.Fields {
				_, name, ok := strings.Cut(strings.ToLower(f.Path), "checksum/")
				if !ok || !strings.Contains(f.Path, "annotations") || f.Type != compare.Changed {
					continue
				}
				of := slices.Clone(changed)
				for _, kind := range []string{"Secret", "ConfigMap"} {
					if strings.Contains(name, strings.ToLower(kind)) || kind == "ConfigMap" && strings.Contains(name, "config") {
						of = slices.DeleteFunc(of, func(object string) bool { return !strings.HasPrefix(object, kind+"/") })
					}
				}
				if len(of) == 1 { // otherwise it is anybody's guess
					o.Fields[i].Follows = of
				}
			}
		}
	}
}

// hideConfidential takes confidential texts out of the values and the words of a plan;
// objects, templates and paths are named as they are.
func (d *Document) hideConfidential(hidden *hide.Texts) {
	for _, s := range d.Steps {
		for i := range s.Objects {
			o := &s.Objects[i]
			o.Reason, o.Unverified = hidden.Hide(o.Reason), hidden.Hide(o.Unverified)
			for j := range o.Fields {
				o.Fields[j] = o.Fields[j].WithoutHidden(hidden)
			}
			for j := range o.Generated {
				o.Generated[j].Path = hide.Fields{}.HidePath(o.Generated[j].Path, hidden)
			}
			o.hideConflicts(hidden)
			if o.Manifest != nil {
				o.Manifest, _ = hidden.HideValue(o.Manifest).(map[string]any)
			}
		}
	}
}

// hideConflicts hides the values of conflicts about hidden fields.
func (o *object) hideConflicts(hidden *hide.Texts) {
	hiddenPaths := map[string]bool{}
	for _, f := range o.Fields {
		hiddenPaths[f.Path] = f.Hidden
	}
	for i := range o.Conflicts {
		c := &o.Conflicts[i]
		c.Path, c.CollidesWith = hide.Fields{}.HidePath(c.Path, hidden), hide.Fields{}.HidePath(c.CollidesWith, hidden)
		if c.Before, c.After = hidden.HideTextPair(c.Before, c.After); hiddenPaths[c.Path] {
			c.Before, c.After = hide.Placeholder, hide.Placeholder
		}
	}
}

func (d *Document) add(name string, kind deploy.Step, objects []object) {
	if len(objects) > 0 {
		d.Steps = append(d.Steps, step{Name: name, Kind: kind, Objects: objects})
	}
}

// addWait adds what the run waits for between its other steps.
func (d *Document) addWait(op *deploy.Operation) {
	if len(op.WaitsFor) > 0 {
		d.Steps = append(d.Steps, step{Name: string(deploy.StepWait), Kind: deploy.StepWait, Objects: []object{}, After: dependenciesOf(op.WaitsFor)})
	}
}

// Warnings are the warnings of an operation and of its plan, without confidential texts.
func Warnings(op *deploy.Operation) []page.Warning {
	var all []apply.Warning
	for _, text := range op.Warnings {
		all = append(all, apply.Warning{Text: text})
	}
	if op.Plan != nil {
		all = append(all, op.Plan.Warnings...)
	}
	return page.WarningsOf(all, op.Hidden)
}

func (d *Document) countObjects() {
	s := &d.Summary
	counters := map[decide.Action]*int{
		decide.Create: &s.Create, decide.Update: &s.Update, decide.Recreate: &s.Recreate,
		decide.Delete: &s.Delete, decide.GiveBack: &s.GiveBack, decide.Keep: &s.Keep, decide.Unchanged: &s.Unchanged, actionHook: &s.Hooks,
	}
	outcomes := map[decide.FieldOutcome]*int{
		decide.OutcomeTaken: &s.Taken, decide.OutcomeYielded: &s.Yielded, decide.OutcomeRefused: &s.Refused,
	}
	for _, step := range d.Steps {
		for _, o := range step.Objects {
			if n := counters[o.Action]; n != nil {
				*n++
			}
			if o.Unverified != "" {
				s.Unverified++
			}
			if o.Random {
				s.Random++
			}
			for _, c := range o.Conflicts {
				if n := outcomes[c.Outcome]; n != nil {
					*n++
				}
			}
		}
	}
	d.HasChanges = s.Create+s.Update+s.Recreate+s.Delete+s.GiveBack+s.Hooks > 0
}

// addHooks adds the hooks that run at an event.
func (d *Document) addHooks(op *deploy.Operation, plan *apply.Plan, event helmrelease.HookEvent, hooks []*helmrelease.Hook) {
	var objects []object
	for _, h := range hooks {
		for _, named := range HookObjects(op, h) {
			o := object{Object: named.ID.String(), Action: actionHook, Source: h.Path}
			o.Hook = &hook{Event: string(event), Weight: h.Weight, DeletePolicies: deletePolicies(h)}
			if c := named.plannedIn(plan.Hooks); c != nil {
				o.Group, o.Reason, o.Unverified = c.ID.Group, c.Reason, c.Unverified
				if c.ID.Name != "" {
					o.Object = c.ID.String()
				}
				o.Manifest, o.Generated = diff.ShownManifest(c.Desired), op.GeneratedIn(c.ID)
			}
			objects = append(objects, o)
		}
	}
	d.add(string(deploy.HookStep(event)), deploy.StepHooks, objects)
}

// A HookObject is an object of a hook. With generateName: web- its name is web-*.
type HookObject struct {
	ID           kube.ID // without its group; in the release's namespace unless it states one
	generateName string
	event        string // the annotation helm.sh/hook
}

// HookObjects returns the objects of a hook: one, unless the hook is a list.
func HookObjects(op *deploy.Operation, h *helmrelease.Hook) []HookObject {
	manifests, err := chart.ParseHook(h)
	if err != nil || len(manifests) == 0 {
		return []HookObject{{ID: kube.ID{Kind: h.Kind, Namespace: op.Namespace, Name: h.Name}}}
	}
	var out []HookObject
	for _, m := range manifests {
		o := HookObject{ID: kube.ID{Kind: m.Object.GetKind(), Namespace: cmp.Or(m.Object.GetNamespace(), op.Namespace), Name: m.Object.GetName()}, event: m.Object.GetAnnotations()[helmrelease.HookAnnotation]}
		if o.ID.Name == "" {
			o.generateName = m.Object.GetGenerateName()
			o.ID.Name = o.generateName + "*"
		}
		out = append(out, o)
	}
	return out
}

// plannedIn returns the change of a plan that is that of the object; nil if there is none. Of several hooks with one
// name it is the one that runs at the same event.
func (o HookObject) plannedIn(hooks []apply.Change) *apply.Change {
	var found *apply.Change
	for i, c := range hooks {
		if o.isPlannedAs(c) && (found == nil || c.Desired != nil && c.Desired.GetAnnotations()[helmrelease.HookAnnotation] == o.event) {
			found = &hooks[i]
		}
	}
	return found
}

// isPlannedAs reports whether a change of a plan is that of the object.
func (o HookObject) isPlannedAs(c apply.Change) bool {
	if o.generateName != "" {
		return c.ID.Kind == o.ID.Kind && c.ID.Name == "" && c.Desired != nil && c.Desired.GetGenerateName() == o.generateName
	}
	return o.IsCreatedAs(c.ID)
}

// IsCreatedAs reports whether an object in the cluster is this one. One with a generated name never is.
func (o HookObject) IsCreatedAs(id kube.ID) bool {
	return id.Kind == o.ID.Kind && id.Name == o.ID.Name && (id.Namespace == o.ID.Namespace || id.Namespace == "")
}

// deletePolicies names when a hook is deleted; before its next creation when it
// doesn't say. https://helm.sh/docs/topics/charts_hooks/#hook-deletion-policies
func deletePolicies(h *helmrelease.Hook) []string {
	out := make([]string, 0, len(h.DeletePolicies))
	for _, p := range h.DeletePolicies {
		out = append(out, string(p))
	}
	if len(out) == 0 {
		out = append(out, string(helmrelease.HookBeforeHookCreation))
	}
	return out
}
