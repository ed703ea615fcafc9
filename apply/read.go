package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/kube"
)

// sight is what was seen of one object. The zero value: not looked at.
type sight struct {
	meta   *metav1.PartialObjectMetadata
	full   *unstructured.Unstructured
	absent bool // certainly not there
	blind  bool // not permitted to look
	// deferral says why it can't be looked at yet; nil when it could be.
	deferral *Deferral
}

// A place is where a list request looks.
type place struct {
	mapping   kube.Mapping
	namespace string
}

// fewer objects of a kind than this are read one by one.
const worthListing = 3

// look reads the metadata of objects that have marks, and finds out cheaply
// about the others: by one list of all objects that carry Helm's label for
// each kind and namespace. What isn't in the list may still be there without
// the label; it has no sight yet.
func (p *planning) look(ctx context.Context, targets []*target) (map[kube.ID]sight, error) {
	groups := map[place][]*target{}
	var single []*target
	for _, t := range targets {
		switch {
		case p.notYet(t) != nil:
		case len(t.converter) > 0:
			single = append(single, t)
		default:
			at := place{t.mapping, t.id.Namespace}
			groups[at] = append(groups[at], t)
		}
	}
	out := map[kube.ID]sight{}
	var mu sync.Mutex
	var jobs []func() error
	for at, group := range groups {
		if len(group) < worthListing {
			continue
		}
		jobs = append(jobs, func() error {
			metas, err := p.listMeta(ctx, at)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, t := range group {
				if m, ok := metas[t.id.Name]; ok {
					out[t.id] = sight{meta: m}
				}
			}
			return nil
		})
	}
	if err := p.a.each(ctx, len(jobs), func(i int) error { return jobs[i]() }); err != nil {
		return nil, err
	}
	for at, group := range groups {
		if len(group) < worthListing || p.closed[at] {
			single = append(single, group...)
		}
	}
	return out, p.a.each(ctx, len(single), func(i int) error {
		s, err := p.lookAt(ctx, single[i])
		mu.Lock()
		defer mu.Unlock()
		out[single[i].id] = s
		return err
	})
}

// lookAt reads one object: its metadata if its mark may prove enough.
func (p *planning) lookAt(ctx context.Context, t *target) (sight, error) {
	ctx = p.hearing(ctx, t)
	if _, marked := p.req.Marks[Key(t.id)]; !marked || len(t.converter) > 0 {
		return p.read(ctx, t)
	}
	meta, err := p.a.getMeta(ctx, t.mapping, t.id)
	switch {
	case apierrors.IsForbidden(err):
		return sight{blind: true}, nil
	case err != nil:
		return sight{}, &ObjectError{ID: t.id, Source: t.source, Doing: "reading", Err: err}
	}
	return sight{meta: meta, absent: meta == nil}, nil
}

// read reads one object whole.
func (p *planning) read(ctx context.Context, t *target) (sight, error) {
	full, err := p.a.getWhile(p.hearing(ctx, t), t.mapping, t.id, func(err error) bool { return transient(err) && !t.unconverted(err) })
	switch {
	case t.unconverted(err):
		return sight{deferral: t.unconvertedYet()}, nil
	case apierrors.IsForbidden(err):
		return sight{blind: true}, nil
	case err != nil:
		return sight{}, &ObjectError{ID: t.id, Source: t.source, Doing: "reading", Err: err}
	}
	return sight{full: full, absent: full == nil}, nil
}

// getMeta reads an object's metadata; nil when there is none.
func (a *Applier) getMeta(ctx context.Context, m kube.Mapping, id kube.ID) (*metav1.PartialObjectMetadata, error) {
	client, err := a.cluster.Metadata()
	if err != nil {
		return nil, err
	}
	var out *metav1.PartialObjectMetadata
	err = a.try(ctx, func() error {
		if m.Namespaced {
			out, err = client.Resource(m.Resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		} else {
			out, err = client.Resource(m.Resource).Get(ctx, id.Name, metav1.GetOptions{})
		}
		return err
	})
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listMeta lists the metadata of what Helm manages in a place, by name. It is
// empty when listing isn't permitted: the objects are then asked for one by
// one, and the place is known to be closed.
func (p *planning) listMeta(ctx context.Context, at place) (map[string]*metav1.PartialObjectMetadata, error) {
	client, err := p.a.cluster.Metadata()
	if err != nil {
		return nil, err
	}
	var list *metav1.PartialObjectMetadataList
	err = p.a.try(ctx, func() error {
		opts := metav1.ListOptions{LabelSelector: managedByHelmFilter}
		if at.mapping.Namespaced {
			list, err = client.Resource(at.mapping.Resource).Namespace(at.namespace).List(ctx, opts)
		} else {
			list, err = client.Resource(at.mapping.Resource).List(ctx, opts)
		}
		return err
	})
	if apierrors.IsForbidden(err) || notFound(err) || apierrors.IsMethodNotSupported(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed[at] = true
		return nil, nil
	}
	if err != nil {
		return nil, listError(at, err)
	}
	out := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// readAll reads whole the objects of targets that sights say exist: by list
// where that is less than asking for each.
func (p *planning) readAll(ctx context.Context, targets []*target, seen map[kube.ID]sight) error {
	listed, wanted := map[place]int{}, map[place][]*target{}
	for id, s := range seen {
		if s.meta != nil {
			listed[place{p.mappings[id], id.Namespace}]++
		}
	}
	for _, t := range targets {
		if s := seen[t.id]; s.meta != nil && s.full == nil {
			at := place{t.mapping, t.id.Namespace}
			wanted[at] = append(wanted[at], t)
		}
	}
	var mu sync.Mutex
	var jobs []func() error
	put := func(id kube.ID, s sight) {
		mu.Lock()
		defer mu.Unlock()
		seen[id] = s
	}
	for at, group := range wanted {
		if len(group) >= worthListing && len(group)*4 >= listed[at] && !p.closed[at] {
			jobs = append(jobs, func() error { return p.readList(ctx, at, group, put) })
			continue
		}
		for _, t := range group {
			jobs = append(jobs, func() error {
				s, err := p.read(ctx, t)
				put(t.id, s)
				return err
			})
		}
	}
	return p.a.each(ctx, len(jobs), func(i int) error { return jobs[i]() })
}

// pageSize keeps the answers to lists of whole objects at a few megabytes.
const pageSize = 500

func (p *planning) readList(ctx context.Context, at place, group []*target, put func(kube.ID, sight)) error {
	client, err := p.a.client(at.mapping, at.namespace)
	if err != nil {
		return err
	}
	byName := map[string]*target{}
	for _, t := range group {
		byName[t.id.Name] = t
	}
	opts := metav1.ListOptions{LabelSelector: managedByHelmFilter, Limit: pageSize}
	for {
		var list *unstructured.UnstructuredList
		err := p.a.try(ctx, func() error {
			list, err = client.List(ctx, opts)
			return err
		})
		if err != nil {
			return listError(at, err)
		}
		for i := range list.Items {
			if t, ok := byName[list.Items[i].GetName()]; ok {
				put(t.id, sight{full: p.a.shared.of(&list.Items[i])})
				delete(byName, t.id.Name)
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			break
		}
	}
	for _, t := range byName { // gone since, or its label is
		s, err := p.read(ctx, t)
		if err != nil {
			return err
		}
		put(t.id, s)
	}
	return nil
}
