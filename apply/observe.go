package apply

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// An observation is what was read of one object. The zero value means that nothing was
// read.
type observation struct {
	meta      *metav1.PartialObjectMetadata
	full      *unstructured.Unstructured
	absent    bool  // certainly not there
	forbidden bool  // the account may not read it
	refusal   error // the API server's, where the whole object was to be read
	// unconverted says that it can't be read yet: nobody converts its kind.
	unconverted bool
}

// sought is what to look for a target by. Objects of crds/ don't carry Helm's label.
func (t *target) sought() sought {
	return sought{id: t.id, source: t.source, mapping: t.mapping, unlabeled: t.fromCRDs, alone: len(t.waits.converter) > 0}
}

// An observer reads the objects of a release from the cluster, by as few requests
// as it takes.
type observer struct {
	p          *planning
	prefetched sync.Map // of observation by kube.ID
}

// observe reads the metadata of objects that have fingerprints. About the others it finds
// out cheaply, by a list of the objects with Helm's label for each kind and namespace. An
// object that isn't in the list may still exist without the label; it is read later. The
// list ends early if it has many other objects; then the objects with fingerprints are
// read one by one.
func (o *observer) observe(ctx context.Context, targets []*target) (map[kube.ID]observation, error) {
	out := make(map[kube.ID]observation, len(targets))
	var open []*target
	var list []sought
	for _, t := range targets {
		observed, isPrefetched := o.prefetched.LoadAndDelete(t.id)
		switch {
		case o.p.prerequisites.deferralOf(t) != nil:
		case isPrefetched && len(t.waits.converter) == 0: // the converter may not be there
			out[t.id] = observed.(observation)
		default:
			open, list = append(open, t), append(list, t.sought())
		}
	}
	answered := func(i int, complete bool) bool {
		if o.p.a.opts.Gate == GateOff {
			return false // no dry run would find an object without the label
		}
		_, hasFingerprint := o.p.req.Fingerprints[Key(open[i].id)]
		return complete || !hasFingerprint
	}
	observed, err := o.p.finder.listOrGet(ctx, list, answered, func(i int) (observation, error) { return o.observeOne(ctx, open[i]) })
	for i, s := range observed {
		out[open[i].id] = s
	}
	return out, err
}

// prefetch observes targets ahead of time; the next observe of each uses that, once.
func (o *observer) prefetch(ctx context.Context, targets []*target) error {
	observed, err := o.observe(ctx, targets)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if o.p.prerequisites.deferralOf(t) == nil {
			o.prefetched.Store(t.id, observed[t.id])
		}
	}
	return nil
}

// observeOne reads one object: only its metadata if it has a fingerprint.
func (o *observer) observeOne(ctx context.Context, t *target) (observation, error) {
	ctx = o.p.warnings.withServerWarnings(ctx, t)
	if _, hasFingerprint := o.p.req.Fingerprints[Key(t.id)]; !hasFingerprint || len(t.waits.converter) > 0 {
		return o.read(ctx, t)
	}
	return o.p.finder.observeMeta(ctx, t.sought())
}

// read reads one object whole.
func (o *observer) read(ctx context.Context, t *target) (observation, error) {
	full, err := o.p.a.getWhile(o.p.warnings.withServerWarnings(ctx, t), t.mapping, t.id, t.isTransient)
	switch {
	case t.failsConversion(verify.Read(err)):
		return observation{unconverted: true}, nil
	case apierrors.IsForbidden(err):
		return observation{forbidden: true, refusal: err}, nil
	case err != nil:
		return observation{}, &ObjectError{ID: t.id, Source: t.source, Doing: "reading", Err: err}
	}
	o.p.a.opts.Hidden.AddObject(full)
	return observation{full: full, absent: full == nil}, nil
}

// look asks what a target is now.
func (o *observer) look(t *target) func(context.Context) (observation, error) {
	return func(ctx context.Context) (observation, error) { return o.read(ctx, t) }
}

// readAll reads those targets that are known to exist: by a list if that is cheaper than
// a get for each. listed are all targets that were observed, also those that have been decided since.
func (o *observer) readAll(ctx context.Context, listed, targets []*target, observed map[kube.ID]observation) error {
	present, wanted := map[collection]int{}, map[collection][]*target{}
	for _, t := range listed {
		if observed[t.id].meta != nil || t.decided != nil {
			present[t.sought().collection()]++
		}
	}
	for _, t := range targets {
		if s, at := observed[t.id], t.sought().collection(); s.meta != nil && s.full == nil {
			wanted[at] = append(wanted[at], t)
		}
	}
	var mu sync.Mutex
	var jobs []func() error
	put := func(id kube.ID, s observation) {
		mu.Lock()
		defer mu.Unlock()
		observed[id] = s
	}
	for at, group := range wanted {
		_, unlistable := o.p.finder.unlistable.Load(at)
		// CRDs are large, and the list would have those of all releases.
		if len(group) >= minObjectsToList && len(group)*4 >= present[at] && !at.unlabeled && !unlistable {
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
	return o.p.a.forEach(ctx, len(jobs), func(i int) error { return jobs[i]() })
}

// pageSize keeps the answers to lists of whole objects, of which several are read at once, at about a
// megabyte.
const pageSize = 250

func (o *observer) readList(ctx context.Context, at collection, group []*target, put func(kube.ID, observation)) error {
	client := o.p.a.cluster.ResourceClient(at.mapping, at.namespace)
	byName := map[string]*target{}
	for _, t := range group {
		byName[t.id.Name] = t
	}
	opts := metav1.ListOptions{LabelSelector: provenance.ManagedByHelmSelector, Limit: pageSize}
	for range 4 + len(group)/10 { // where there are many others, the rest is read one by one
		list, err := answerTo(ctx, o.p.a.requester, isTransient, func() (*unstructured.UnstructuredList, error) { return client.List(ctx, opts) })
		if apierrors.IsResourceExpired(err) {
			break // the list expired between two pages: the rest is read one by one
		}
		if err != nil {
			return listError(at, err)
		}
		for _, item := range list.Items { // a copy, because a pointer into the page would keep all of it
			if t, ok := byName[item.GetName()]; ok {
				o.p.a.opts.Hidden.AddObject(&item)
				put(t.id, observation{full: o.p.a.interner.Intern(&item)})
				delete(byName, t.id.Name)
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" || len(byName) == 0 {
			break
		}
	}
	for _, t := range byName { // it or its label was removed since, or the list is incomplete
		s, err := o.read(ctx, t)
		if err != nil {
			return err
		}
		put(t.id, s)
	}
	return nil
}
