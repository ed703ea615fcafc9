package track

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/track/rules"
)

// definitions are where the API server keeps the definitions of custom resources.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// kindRules are what definitions of custom resources say about the readiness of
// their objects, each read once by a Tracker.
type kindRules struct {
	mu    sync.Mutex
	known map[schema.GroupKind]kindRule
}

type kindRule struct {
	rule    *rules.Override // nil when the definition has none, or may not be read
	problem string          // why it can't be followed
}

// Judge works out the status of objects by their own fields, their annotations, the
// user's rules and those in the definitions of their kinds, which takes one request
// for each kind that may have one. Without a baseline a condition that lingers from
// an earlier change can't be told from a fresh one, so conditions count as fresh, and
// what is given some time had it since the object was created.
func (t *Tracker) Judge(ctx context.Context, objects []*unstructured.Unstructured) []Status {
	var kinds []schema.GroupVersionKind
	for _, obj := range objects {
		if t.ruledByKind(obj) {
			kinds = append(kinds, obj.GroupVersionKind())
		}
	}
	t.learn(ctx, kinds)
	out := make([]Status, len(objects))
	for i, obj := range objects {
		said := t.ofKind(obj)
		out[i] = t.opts.compute(obj, t.opts.Now(), said.rule)
		if said.problem != "" {
			out[i].Notes = append(out[i].Notes, said.problem)
		}
	}
	return out
}

// ruledByKind tells whether the definition of an object's kind has a say: it
// isn't a kind of Kubernetes, and neither the object nor the user says otherwise.
func (t *Tracker) ruledByKind(obj *unstructured.Unstructured) bool {
	gk := obj.GroupVersionKind().GroupKind()
	return rules.Custom(gk) && !t.opts.Rules.Has(gk) && settingsOf(obj).Override == nil
}

// ofKind is what the definition of an object's kind says, as far as it was read and
// has a say.
func (t *Tracker) ofKind(obj *unstructured.Unstructured) kindRule {
	if !t.ruledByKind(obj) {
		return kindRule{}
	}
	t.kinds.mu.Lock()
	defer t.kinds.mu.Unlock()
	return t.kinds.known[obj.GroupVersionKind().GroupKind()]
}

// learn reads the definitions of kinds that aren't known yet.
func (t *Tracker) learn(ctx context.Context, kinds []schema.GroupVersionKind) {
	ctx, stop := context.WithTimeout(ctx, evidenceTime)
	defer stop()
	var all sync.WaitGroup
	for gk, gvk := range t.unknown(kinds) {
		all.Go(func() {
			said, err := t.instances(ctx, gvk)
			if err != nil {
				return // not everybody may read them, and hardly one has a rule
			}
			t.kinds.mu.Lock()
			defer t.kinds.mu.Unlock()
			t.kinds.known[gk] = said
		})
	}
	all.Wait()
}

func (t *Tracker) unknown(kinds []schema.GroupVersionKind) map[schema.GroupKind]schema.GroupVersionKind {
	t.kinds.mu.Lock()
	defer t.kinds.mu.Unlock()
	out := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, gvk := range kinds {
		if _, known := t.kinds.known[gvk.GroupKind()]; !known {
			out[gvk.GroupKind()] = gvk
		}
	}
	return out
}

// instances reads the rule in the definition of a kind.
func (t *Tracker) instances(ctx context.Context, gvk schema.GroupVersionKind) (kindRule, error) {
	mapping, err := t.cluster.Mapping(ctx, gvk, true)
	if err != nil {
		return kindRule{}, err
	}
	client, err := t.cluster.Metadata()
	if err != nil {
		return kindRule{}, err
	}
	name := mapping.Resource.GroupResource().String()
	definition, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return kindRule{}, err
	}
	said := definition.GetAnnotations()
	ready, failed := annotation.InstancesReady.Name, annotation.InstancesFailed.Name
	rule, err := rules.NewOverride(said[ready], said[failed])
	if err != nil {
		return kindRule{problem: fmt.Sprintf("annotation %s or %s of CustomResourceDefinition/%s: %v", ready, failed, name, err)}, nil
	}
	return kindRule{rule: rule}, nil
}

// learn reads what the definitions say about targets that there is something to
// wait for. What is known already goes for all of them.
func (s *session) learn(ctx context.Context) {
	var ruled []*subject
	var kinds []schema.GroupVersionKind
	for _, sub := range s.subjects {
		waits := sub.Until == UntilReady || sub.Until == UntilComplete
		if !waits || sub.Skip || sub.Baseline == nil || !s.tracker.ruledByKind(sub.Baseline) {
			continue
		}
		ruled = append(ruled, sub)
		if sub.Changed || s.opts.compute(sub.Baseline, s.started, nil).State != Ready {
			kinds = append(kinds, sub.GVK)
		}
	}
	s.tracker.learn(ctx, kinds)
	told := map[string]bool{}
	for _, sub := range ruled {
		said := s.tracker.ofKind(sub.Baseline)
		if sub.ofKind = said.rule; said.problem != "" && !told[said.problem] {
			told[said.problem] = true
			sub.Unread = append(sub.Unread, said.problem)
		}
	}
}
