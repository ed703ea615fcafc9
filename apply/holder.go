package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		client, err := p.a.cluster.Dynamic()
		if err != nil {
			return "", err
		}
		list, err := client.Resource(t.mapping.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", ctx.Err()
		}
		for i := range list.Items {
			id := kube.IDOf(&list.Items[i])
			if _, shared := decide.SharedHolding(decide.HoldingsOf(t.obj, nil), decide.HoldingsOf(&list.Items[i], nil)); shared && id != t.id {
				return id.String(), nil
			}
		}
		return "", nil
	}
}
