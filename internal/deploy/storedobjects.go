package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/release"
)

// A StoredObjectsError says that a rollback would create objects outside of the release's namespace that no revision but its
// target has. See StoredHooksError for why it asks.
type StoredObjectsError struct {
	Release, Namespace string
	Revision           int
	Objects            []kube.ID
}

func (e *StoredObjectsError) Error() string {
	text := fmt.Sprintf("revision %d of release %s would create objects outside of namespace %s that no other revision has:", e.Revision, e.Release, e.Namespace)
	for _, id := range e.Objects {
		text += "\n  " + id.String()
	}
	return text
}

// Hint says what to do about it.
func (e *StoredObjectsError) Hint() string {
	return fmt.Sprintf("to look at them: %s get manifest %s -n %s --revision %d; to create them: --allow-stored-hooks", program.Name, e.Release, e.Namespace, e.Revision)
}

// checkStoredObjects refuses a rollback that creates cluster-scoped objects, or objects in other namespaces, that neither exist
// nor are in another revision. An undo may bring back what the failed run was going to delete.
func (d *Deployer) checkStoredObjects(ctx context.Context, op *Operation, history *release.History) error {
	if op.Verb != Rollback || d.Settings.AllowStoredHooks {
		return nil
	}
	var created []kube.ID
	for c := range op.Plan.Changes() {
		if c.Action == apply.Create && c.ID.Namespace != d.Namespace && !op.undoes.hasPruned(c.ID) {
			created = append(created, c.ID)
		}
	}
	if len(created) == 0 {
		return nil
	}
	var parser chart.Parser
	history.LoadRemaining(ctx)
	for _, s := range history.Revisions {
		if s.Revision == op.Target {
			continue
		}
		record, err := history.Load(ctx, s.Revision)
		if err != nil {
			continue // it proves nothing
		}
		manifests, err := parser.Parse(record.Manifest)
		if err != nil {
			continue
		}
		for _, m := range manifests {
			created = slices.DeleteFunc(created, func(id kube.ID) bool {
				named := kube.IDOf(m.Object)
				return named == id || id.Namespace == "" && named.GroupKind() == id.GroupKind() && named.Name == id.Name
			})
		}
	}
	if len(created) == 0 {
		return nil
	}
	slices.SortFunc(created, func(a, b kube.ID) int { return strings.Compare(a.String(), b.String()) })
	return &StoredObjectsError{Release: op.Release, Namespace: d.Namespace, Revision: op.Target, Objects: created}
}
