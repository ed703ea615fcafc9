package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/verify"
	"deployer/internal/kube"
)

// An observation is what was read of one object. The zero value: nothing yet.
type observation struct {
	meta      *metav1.PartialObjectMetadata
	full      *unstructured.Unstructured
	absent    bool // certainly not there
	forbidden bool // the account may not read it
	// deferral says why it can't be read yet; nil when it could be.
	deferral *Deferral
}

// A place is where a list request looks.
type place struct {
	mapping   kube.Mapping
	namespace string
}

// An observer reads the objects of a release from the cluster, by as few requests
// as it takes.
type observer struct {
	a             *Applier
	prerequisites *prerequisites
	warnings      *warnings
	fingerprints  map[string]Fingerprint // of the last record, by Key

	mu         sync.Mutex
	unlistable map[place]bool // where the account may not list
}

// fewer objects of a kind than this are read one by one.
const worthListing = 3

// observe reads the metadata of objects that have fingerprints, and finds out cheaply
// about the others: by one list of all objects that carry Helm's label for
// each kind and namespace. What isn't in the list may still be there without
// the label; nothing has been read of it yet.
func (o *observer) observe(ctx context.Context, targets []*target) (map[kube.ID]observation, error) {
	groups := map[place][]*target{}
	var single []*target
	for _, t := range targets {
		switch {
		case o.prerequisites.deferralOf(t) != nil:
		case len(t.turn.converter) > 0:
			single = append(single, t)
		default:
			at := place{t.mapping, t.id.Namespace}
			groups[at] = append(groups[at], t)
		}
	}
	out := map[kube.ID]observation{}
	var mu sync.Mutex
	var jobs []func() error
	for at, group := range groups {
		if len(group) < worthListing {
			continue
		}
		jobs = append(jobs, func() error {
			metas, err := o.listMeta(ctx, at)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, t := range group {
				if m, ok := metas[t.id.Name]; ok {
					out[t.id] = observation{meta: m}
				}
			}
			return nil
		})
	}
	if err := o.a.each(ctx, len(jobs), func(i int) error { return jobs[i]() }); err != nil {
		return nil, err
	}
	for at, group := range groups {
		if len(group) < worthListing || o.unlistable[at] {
			single = append(single, group...)
		}
	}
	return out, o.a.each(ctx, len(single), func(i int) error {
		s, err := o.observeOne(ctx, single[i])
		mu.Lock()
		defer mu.Unlock()
		out[single[i].id] = s
		return err
	})
}

// observeOne reads one object: its metadata if its fingerprint may prove enough.
func (o *observer) observeOne(ctx context.Context, t *target) (observation, error) {
	ctx = o.warnings.hear(ctx, t)
	if _, marked := o.fingerprints[Key(t.id)]; !marked || len(t.turn.converter) > 0 {
		return o.read(ctx, t)
	}
	meta, err := o.a.getMeta(ctx, t.mapping, t.id)
	switch {
	case apierrors.IsForbidden(err):
		return observation{forbidden: true}, nil
	case err != nil:
		return observation{}, &ObjectError{ID: t.id, Source: t.source, Doing: "reading", Err: err}
	}
	return observation{meta: meta, absent: meta == nil}, nil
}

// read reads one object whole.
func (o *observer) read(ctx context.Context, t *target) (observation, error) {
	full, err := o.a.getWhile(o.warnings.hear(ctx, t), t.mapping, t.id, func(err error) bool { return verify.Transient(err) && !t.unconverted(err) })
	switch {
	case t.unconverted(err):
		return observation{deferral: t.conversionDeferral()}, nil
	case apierrors.IsForbidden(err):
		return observation{forbidden: true}, nil
	case err != nil:
		return observation{}, &ObjectError{ID: t.id, Source: t.source, Doing: "reading", Err: err}
	}
	return observation{full: full, absent: full == nil}, nil
}

// listMeta lists the metadata of what Helm manages in a place, by name. It is
// empty when listing isn't permitted: the objects are then asked for one by
// one.
func (o *observer) listMeta(ctx context.Context, at place) (map[string]*metav1.PartialObjectMetadata, error) {
	client, err := o.a.metaClient(at.mapping, at.namespace)
	if err != nil {
		return nil, err
	}
	var list *metav1.PartialObjectMetadataList
	err = o.a.try(ctx, func() error {
		list, err = client.List(ctx, metav1.ListOptions{LabelSelector: managedByHelmFilter})
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.unlistable[at] = true
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

// readAll reads whole those objects of targets that are known to exist: by list
// where that is less than asking for each. listed are all that have been observed.
func (o *observer) readAll(ctx context.Context, listed, targets []*target, seen map[kube.ID]observation) error {
	there, wanted := map[place]int{}, map[place][]*target{}
	for _, t := range listed {
		if seen[t.id].meta != nil {
			there[place{t.mapping, t.id.Namespace}]++
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
	put := func(id kube.ID, s observation) {
		mu.Lock()
		defer mu.Unlock()
		seen[id] = s
	}
	for at, group := range wanted {
		if len(group) >= worthListing && len(group)*4 >= there[at] && !o.unlistable[at] {
			jobs = append(jobs, func() error { return o.readList(ctx, at, group, put) })
			continue
		}
		for _, t := range group {
			jobs = append(jobs, func() error {
				s, err := o.read(ctx, t)
				put(t.id, s)
				return err
			})
		}
	}
	return o.a.each(ctx, len(jobs), func(i int) error { return jobs[i]() })
}

// pageSize keeps the answers to lists of whole objects at a few megabytes.
const pageSize = 500

func (o *observer) readList(ctx context.Context, at place, group []*target, put func(kube.ID, observation)) error {
	client, err := o.a.client(at.mapping, at.namespace)
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
		err := o.a.try(ctx, func() error {
			list, err = client.List(ctx, opts)
			return err
		})
		if err != nil {
			return listError(at, err)
		}
		for i := range list.Items {
			if t, ok := byName[list.Items[i].GetName()]; ok {
				put(t.id, observation{full: o.a.interner.intern(&list.Items[i])})
				delete(byName, t.id.Name)
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			break
		}
	}
	for _, t := range byName { // gone since, or its label is
		s, err := o.read(ctx, t)
		if err != nil {
			return err
		}
		put(t.id, s)
	}
	return nil
}
