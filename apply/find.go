package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// A finder looks for objects, of which it reads only metadata.
type finder struct {
	a          *Applier
	unlistable sync.Map // collections that the account may not list, or the server can't
}

// A collection is the scope of a list request.
type collection struct {
	mapping   kube.Mapping
	namespace string
	unlabeled bool // the objects there don't carry Helm's label
}

// fewer objects of a kind than this are read one by one.
const minObjectsToList = 3

// A sought is an object that is looked for.
type sought struct {
	id        kube.ID
	source    string
	mapping   kube.Mapping // zero: there can be none of its kind
	unlabeled bool         // it doesn't carry Helm's label
	alone     bool         // it isn't looked for in a list
}

func (s sought) collection() collection {
	return collection{mapping: s.mapping, namespace: s.id.Namespace, unlabeled: s.unlabeled}
}

// listOrGet looks for objects by as few requests as it takes: where several are in one collection, it
// lists metadata there. For an object that a list doesn't have, answered says whether that is an answer; then
// its observation is zero. complete says that the list has all objects with Helm's label. All other
// objects are read by get. Both functions are called from several goroutines.
func (f *finder) listOrGet(ctx context.Context, list []sought, answered func(i int, complete bool) bool, get func(i int) (observation, error)) ([]observation, error) {
	out := make([]observation, len(list))
	groups := map[collection][]int{}
	var single []int
	for i, s := range list {
		switch {
		case s.mapping == (kube.Mapping{}):
		case s.alone:
			single = append(single, i)
		default:
			groups[s.collection()] = append(groups[s.collection()], i)
		}
	}
	var mu sync.Mutex
	var unanswered []int // by a list
	var jobs []func() error
	for at, group := range groups {
		if len(group) < minObjectsToList {
			single = append(single, group...)
			continue
		}
		jobs = append(jobs, func() error {
			// Listing the metadata of twenty objects costs about as much as one get.
			metas, complete, err := f.listMeta(ctx, at, 100+4*len(group))
			if err != nil {
				return err
			}
			for _, i := range group {
				out[i].meta = metas[list[i].id.Name]
				if out[i].meta == nil && (metas == nil || !answered(i, complete)) {
					mu.Lock()
					unanswered = append(unanswered, i)
					mu.Unlock()
				}
			}
			return nil
		})
	}
	getInto := func(i int) (err error) {
		out[i], err = get(i)
		return err
	}
	for _, i := range single {
		jobs = append(jobs, func() error { return getInto(i) })
	}
	if err := f.a.forEach(ctx, len(jobs), func(n int) error { return jobs[n]() }); err != nil {
		return nil, err
	}
	return out, f.a.forEach(ctx, len(unanswered), func(n int) error { return getInto(unanswered[n]) })
}

// find reads the metadata of objects. With labelled, those that lists don't have count as absent; else they may exist without Helm's
// label.
func (f *finder) find(ctx context.Context, list []sought, labelled bool) ([]observation, error) {
	answered := func(_ int, complete bool) bool { return labelled && complete }
	return f.listOrGet(ctx, list, answered, func(i int) (observation, error) { return f.observeMeta(ctx, list[i]) })
}

// observeMeta reads the metadata of one object.
func (f *finder) observeMeta(ctx context.Context, s sought) (observation, error) {
	meta, err := f.a.metaInAnyVersion(ctx, s.mapping, s.id)
	switch {
	case apierrors.IsForbidden(err):
		return observation{forbidden: true}, nil
	case err != nil:
		return observation{}, &ObjectError{ID: s.id, Source: s.source, Doing: "reading", Err: err}
	}
	return observation{meta: meta, absent: meta == nil}, nil
}

// listMeta lists the metadata of the objects with Helm's label in a collection, by name, up
// to about most objects. complete says that these are all. metas is nil if the collection
// turns out to be unlistable.
func (f *finder) listMeta(ctx context.Context, at collection, most int) (metas map[string]*metav1.PartialObjectMetadata, complete bool, err error) {
	opts := metav1.ListOptions{Limit: int64(most)}
	if !at.unlabeled {
		opts.LabelSelector = provenance.ManagedByHelmSelector
	}
	metas = map[string]*metav1.PartialObjectMetadata{}
	for range maxPages {
		if len(metas) >= most {
			break
		}
		page, err := f.listMetaPage(ctx, at, opts)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || verify.Read(err).Detail == verify.NotConverted:
			f.unlistable.Store(at, true)
			return nil, false, nil
		case apierrors.IsResourceExpired(err):
			return metas, false, nil // the list expired between two pages: it stays incomplete
		case err != nil:
			return nil, false, listError(at, err)
		}
		for _, item := range page.Items {
			metas[item.Name] = &item // a copy, because a pointer into the page would keep all of it
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return metas, true, nil
		}
	}
	return metas, false, nil
}

func (f *finder) listMetaPage(ctx context.Context, at collection, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	client := f.a.metaClient(at.mapping, at.namespace)
	return answerTo(ctx, f.a.requester, transientButConversion, func() (*metav1.PartialObjectMetadataList, error) { return client.List(ctx, opts) })
}

// maxPages is how many pages of a list are read. A server that always has another one would be asked without end.
const maxPages = 400
