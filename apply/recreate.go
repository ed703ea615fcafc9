package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"deployer/apply/compare"
	"deployer/apply/fields"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// neverRecreated are kinds that are never recreated: deleting them loses data that can't
// be restored.
var neverRecreated = map[string]bool{
	"/Namespace":        true,
	"/PersistentVolume": true,
	"apiextensions.k8s.io/CustomResourceDefinition": true,
}

// recreate decides about an update that the server refuses because the fields in at are
// immutable.
func (p *planning) recreate(ctx context.Context, u *updateDecision, refusal error, at []string) (Change, error) {
	t := u.t
	broken := &ImmutableError{ID: t.id, Fields: at, Text: verify.Explain(t.obj, refusal).Error()}
	claims := u.resizedClaims(broken)
	may := p.mayRecreate(t, u.live, broken) && (!u.wasSomebodyElses() || p.a.opts.AllowRecreate)
	if may {
		var err error
		if may, err = p.keepsOwnPermissions(ctx, u.live, broken); err != nil {
			return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "checking whose permissions come from", Err: err}
		}
	}
	if !may {
		r := t.reject(broken)
		return Change{}, &r
	}
	if claims != "" {
		p.warnings.add(t.id, t.source, "%s", claims)
	}
	c := p.change(t, Recreate)
	c.Live, c.Desired = u.live, u.asScaled()
	c.Conflicts = u.change.Conflicts
	var err error
	c.Fields, err = compare.Fields(u.comparison.conv, compare.States{Before: u.live, After: c.Desired, Desired: c.Desired, Managed: u.comparison.entries, AfterIsManifest: true})
	if err != nil {
		return Change{}, &ObjectError{ID: t.id, Source: t.source, Doing: "comparing", Err: err}
	}
	c.Reason = broken.Text
	if len(broken.Fields) > 0 {
		c.Reason = strings.Join(broken.Fields, ", ") + " can't be changed"
	}
	was := precondition{uid: u.live.GetUID()}
	c.execution = p.executionOf(t,
		write{verb: deleteObject, precondition: was, propagation: propagation(t.id)},
		write{verb: awaitGone, precondition: was},
		write{verb: createObject})
	t.progress.wasAbsent = true // the object that exists afterwards was created by us
	result, err := p.dryRunUnderOtherName(ctx, t, c.Desired)
	switch {
	case err == nil:
		c.Result = result
	case verify.NameHeld(err):
		c.Unverified = "no dry run while the old object exists: " + verify.Explain(t.obj, err).Error()
	default:
		if c, err = p.decideRefused(ctx, t, c.Desired, c, err); err != nil || c.Action != Recreate {
			return c, err
		}
	}
	err = p.permissions.check(ctx, &c, "delete", t.mapping)
	return c, err
}

// wasSomebodyElses reports whether the object is adopted by this run, or was adopted by
// failed runs only: after a deletion it can't be given back.
func (u *updateDecision) wasSomebodyElses() bool {
	return u.adopting || u.change.Provenance.mustBeGivenBack() && u.change.Provenance.Adopted.Revision != 0
}

// asScaled returns the desired object, with the live replica count if something other than
// the chart controls it.
func (u *updateDecision) asScaled() *unstructured.Unstructured {
	n, ok := fields.Value(u.live.Object, pathOf(u.t.scaledReplicasPath))
	if !ok || u.t.scaledReplicasPath == nil {
		return u.fullDesired
	}
	out := u.fullDesired.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, n, u.t.scaledReplicasPath...); err != nil {
		return u.fullDesired
	}
	return out
}

func (p *planning) mayRecreate(t *target, live *unstructured.Unstructured, broken *ImmutableError) bool {
	annotated, _, _ := annotation.Recreate.Read(t.obj.GetAnnotations())
	kind := t.id.Group + "/" + t.id.Kind
	switch {
	case neverRecreated[kind], mayBeKept(live.GetAnnotations()), mayBeKept(t.obj.GetAnnotations()):
		broken.Never = true
		return false
	case kind == "/PersistentVolumeClaim":
		return annotated && p.a.opts.AllowRecreate
	case kind == "batch/Job":
		return true
	}
	return annotated || p.a.opts.AllowRecreate
}

// dryRunUnderOtherName asks the server about an object whose name is still taken, under
// another name.
func (p *planning) dryRunUnderOtherName(ctx context.Context, t *target, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const longest = 63 // the limit for Services, the strictest one
	other := shallowCopy(want)
	suffix := "-dryrun-" + rand.String(5)
	name := t.id.Name
	if len(name)+len(suffix) > longest {
		name = strings.TrimRight(name[:longest-len(suffix)], "-.")
	}
	other.SetName(name + suffix)
	result, err := p.a.create(ctx, t, other, asDryRun)
	if err != nil {
		return nil, err
	}
	result.SetName(t.id.Name)
	result.SetUID("")
	return result, nil
}

// propagation returns how the old object is deleted: a StatefulSet leaves its pods to the
// new one. For other kinds the new object must not find pods of the old one.
func propagation(id kube.ID) metav1.DeletionPropagation {
	if id.Group == "apps" && id.Kind == "StatefulSet" {
		return metav1.DeletePropagationOrphan
	}
	if id.Group == "batch" && id.Kind == "Job" {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationForeground
}

// awaitGone waits until an object is gone or was replaced by another one. It polls: the
// wait takes from milliseconds to minutes, and a watch needs a permission that the
// account often lacks.
func (a *Applier) awaitGone(ctx context.Context, m kube.Mapping, id kube.ID, uid types.UID) error {
	if limit := a.opts.GoneTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it still exists after %s", limit))
		defer cancel()
	}
	var last *unstructured.Unstructured
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		obj, err := a.get(ctx, m, id)
		if err != nil && !apierrors.IsForbidden(err) {
			return stillThere(ctx, err, last)
		}
		if obj == nil || obj.GetUID() != uid {
			return nil
		}
		last = obj
		if err := kube.Sleep(ctx, pause); err != nil {
			return stillThere(ctx, err, last)
		}
	}
}

func stillThere(ctx context.Context, err error, last *unstructured.Unstructured) error {
	why := ""
	if ctx.Err() != nil {
		err = context.Cause(ctx) // also when the end of ctx has cancelled the request
		if last != nil && len(last.GetFinalizers()) > 0 {
			why = " (it has finalizers " + strings.Join(last.GetFinalizers(), ", ") + ")"
		}
	}
	return fmt.Errorf("waiting for the deletion of the old object%s: %w", why, err)
}
