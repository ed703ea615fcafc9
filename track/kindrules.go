package track

import (
	"context"
	"fmt"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"deployer/internal/annotation"
	"deployer/track/rules"
)

// A kindRule is the readiness rule in the annotations of a CustomResourceDefinition. A Tracker
// reads each once.
type kindRule struct {
	rule    *rules.Rule // nil when the definition has none, or may not be read
	problem string      // why it can't be followed
}

// ComputeStatus computes the status of objects from their fields, their annotations, the
// user's rules and the rules in the definitions of their kinds. It makes one request for
// each kind whose definition may have a rule. There is no baseline, so a condition from an
// earlier change counts as fresh, and grace periods start when the object was created.
func (t *Tracker) ComputeStatus(ctx context.Context, objects []*unstructured.Unstructured) []Status {
	var kinds []schema.GroupVersionKind
	for _, obj := range objects {
		if t.mayHaveKindRule(obj.GroupVersionKind().GroupKind(), obj) {
			kinds = append(kinds, obj.GroupVersionKind())
		}
	}
	t.readKindRules(ctx, kinds)
	out := make([]Status, len(objects))
	for i, obj := range objects {
		rule := t.kindRuleOf(obj.GroupVersionKind().GroupKind(), obj)
		out[i] = t.opts.computeStatus(obj, t.opts.Now(), rule.rule)
		if rule.problem != "" {
			out[i].Notes = append(out[i].Notes, rule.problem)
		}
	}
	return out
}

// mayHaveKindRule reports whether the definition of an object's kind may have a rule that
// applies: the kind isn't built in, and neither the user nor the object, nil if it isn't known, has a rule.
func (t *Tracker) mayHaveKindRule(gk schema.GroupKind, obj *unstructured.Unstructured) bool {
	return rules.IsCustom(gk) && !t.opts.Rules.Has(gk) && settingsOf(obj).rule == nil
}

// kindRuleOf returns the rule of an object's kind; the zero rule when none was read or none
// applies.
func (t *Tracker) kindRuleOf(gk schema.GroupKind, obj *unstructured.Unstructured) kindRule {
	if !t.mayHaveKindRule(gk, obj) {
		return kindRule{}
	}
	known, _ := t.kindRules.Load(gk)
	rule, _ := known.(kindRule)
	return rule
}

// readKindRules reads the definitions of kinds that aren't known yet.
func (t *Tracker) readKindRules(ctx context.Context, kinds []schema.GroupVersionKind) {
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	unknown := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, gvk := range kinds {
		if _, known := t.kindRules.Load(gvk.GroupKind()); !known {
			unknown[gvk.GroupKind()] = gvk
		}
	}
	var all sync.WaitGroup
	for gk, gvk := range unknown {
		all.Go(func() {
			// Not everybody may read definitions, and hardly one has a rule.
			if rule, err := t.readKindRule(ctx, gvk); err == nil {
				t.kindRules.Store(gk, rule)
			}
		})
	}
	all.Wait()
}

// readKindRule reads the rule in the definition of a kind.
func (t *Tracker) readKindRule(ctx context.Context, gvk schema.GroupVersionKind) (kindRule, error) {
	mapping, err := t.cluster.Mapping(ctx, gvk, true)
	if err != nil {
		return kindRule{}, err
	}
	name := mapping.Resource.GroupResource().String()
	definition, err := t.cluster.Metadata().Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return kindRule{}, err
	}
	annotations := definition.GetAnnotations()
	ready, failed := annotation.InstancesReady.Name, annotation.InstancesFailed.Name
	rule, err := rules.NewRule(annotations[ready], annotations[failed])
	if err != nil {
		return kindRule{problem: fmt.Sprintf("annotation %s or %s of CustomResourceDefinition/%s: %v", ready, failed, name, err)}, nil
	}
	return kindRule{rule: rule}, nil
}

// setKindRules gives awaited objects the rules of their kinds, also those that aren't known yet or
// don't exist. It reads only rules that may matter; rules that are known apply to all objects of the kind.
func (t *Tracker) setKindRules(ctx context.Context, objects []*trackedObject) {
	var ruled []*trackedObject
	var kinds []schema.GroupVersionKind
	for _, obj := range objects {
		waits := obj.target.Until == UntilReady || obj.target.Until == UntilComplete
		if !waits || obj.settings.isSkipped() || !t.mayHaveKindRule(obj.gk, obj.target.Baseline) {
			continue
		}
		ruled = append(ruled, obj)
		if !obj.target.Changed && obj.target.Baseline != nil {
			before := t.opts.computeStatus(obj.target.Baseline, obj.timers.appliedAt, nil)
			if before.State == Ready && (!before.Unverified || obj.target.Baseline.Object["status"] == nil) {
				continue // it is ready without a rule, or nobody writes what one could be about
			}
		}
		kinds = append(kinds, obj.target.GVK)
	}
	t.readKindRules(ctx, kinds)
	reported := map[string]bool{}
	for _, obj := range ruled {
		rule := t.kindRuleOf(obj.gk, obj.target.Baseline)
		if obj.kindRule = rule.rule; rule.problem != "" && !reported[rule.problem] {
			reported[rule.problem] = true
			obj.settings.warnings.unreadable = append(obj.settings.warnings.unreadable, rule.problem)
		}
	}
}
