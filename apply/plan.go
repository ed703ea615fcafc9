package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/kube"
)

// planning is one planning under way, and what is needed to plan an object of
// it again while it is carried out.
type planning struct {
	a        *Applier
	req      Request
	past     *past
	coming   map[schema.GroupVersionKind]kube.Mapping
	schemas  *schemas
	mappings map[kube.ID]kube.Mapping
	wanted   map[kube.ID]*target // main objects
	homes    map[home]*unstructured.Unstructured
	defs     []*unstructured.Unstructured        // CRDs of the release, but for those left as they are
	left     map[schema.GroupVersionKind]*Change // kinds of those, with what was decided
	arrivals *arrivals                           // what decisions wait for
	scaled   memo[string, scaled]                // by namespace
	crds     memo[kube.ID, *unstructured.Unstructured]
	permits  memo[authorizationv1.ResourceAttributes, bool]
	server   kube.Server
	unlisted []string // groups that server can't list and that stay: nothing is pruned then

	askedAnew sync.Once   // which kinds there are
	misplaced []Rejection // manifests that can't be resolved
	looking   bool        // for drift: policies refuse nothing

	mu       sync.Mutex
	warnings []Warning
	closed   map[place]bool // where the account may not list
	states   map[schema.GroupResource]kindState
}

func (p *planning) warn(id kube.ID, source, format string, args ...any) {
	w := Warning{Source: source, ID: id, Text: fmt.Sprintf(format, args...)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.warnings, w) {
		p.warnings = append(p.warnings, w)
	}
}

// inSequence gives all warnings, which have come as the server answered, in an order
// that is the same each time.
func (p *planning) inOrder() []Warning {
	slices.SortFunc(p.warnings, func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.ID.String(), b.ID.String()), strings.Compare(a.ID.Group, b.ID.Group), strings.Compare(a.Text, b.Text))
	})
	return p.warnings
}

// Plan finds out what has to change. It reads the cluster and asks the server
// to dry-run; it changes nothing. The error is a *RejectedError when objects
// can't be applied as the chart has them, listing all of them.
func (a *Applier) Plan(ctx context.Context, req Request) (*Plan, error) {
	p, crds, err := a.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	rejections, err := p.decideAll(ctx, crds)
	if err != nil {
		return nil, err
	}
	p.count(crds)
	mains, hooks, err := p.resolveRest(ctx, crds)
	if err != nil {
		return nil, err
	}
	order, err := p.order(ctx, crds, mains, hooks)
	if err != nil {
		return nil, err
	}
	p.unusedAdoptions()
	rejections = slices.Concat(rejections, p.misplaced, order.refused)
	p.expect(crds)
	first, rest := neededFirst(mains)
	for _, targets := range [][]*target{first, rest} {
		refused, err := p.decideAll(ctx, targets)
		if err != nil {
			return nil, err
		}
		rejections = append(rejections, refused...)
		p.expect(first)
	}
	plan := &Plan{}
	verdicts, refused, err := p.judgeHooks(ctx, hooks)
	if err != nil {
		return nil, err
	}
	rejections = append(rejections, refused...)
	if len(rejections) > 0 {
		return nil, &RejectedError{Rejections: sorted(rejections)}
	}
	plan.Hooks = verdicts
	if plan.Prune, err = p.prune(ctx); err != nil {
		return nil, err
	}
	plan.CRDs = changesOf(crds)
	plan.Waves = order.waves()
	p.noteWaited(plan)
	for _, t := range slices.Concat(crds, mains, hooks) {
		t.decided = nil // the plan has it now, and lets go of it as it is carried out
	}
	plan.Warnings = p.inOrder()
	plan.Conflicts = conflictsOf(plan)
	return plan, nil
}

// prepare resolves all that a request names, as far as it can be.
func (a *Applier) prepare(ctx context.Context, req Request) (p *planning, crds, mains, hooks []*target, err error) {
	p, crds, err = a.begin(ctx, req)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	mains, hooks, err = p.resolveRest(ctx, crds)
	return p, crds, mains, hooks, err
}

// begin begins a planning, with what is in crds/: it decides what can be said of
// all else.
func (a *Applier) begin(ctx context.Context, req Request) (p *planning, crds []*target, err error) {
	server, err := a.cluster.Server(ctx)
	if err != nil {
		return nil, nil, err
	}
	if a.opts.CRDs == SkipCRDs {
		req.CRDs = nil
	}
	p = &planning{
		a:        a,
		req:      req,
		schemas:  newSchemas(a),
		mappings: map[kube.ID]kube.Mapping{},
		wanted:   map[kube.ID]*target{},
		homes:    map[home]*unstructured.Unstructured{},
		left:     map[schema.GroupVersionKind]*Change{},
		arrivals: newArrivals(),
		server:   server,
		closed:   map[place]bool{},
		states:   map[schema.GroupResource]kindState{},
	}
	p.schemas.live = p.liveDefinition
	for _, name := range req.NewNamespaces {
		p.arrivals.expect(namespaceID(name))
	}
	p.defs = definitions(req)
	p.coming = comingKinds(p.defs)
	if p.past, err = p.index(ctx, req.Past); err != nil {
		return nil, nil, err
	}
	crds, p.misplaced, err = p.resolve(ctx, req.CRDs, true)
	p.note(crds)
	return p, crds, err
}

// count leaves those definitions of crds/ out of account that stay as they are in
// the cluster: what is there then decides about its kind.
func (p *planning) count(crds []*target) {
	left := map[string]bool{}
	for _, t := range crds {
		if c := t.decided; c != nil && (c.Action == Keep || c.Action == None && p.a.opts.CRDs == CreateCRDs) {
			left[t.id.Name] = true
			for gvk := range comingKinds([]*unstructured.Unstructured{t.obj}) {
				p.left[gvk] = c
			}
		}
	}
	p.defs = slices.DeleteFunc(p.defs, func(crd *unstructured.Unstructured) bool { return left[crd.GetName()] })
	p.coming = comingKinds(p.defs)
}

// resolveRest resolves the objects and hooks of the release.
func (p *planning) resolveRest(ctx context.Context, crds []*target) (mains, hooks []*target, err error) {
	p.schemas.expect(p.defs)
	mains, bad1, err1 := p.resolve(ctx, p.req.Objects, false)
	hooks, bad2, err2 := p.resolve(ctx, p.req.Hooks, false)
	p.note(mains)
	p.misplaced = slices.Concat(p.misplaced, bad1, bad2, wantedTwice(crds, mains, hooks))
	return mains, hooks, errors.Join(err1, err2)
}

// definitions are the CRDs of a release, of crds/ and of templates.
func definitions(req Request) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, list := range [][]kube.Manifest{req.CRDs, req.Objects} {
		for _, m := range list {
			if m.Object != nil && isCRD(kube.IDOf(m.Object)) {
				out = append(out, m.Object)
			}
		}
	}
	return out
}

// neededFirst separates CRDs and Namespaces, which decide what the server can be
// asked about the others.
func neededFirst(mains []*target) (first, rest []*target) {
	for _, t := range mains {
		if isCRD(t.id) || isNamespace(t.id) {
			first = append(first, t)
		} else {
			rest = append(rest, t)
		}
	}
	return first, rest
}

// noteWaited marks the changes that others wait for, where being made is enough:
// what converts a kind has to be ready, which only its order tells.
func (p *planning) noteWaited(plan *Plan) {
	for _, list := range plan.lists() {
		for i := range list {
			if id := list[i].ID; (isCRD(id) || isNamespace(id)) && p.arrivals.expected(id) {
				list[i].waited = p.arrivals
			}
		}
	}
}

func sorted(list []Rejection) []Rejection {
	sort.SliceStable(list, func(i, j int) bool { return list[i].ID.String() < list[j].ID.String() })
	return list
}

func (p *planning) note(targets []*target) {
	for _, t := range targets {
		p.mappings[t.id] = t.mapping
		if !t.foreign {
			p.wanted[t.id] = t
		}
	}
}

// wantedTwice finds objects that are in two of crds/, templates and hooks.
func wantedTwice(crds, mains, hooks []*target) []Rejection {
	named := append(append([]*target{}, crds...), mains...)
	for _, h := range hooks {
		if h.id.Name != "" {
			named = append(named, h)
		}
	}
	return twice(named)
}

// decideAll decides about each target, in as few requests as it takes.
func (p *planning) decideAll(ctx context.Context, targets []*target) ([]Rejection, error) {
	if err := p.lookAtKinds(ctx, targets); err != nil {
		return nil, err
	}
	seen, err := p.look(ctx, targets)
	if err != nil {
		return nil, err
	}
	var open []*target
	for _, t := range targets {
		s := seen[t.id]
		if s.meta != nil && !p.kindChanges(t) && p.proves(t, s.meta) && !p.adoptedSince(t, s.meta) {
			t.decided = p.recognised(t, s.meta)
			continue
		}
		open = append(open, t)
	}
	if err := p.readAll(ctx, open, seen); err != nil {
		return nil, err
	}
	rejections := make([]Rejection, len(open))
	err = p.a.each(ctx, len(open), func(i int) error {
		t := open[i]
		c, err := p.decide(ctx, t, seen[t.id])
		if rejected := (*Rejection)(nil); errors.As(err, &rejected) {
			rejections[i] = *rejected
			return nil
		}
		c.Want = p.a.shared.of(c.Want)
		t.decided = &c
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.gate(open, rejections), nil
}

// recognised is the change of an object whose mark proves that it needs none.
func (p *planning) recognised(t *target, meta *metav1.PartialObjectMetadata) *Change {
	key := Key(t.id)
	c := &Change{ID: t.id, Source: t.source, Action: None, Live: metaOnly(meta, t.mapping), Provenance: p.provenanceOf(t, meta, false), mark: p.req.Marks[key]}
	if b, ok := p.req.Brought[key]; ok && t.foreign {
		c.was = &b // as nobody has written it since
	}
	return c
}

// gate turns rejections into warnings where the mode says so. What is wrong
// with ownership, or ambiguous, stays a rejection.
func (p *planning) gate(targets []*target, rejections []Rejection) []Rejection {
	var out []Rejection
	for i, r := range rejections {
		if r.Err == nil {
			continue
		}
		var invalid *ServerError
		if p.a.opts.Gate == GateStrict || !errors.As(r.Err, &invalid) {
			out = append(out, r)
			continue
		}
		t := targets[i]
		p.warn(t.id, t.source, "the server would reject this: %s", r.Err)
		if t.decided == nil || t.decided.Action == "" {
			c := p.postpone(t, p.change(t, Update), &Deferral{Reason: r.Err.Error()})
			t.decided = &c
		}
	}
	return out
}

func changesOf(targets []*target) []Change {
	out := make([]Change, 0, len(targets))
	for _, t := range targets {
		if t.decided != nil {
			out = append(out, *t.decided)
		}
	}
	return out
}

func conflictsOf(plan *Plan) []Conflict {
	var out []Conflict
	for c := range plan.Changes() {
		for _, f := range c.Conflicts {
			out = append(out, Conflict{ID: c.ID, Source: c.Source, FieldConflict: f})
		}
	}
	return out
}

// metaOnly makes an object of its metadata but managedFields, which are most of
// it and have been looked at.
func metaOnly(meta *metav1.PartialObjectMetadata, m kube.Mapping) *unstructured.Unstructured {
	some := meta.ObjectMeta
	some.ManagedFields = nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&some)
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if err == nil {
		out.Object["metadata"] = content
	}
	out.SetGroupVersionKind(m.GVK)
	return out
}
