package track

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/track/rules"
)

// definitions are where the API server keeps the definitions of custom resources.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// learn reads what the definitions of custom resources say about the readiness
// of their objects: one request for each kind with something to wait for.
func (s *session) learn(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, evidenceTime)
	defer stop()
	kinds := map[schema.GroupKind][]*subject{}
	for _, sub := range s.subjects {
		if s.ruledByKind(sub) {
			kinds[sub.gk] = append(kinds[sub.gk], sub)
		}
	}
	var all sync.WaitGroup
	for _, subjects := range kinds {
		all.Go(func() {
			override, problem := s.instances(ctx, subjects[0])
			for _, sub := range subjects {
				sub.ofKind = override
			}
			if problem != "" {
				subjects[0].Unread = append(subjects[0].Unread, problem)
			}
		})
	}
	all.Wait()
}

// ruledByKind tells whether the definition of an object's kind has a say: it
// isn't a kind of Kubernetes, neither the object nor the user says otherwise, and
// there is something to wait for.
func (s *session) ruledByKind(sub *subject) bool {
	waits := sub.Until == UntilReady || sub.Until == UntilComplete
	if !waits || sub.Skip || sub.Baseline == nil || sub.Override != nil || !rules.Custom(sub.gk) || s.opts.Rules.Has(sub.gk) {
		return false
	}
	return sub.Changed || s.opts.Compute(sub.Baseline, s.started).State != Ready
}

// instances reads the rule in the definition of an object's kind; nil when there
// is none, or it may not be read. problem says why it can't be followed.
func (s *session) instances(ctx context.Context, sub *subject) (rule *rules.Override, problem string) {
	mapping, err := s.tracker.cluster.Mapping(ctx, sub.GVK, true)
	if err != nil {
		return nil, "" // the wait itself will tell
	}
	client, err := s.tracker.cluster.Metadata()
	if err != nil {
		return nil, ""
	}
	name := mapping.Resource.GroupResource().String()
	definition, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, "" // not everybody may read them, and hardly one has a rule
	}
	said := definition.GetAnnotations()
	rule, err = rules.NewOverride(said[prefix+"instances-ready"], said[prefix+"instances-failed"])
	if err != nil {
		return nil, fmt.Sprintf("annotation %sinstances-ready or %sinstances-failed of CustomResourceDefinition/%s: %v", prefix, prefix, name, err)
	}
	return rule, ""
}
