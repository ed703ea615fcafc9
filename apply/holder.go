package apply

import (
	"context"

	"deployer/apply/decide"
	"deployer/apply/verify"
	"deployer/internal/kube"
)

// holderOf asks which object has what the API server refused an object for: a nodePort, or the place of the default
// PriorityClass. It is empty where that isn't the reason, and where the account can't see it.
func (p *planning) holderOf(t *target, refusal error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if verify.KindOf(refusal) != verify.Held {
			return "", nil
		}
		list, err := p.a.list(ctx, collection{mapping: t.mapping}) // of all namespaces
		if err != nil {
			return "", ctx.Err()
		}
		wanted := decide.HoldingsOf(t.obj)
		for i := range list {
			id := kube.IDOf(&list[i])
			if id != t.id && holdTheSame(wanted, decide.HoldingsOf(&list[i])) {
				return id.String(), nil
			}
		}
		return "", nil
	}
}
