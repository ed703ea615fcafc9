package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deployer/apply"
	"deployer/chart"
	"deployer/internal/kube"
	"deployer/internal/program"
	"deployer/release"
)

// checkStoredObjects refuses a rollback that creates cluster-scoped objects, or objects in other namespaces, that neither exist
// nor are in another revision, for the same reason as checkStoredHooks. An undo may bring back what the failed run was going to delete.
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
	text := fmt.Sprintf("revision %d of release %s would create objects outside of namespace %s that no other revision has:", op.Target, op.Release, d.Namespace)
	for _, id := range created {
		text += "\n  " + id.String()
	}
	return refusal(program.WithHint(errors.New(text), fmt.Sprintf("to look at them: %s get manifest %s -n %s --revision %d; to create them: --allow-stored-hooks", program.OnCluster, op.Release, d.Namespace, op.Target)))
}
