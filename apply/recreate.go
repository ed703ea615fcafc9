package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"deployer/apply/compare"
	"deployer/apply/decide"
	"deployer/apply/fields"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// decideRecreation decides about an update that the server refuses because fields are
// immutable.
func (u *updateDecision) decideRecreation(refusal error, immutableFields []string) (Change, error) {
	immutable := &ImmutableError{ID: u.t.id, Fields: immutableFields, Text: verify.AsServerError(u.t.obj, refusal).Error(), Destroys: u.destroyedByRecreation(), Adopted: u.wasAdopted()}
	if u.p.inspects {
		return u.refused(immutable)
	}
	volumeClaimAdvice := u.explainStatefulSet(immutable)
	permission := u.permissionToRecreate()
	immutable.Never = permission == decide.NeverPermitted
	if permission != decide.Permitted {
		return Change{}, u.t.reject(immutable)
	}
	advice, err := u.facts.adviceFirst.get(u.p.adviceBeforeRecreation(u.t, u.live))
	switch {
	case err != nil:
		return Change{}, err
	case advice != "":
		immutable.Advice = advice
		return Change{}, u.t.reject(immutable)
	case volumeClaimAdvice != "":
		u.p.warnings.add(u.t.id, u.t.source, "%s", volumeClaimAdvice)
	}
	return u.recreate(immutable)
}

func (u *updateDecision) permissionToRecreate() decide.RecreationPermission {
	return decide.Recreation{
		ID: u.t.id, Live: u.live.GetAnnotations(), Desired: u.t.obj.GetAnnotations(), Allowed: u.p.a.opts.AllowRecreate, Adopted: u.wasAdopted(),
		HoldsData: u.destroyedByRecreation() != "", Derived: movesToken(u.live, u.fullDesired),
	}.Permission()
}

// destroyedByRecreation says what data may be gone when the object is recreated; empty if none.
func (u *updateDecision) destroyedByRecreation() string {
	policy, _, _ := unstructured.NestedString(u.live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	switch {
	case !kube.IsBuiltinGroup(u.t.id.Group):
		return "the data of what stands behind it"
	case u.t.id.GroupKind() == kube.StatefulSetKind && policy == "Delete" && !selectsPodsOf(u.fullDesired, u.live):
		return "its claims with their data (persistentVolumeClaimRetentionPolicy.whenDeleted is Delete)"
	}
	return ""
}

// movesToken reports whether a Secret is to hold the token of another account: the controller of these tokens deletes it then.
// k8s.io/kubernetes/pkg/controller/serviceaccount/tokens_controller.go
func movesToken(live, desired *unstructured.Unstructured) bool {
	account := func(obj *unstructured.Unstructured) string { return obj.GetAnnotations()[corev1.ServiceAccountNameKey] }
	return holdsToken(live) && holdsToken(desired) && account(live) != account(desired)
}

// holdsToken reports whether an object is a Secret into which a controller puts the token of an account.
func holdsToken(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && obj.Object["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// recreate decides that an object is deleted and made again.
func (u *updateDecision) recreate(immutable *ImmutableError) (Change, error) {
	p, t := u.p, u.t
	c := p.newChange(t, decide.Recreate)
	c.Live, c.Desired = u.live, u.asScaled()
	c.Conflicts = slices.Clone(u.change.Conflicts)
	rules := u.rules
	rules.Recreates = true
	for i := range c.Conflicts {
		f := &c.Conflicts[i]
		f.Outcome = rules.Outcome(f.Contest, fields.Has(u.live.Object, f.FieldPath))
	}
	var err error
	c.Fields, err = compare.Fields(u.known.live.Converter, compare.States{Before: u.live, After: c.Desired, Desired: c.Desired, Managed: u.known.live.Entries, AfterIsManifest: true})
	if err != nil {
		return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	c.Reason = immutable.Text
	if len(immutable.Fields) > 0 {
		c.Reason = strings.Join(immutable.Fields, ", ") + " can't be changed"
	}
	if immutable.Destroys != "" {
		c.Reason += "; it may destroy " + immutable.Destroys
	}
	if u.wasAdopted() {
		c.Reason += "; the adopted object can't be given back after that"
	}
	c.writes = []write{
		{verb: deleteObject, precondition: u.unchangedSince(), propagation: replacementPropagation(u.live, c.Desired)},
		{verb: awaitGone, precondition: u.unchangedSince()},
		u.replacement.creation(),
	}
	said, err := p.try(t, u.facts, trial{write: u.replacement.creation(), body: c.Desired, beside: true})
	switch {
	case err != nil:
		return Change{}, err
	case said.refusal == nil:
		c.Predicted = said.result
	case isOnlyForFormer(said.refusal, u.live):
		c.Unverified = noDryRunBeside(t, said.refusal)
	default:
		if c, err = p.decideRefused(t, u.facts, c, said.refusal); err != nil {
			return Change{}, err
		}
	}
	c.needs, c.makes = []string{"delete"}, true
	return c, nil
}

// adviceBeforeRecreation asks what somebody has to do before an object can be deleted, and made again after that; empty for nothing.
func (p *planning) adviceBeforeRecreation(t *target, live *unstructured.Unstructured) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		doing := "checking whose permissions come from"
		advice, err := p.permissions.adviceAgainstRecreation(ctx, live)
		if err == nil && advice == "" {
			doing = "looking for what uses"
			advice, err = p.a.adviceOnUsers(ctx, t.id)
		}
		if err != nil {
			return "", &ObjectError{ID: t.id, Source: t.source, Doing: doing, Err: err}
		}
		return advice, nil
	}
}

// replacementPropagation says what becomes of the dependents of an object that another one takes the place of: a
// StatefulSet leaves its pods to the new one if that selects them. For other kinds the new object must not find pods of the old one at
// work. Those of a Job that has ended aren't, and may be on a node that is gone.
func replacementPropagation(old, desired *unstructured.Unstructured) metav1.DeletionPropagation {
	ended, _ := endOf(old)
	switch kind := kube.IDOf(old).GroupKind(); {
	case kind == kube.StatefulSetKind && selectsPodsOf(desired, old):
		return metav1.DeletePropagationOrphan
	case kind == kube.JobKind && ended:
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// selectsPodsOf reports whether a StatefulSet selects the pods that another one has made.
func selectsPodsOf(set, other *unstructured.Unstructured) bool {
	stated, _, _ := unstructured.NestedMap(set.Object, "spec", "selector")
	selector, err := kube.Selector(stated)
	pods, _, _ := unstructured.NestedStringMap(other.Object, "spec", "template", "metadata", "labels")
	return err == nil && selector.Matches(labels.Set(pods))
}

// protectedByUsers are the kinds whose deletion waits until nobody uses the object, what uses it, and how that can be told.
// k8s.io/kubernetes/pkg/controller/{volume/pvcprotection,volume/vacprotection,resourceclaim}
var protectedByUsers = map[schema.GroupKind]struct {
	users []schema.GroupKind
	uses  func(user *unstructured.Unstructured, name string) bool
}{
	kube.PersistentVolumeClaimKind:                           {[]schema.GroupKind{kube.PodKind}, usesClaim},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:        {[]schema.GroupKind{kube.PodKind}, usesResourceClaim},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {[]schema.GroupKind{kube.PersistentVolumeClaimKind, {Kind: "PersistentVolume"}}, hasAttributesClass},
}

// adviceOnUsers says what to do first where something uses an object: its deletion would wait for the users, and the data of a claim
// be lost as soon as they are gone. It is empty if nothing does. Without permission to list them, it may be in use.
func (a *Applier) adviceOnUsers(ctx context.Context, id kube.ID) (string, error) {
	protected := protectedByUsers[id.GroupKind()]
	var users []string
	for _, kind := range protected.users {
		m, err := a.cluster.Mapping(ctx, kind.WithVersion("v1"), true)
		if err != nil {
			return "", err
		}
		list, err := a.list(ctx, collection{mapping: m, namespace: id.Namespace})
		if apierrors.IsForbidden(err) {
			return fmt.Sprintf("deployer recreates it only if nothing uses it, and has no permission to list %s: allow that, or delete it yourself", m.Resource.Resource), nil
		}
		if err != nil {
			return "", err
		}
		for i := range list {
			if protected.uses(&list[i], id.Name) {
				users = append(users, kube.IDOf(&list[i]).String())
			}
		}
	}
	if len(users) == 0 {
		return "", nil
	}
	return fmt.Sprintf("it is used by %s, and can't be deleted before these are gone: scale down what has made them, then deploy again", strings.Join(users, ", ")), nil
}

// hasAttributesClass reports whether a volume or its claim has a VolumeAttributesClass, or is to get it.
func hasAttributesClass(user *unstructured.Unstructured, class string) bool {
	desired, _, _ := unstructured.NestedString(user.Object, "spec", "volumeAttributesClassName")
	current, _, _ := unstructured.NestedString(user.Object, "status", "currentVolumeAttributesClassName")
	return desired == class || current == class
}

// usesResourceClaim reports whether a pod that hasn't ended has devices by a claim.
func usesResourceClaim(pod *unstructured.Unstructured, claim string) bool {
	ended, _ := endOf(pod)
	return !ended && slices.ContainsFunc(kube.Items(pod.Object, "spec", "resourceClaims"), func(c map[string]any) bool {
		return c["resourceClaimName"] == claim
	})
}

// usesClaim reports whether a pod that hasn't ended mounts a claim.
// k8s.io/kubernetes/pkg/controller/volume/pvcprotection
func usesClaim(pod *unstructured.Unstructured, claim string) bool {
	ended, _ := endOf(pod)
	return !ended && slices.ContainsFunc(kube.Items(pod.Object, "spec", "volumes"), func(v map[string]any) bool {
		name, named, _ := unstructured.NestedString(v, "persistentVolumeClaim", "claimName")
		_, ephemeral := v["ephemeral"].(map[string]any)
		return named && name == claim || ephemeral && pod.GetName()+"-"+fields.ItemName(v) == claim
	})
}

// asScaled returns the desired object, with the live replica count if the chart states none, or
// something other than the chart controls it.
func (u *updateDecision) asScaled() *unstructured.Unstructured {
	n, has := fields.Value(u.live.Object, u.scaledAt)
	if u.scaledAt == nil || !has {
		return u.fullDesired
	}
	out := u.fullDesired.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, n, fields.Names(u.scaledAt)...); err != nil {
		return u.fullDesired
	}
	return out
}

// wasAdopted reports whether this run adopts the object, or only failed runs have adopted it.
func (u *updateDecision) wasAdopted() bool {
	from := u.change.Provenance
	return u.adopting || from.MustBeGivenBack() && from.Adopted.Revision != 0
}

// mayBeHeldByFormer reports whether an object may be refused what another one of its name has: names are compared last.
func mayBeHeldByFormer(refusal error) bool {
	kind := verify.Read(refusal).Kind
	return kind == verify.Held || kind == verify.Quota
}

// isOnlyForFormer reports whether an object is refused beside the one that it replaces, and may be accepted when that is gone.
func isOnlyForFormer(refusal error, former *unstructured.Unstructured) bool {
	said := verify.Read(refusal)
	if said.Kind == verify.Quota {
		return decide.Shortage{Namespace: former.GetNamespace(), Message: refusal.Error()}.MayEndWithout(former)
	}
	return said.NeedsName()
}

// noDryRunBeside says why an object can't be dry-run while the one that it replaces exists.
func noDryRunBeside(t *target, err error) string {
	return "no dry run while the old object exists: " + verify.AsServerError(t.obj, err).Error()
}

// underOtherName tries an object whose name is still taken under another name.
func underOtherName(t *target, desired *unstructured.Unstructured, try func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	const longest = 63 // the limit for Services, the strictest one
	other := kube.ShallowCopy(desired)
	suffix := "-dryrun-" + rand.String(5)
	name := t.id.Name
	if len(name)+len(suffix) > longest {
		name = strings.TrimRight(name[:longest-len(suffix)], "-.")
	}
	other.SetName(name + suffix)
	result, err := try(other)
	if err != nil {
		return nil, err
	}
	result.SetName(t.id.Name)
	result.SetUID("")
	return result, nil
}

// mutableStatefulSetFields lists the fields of a StatefulSet's spec that may be changed.
// k8s.io/kubernetes/pkg/apis/apps/validation, ValidateStatefulSetUpdate
var mutableStatefulSetFields = []string{
	"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
	"persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}

// explainStatefulSet handles a rejected change of a StatefulSet, where the server doesn't name
// the field. It sets the fields and the advice in immutable. It returns advice about claims
// whose template has another size, or nothing.
func (u *updateDecision) explainStatefulSet(immutable *ImmutableError) string {
	if u.t.id.Group != "apps" || u.t.id.Kind != "StatefulSet" {
		return ""
	}
	desired, _, _ := unstructured.NestedMap(u.fullDesired.Object, "spec")
	live, _, _ := unstructured.NestedMap(u.live.Object, "spec")
	for _, t := range kube.Items(desired, "volumeClaimTemplates") { // as the server writes them
		if _, size := sizeOf(t); size != "" {
			if q, err := resource.ParseQuantity(size); err == nil {
				_ = unstructured.SetNestedField(t, q.String(), "spec", "resources", "requests", "storage") // where it has been read from
			}
		}
	}
	var at []string
	for key, v := range desired {
		if !slices.Contains(mutableStatefulSetFields, key) && !compare.Satisfies(live[key], v) {
			at = append(at, "spec."+key)
		}
	}
	slices.Sort(at)
	if len(at) > 0 {
		immutable.Fields = at
	}
	var lines []string
	for _, t := range kube.Items(desired, "volumeClaimTemplates") {
		name, size := sizeOf(t)
		for _, old := range kube.Items(live, "volumeClaimTemplates") {
			if n, was := sizeOf(old); n == name && size != "" && !compare.Satisfies(was, size) {
				lines = append(lines, u.adviceForClaims(name, was, size))
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	what := "claims"
	if selectsPodsOf(u.fullDesired, u.live) {
		what = "pods and claims"
	}
	how := fmt.Sprintf("then recreate %s: %s; %s stay", u.t.id, immutable.permission(), what)
	if immutable.Destroys != "" {
		how = immutable.Hint()
	}
	text := strings.Join(lines, "\n")
	immutable.Advice = text + "\n" + how
	return text
}

// adviceForClaims says what becomes of the claims of a template that asks for another size. They may have any size:
// people resize them, and an earlier recreation left them as they were. A claim grows, and doesn't shrink.
// https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims
func (u *updateDecision) adviceForClaims(template, was, size string) string {
	kept := fmt.Sprintf("existing claims %s-%s-N keep the size that they have", template, u.t.id.Name)
	before, err := resource.ParseQuantity(was)
	after, err2 := resource.ParseQuantity(size)
	if err == nil && err2 == nil && after.Cmp(before) < 0 {
		return kept + ": a claim can't become smaller"
	}
	return fmt.Sprintf("%s; to let one grow to %s:\n  kubectl -n %s patch pvc %s-%s-0 -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}'",
		kept, size, u.t.id.Namespace, template, u.t.id.Name, size)
}

func sizeOf(template map[string]any) (name, size string) {
	name, _, _ = unstructured.NestedString(template, "metadata", "name")
	v, _, _ := unstructured.NestedFieldNoCopy(template, "spec", "resources", "requests", "storage")
	if v != nil {
		size = fmt.Sprint(v)
	}
	return name, size
}
