package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deployer/apply/decide"
	"deployer/apply/provenance"
	"deployer/apply/verify"
	"deployer/internal/annotation"
	"deployer/internal/kube"
)

// A RejectedError lists the reasons why a plan can't be carried out.
type RejectedError struct {
	Rejections []Rejection
	When       RejectedWhen
	// HooksFirst says that hooks would have run before the first of the objects.
	HooksFirst bool
}

// RejectedWhen says what had been changed before the objects were rejected. The zero value is nothing.
type RejectedWhen int

// The moments.
const (
	BeforeChanges RejectedWhen = iota
	AfterHooks                 // which alone have changed anything, besides the objects of crds/
	AfterChanges               // such as the kinds and namespaces of the objects: the server couldn't be asked before
	WhenChecked                // nothing, and nothing would have been
)

// A Rejection is one object's reason. Secret values never appear in it.
type Rejection struct {
	ID     kube.ID
	Source string // template; empty when unknown
	Err    error  // doesn't name the object

	ofCreation bool // the object can't be created
}

func (r Rejection) Error() string {
	if r.Source == "" {
		return fmt.Sprintf("%s: %s", r.ID, r.Err)
	}
	return fmt.Sprintf("%s (%s): %s", r.ID, r.Source, r.Err)
}

// Unwrap gives the reason.
func (r Rejection) Unwrap() error { return r.Err }

// ChangedNothing reports whether the run ends before its first change.
func (e *RejectedError) ChangedNothing() bool { return e.When == BeforeChanges }

func (e *RejectedError) Error() string {
	when := map[RejectedWhen]string{
		BeforeChanges: ", nothing was changed",
		AfterHooks:    ", only hooks ran",
		AfterChanges:  ", after the objects that they need were created",
	}[e.When]
	what := "1 object was"
	if n := len(e.Rejections); n != 1 {
		what = fmt.Sprintf("%d objects were", n)
	}
	lines := []string{fmt.Sprintf("%s rejected%s:", what, when)}
	for _, r := range e.Rejections {
		lines = append(lines, "  "+strings.ReplaceAll(r.Error(), "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the rejections.
func (e *RejectedError) Unwrap() []error {
	errs := make([]error, len(e.Rejections))
	for i, r := range e.Rejections {
		errs[i] = r
	}
	return errs
}

// Hint gives the distinct hints of the reasons, one per line, each with the objects that it is for.
func (e *RejectedError) Hint() string {
	var hints []string
	objects := map[string][]string{} // by hint
	for _, r := range e.Rejections {
		hint := hintOf(r.Err)
		if hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
		objects[hint] = append(objects[hint], r.ID.String())
	}
	for i, hint := range hints {
		of := objects[hint]
		if len(of) == len(e.Rejections) || strings.Contains(hint, of[0]) {
			continue
		}
		if more := len(of) - 3; more > 0 {
			of = append(of[:3:3], fmt.Sprintf("%d more", more))
		}
		hints[i] = strings.Join(of, ", ") + ": " + hint
	}
	said := func(of func(verify.Answer) bool) bool {
		return slices.ContainsFunc(e.Rejections, func(r Rejection) bool {
			said, ok := errors.AsType[*verify.ServerError](r.Err)
			return ok && of(said.Answer)
		})
	}
	switch {
	case e.When != BeforeChanges:
	case said(verify.Answer.MayPass):
		hints = append(hints, "if that may have passed by then: --gate best-effort deploys the rest, and asks again when the turn of the object comes")
	case e.HooksFirst && said(verify.Answer.DependsOnOthers):
		hints = append(hints, "if a hook that runs first ends that: --gate best-effort runs the hooks, and asks again when the turn of the object comes")
	}
	return strings.Join(hints, "\n")
}

// An OwnershipError says that an object exists and isn't this release's.
type OwnershipError struct {
	ID    kube.ID
	Owner provenance.Owner // empty when it belongs to no release
	Text  string           // what is missing or different, in Helm's words
}

func (e *OwnershipError) Error() string {
	return "exists and cannot be imported into the current release: invalid ownership metadata; " + e.Text
}

// Hint says how to adopt it.
func (e *OwnershipError) Hint() string {
	adopt := fmt.Sprintf("--adopt %s", strings.ToLower(e.ID.Kind)+"/"+e.ID.Name)
	if e.Owner == (provenance.Owner{}) {
		return fmt.Sprintf("to make %s part of the release: install or upgrade with %s, or with --take-ownership for all such objects", e.ID, adopt)
	}
	return fmt.Sprintf("to take %s from release %s: install or upgrade with %s, or with --take-ownership-from %s", e.ID, e.Owner, adopt, e.Owner)
}

// A ConflictError says that other managers own fields that the policy doesn't take.
type ConflictError struct {
	Fields []FieldConflict
	Policy decide.ConflictPolicy
	Stated bool // by the object's annotation, which the flag doesn't override
}

func (e *ConflictError) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		if f.CollidesWith != "" {
			lines[i] = fmt.Sprintf("%s is set to %s by %q and conflicts with the chart's %s", f.Path, f.Before, f.Manager, f.CollidesWith)
			continue
		}
		lines[i] = fmt.Sprintf("%s is set to %s by %q, the chart says %s", f.Path, f.Before, f.Manager, f.After)
	}
	return strings.Join(lines, "\n")
}

// Hint says how to go on.
func (e *ConflictError) Hint() string {
	ways := "--conflicts "
	if e.Stated {
		ways = annotation.Conflicts.Name + ": "
	}
	yield := ", leave them with " + ways + "yield,"
	if e.Policy == decide.YieldConflicts { // set in another API version
		yield = ""
	}
	return "take the fields over with " + ways + "take" + yield + " or remove them from the templates"
}

// An ImmutableError says that the change can't be made to the existing object.
type ImmutableError struct {
	ID       kube.ID
	Fields   []string
	Text     string // the server's
	Never    bool   // recreating it isn't offered
	Destroys string // what recreating it may destroy; empty if nothing
	Adopted  bool   // the annotation isn't enough to recreate it
	Advice   string // what to do, where more is known than that recreating may help
}

func (e *ImmutableError) Error() string { return e.Text }

// Hint says how to allow recreation, where that is possible.
func (e *ImmutableError) Hint() string {
	switch {
	case e.Advice != "":
		return e.Advice
	case e.Never:
		return fmt.Sprintf("%s can't be changed like this, and deployer never recreates it: revert the change in the chart", e.ID)
	case e.ID.Kind == "PersistentVolumeClaim":
		return fmt.Sprintf("recreating %s destroys its data: revert the change, or give the chart's claim another name and copy the data; if the data may go, add the annotation %s: \"true\" and use --allow-recreate", e.ID, annotation.Recreate.Name)
	case e.Destroys != "":
		return fmt.Sprintf("recreating %s may destroy %s: revert the change, or add the annotation %s: \"true\" and use --allow-recreate", e.ID, e.Destroys, annotation.Recreate.Name)
	case e.ID.Kind == "StorageClass":
		return fmt.Sprintf("recreating %s changes no volume that it has made: %s; or give the chart's class another name", e.ID, e.permission())
	}
	return fmt.Sprintf("to recreate %s: %s", e.ID, e.permission())
}

// permission is how somebody permits that the object is recreated.
func (e *ImmutableError) permission() string {
	if e.Adopted {
		return "--allow-recreate"
	}
	return fmt.Sprintf("--allow-recreate, or the annotation %s: \"true\" in the template", annotation.Recreate.Name)
}

// An InvalidError says why an object of the chart is invalid, by our own checks or by the
// server's.
type InvalidError struct {
	Field  string // empty when no single field is at fault
	Text   string
	Advice string // what to do; may be empty
}

func (e *InvalidError) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// Hint says what to do about it.
func (e *InvalidError) Hint() string { return e.Advice }

// An ObjectError is a failure at one object while changes were made.
type ObjectError struct {
	ID     kube.ID
	Source string
	Doing  string // "creating", "updating", "deleting", ...
	Err    error
}

func (e *ObjectError) Error() string { return fmt.Sprintf("%s %s: %s", e.Doing, e.ID, e.Err) }

// Unwrap gives the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// Hint is that of the reason, if it has one.
func (e *ObjectError) Hint() string { return hintOf(e.Err) }

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// A HookExistsError says why an object with the name of a hook may not be deleted.
type HookExistsError struct{ Why string }

func (e *HookExistsError) Error() string { return "already exists and " + e.Why }

// Hint says what to do about it.
func (e *HookExistsError) Hint() string {
	return "delete or rename it, or give the hook another name"
}
