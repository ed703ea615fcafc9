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
	a         *Applier
	req       Request
	past      *past
	coming    map[schema.GroupVersionKind]kube.Mapping
	schemas   *schemas
	mappings  map[kube.ID]kube.Mapping
	wanted    map[kube.ID]*target // main objects
	spaces    map[string]bool     // namespaces that are to be created
	homes     map[home]*unstructured.Unstructured
	newSpaces map[string]bool      // those of them that the caller creates: they certainly are not there
	scaled    memo[string, scaled] // by namespace
	crds      memo[kube.ID, *unstructured.Unstructured]
	permits   memo[authorizationv1.ResourceAttributes, bool]
	server    kube.Server
	unlisted  []string // groups that server can't list and that stay: nothing is pruned then

	misplaced []Rejection // manifests that can't be resolved
	looking   bool        // for drift: policies refuse nothing

	mu       sync.Mutex
	warnings []Warning
	changing map[schema.GroupKind]bool // kinds whose CRD is created or updated
	changed  map[schema.GroupKind]bool // those, also after it has been
	closed   map[place]bool            // where the account may not list
	states   map[schema.GroupResource]string
}

func (p *planning) warn(id kube.ID, source, format string, args ...any) {
	w := Warning{Source: source, ID: id, Text: fmt.Sprintf(format, args...)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.warnings, w) {
		p.warnings = append(p.warnings, w)
	}
}

// inOrder gives all warnings, which have come as the server answered, in an order
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
	p, crds, mains, hooks, err := a.prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	order, err := p.order(ctx, crds, mains, hooks)
	if err != nil {
		return nil, err
	}
	p.unusedAdoptions()
	rejections := append(p.misplaced, order.refused...)
	first, rest := definitionsFirst(crds, mains)
	for _, targets := range [][]*target{first, rest} {
		refused, err := p.decideAll(ctx, targets)
		if err != nil {
			return nil, err
		}
		rejections = append(rejections, refused...)
		p.noteChanging(first)
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
	for _, t := range slices.Concat(crds, mains, hooks) {
		t.decided = nil // the plan has it now, and lets go of it as it is carried out
	}
	plan.Warnings = p.inOrder()
	plan.Conflicts = conflictsOf(plan)
	return plan, nil
}

// prepare resolves all that a request names, as far as it can be.
func (a *Applier) prepare(ctx context.Context, req Request) (p *planning, crds, mains, hooks []*target, err error) {
	server, err := a.cluster.Server(ctx)
	if err != nil {
		return nil, nil, nil, nil, err
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
		spaces:   map[string]bool{}, newSpaces: map[string]bool{},
		server:   server,
		changing: map[schema.GroupKind]bool{},
		changed:  map[schema.GroupKind]bool{},
		closed:   map[place]bool{},
		states:   map[schema.GroupResource]string{},
	}
	defs := definitions(req)
	p.coming = comingKinds(defs)
	p.schemas.expect(defs)
	crds, bad1, err1 := p.resolve(ctx, req.CRDs, true)
	mains, bad2, err2 := p.resolve(ctx, req.Objects, false)
	hooks, bad3, err3 := p.resolve(ctx, req.Hooks, false)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, nil, nil, err
	}
	p.note(append(append([]*target{}, crds...), mains...))
	p.misplaced = slices.Concat(bad1, bad2, bad3, wantedTwice(crds, mains, hooks))
	p.past, err = p.index(ctx, req.Past)
	return p, crds, mains, hooks, err
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

// definitionsFirst separates CRDs, which decide what the server can be asked
// about the others.
func definitionsFirst(crds, mains []*target) (first, rest []*target) {
	first = append(first, crds...)
	for _, t := range mains {
		if isCRD(t.id) {
			first = append(first, t)
		} else {
			rest = append(rest, t)
		}
	}
	return first, rest
}

// noteChanging remembers which kinds will have another CRD than now.
func (p *planning) noteChanging(crds []*target) {
	for _, t := range crds {
		if t.decided == nil || t.decided.Action == None {
			continue
		}
		gk := defines(t.obj)
		p.changing[gk], p.changed[gk] = true, true
	}
}

func sorted(list []Rejection) []Rejection {
	sort.SliceStable(list, func(i, j int) bool { return list[i].ID.String() < list[j].ID.String() })
	return list
}

func (p *planning) note(targets []*target) {
	for _, name := range p.req.NewNamespaces {
		p.spaces[name], p.newSpaces[name] = true, true
	}
	for _, t := range targets {
		p.mappings[t.id] = t.mapping
		if !t.foreign {
			p.wanted[t.id] = t
		}
		if t.id.Group == "" && t.id.Kind == "Namespace" {
			p.spaces[t.id.Name] = true
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
		if s.meta != nil && !p.kindChanges(t) && p.proves(t, s.meta) {
			t.decided = &Change{ID: t.id, Source: t.source, Action: None, Live: metaOnly(s.meta, t.mapping), mark: p.req.Marks[Key(t.id)]}
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
			t.decided = &Change{ID: t.id, Source: t.source, Action: Update, Unverified: r.Err.Error(), raw: p.proof(t), step: &step{p: p, t: t, later: true}}
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
