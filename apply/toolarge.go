package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/apply/verify"
)

// What an object's fields are and who owns them is stored with it. Where both
// together are too large, the API server stores the object without the owners,
// for POST and PUT, but not for apply. Such an object is written whole.
// k8s.io/apiserver/pkg/endpoints/handlers, isTooLargeError; kubernetes#87508

const tooLargeForOwners = "too large to store managed fields: replaced as a whole, without checking for conflicts with other managers"

// storedAlone is the size from which on an object without owners is taken for
// one that was stored without them because of its size. etcd takes requests of
// 1.5 MiB unless it is told otherwise, and owners take less than the fields.
// https://etcd.io/docs/latest/dev-guide/limit/
const storedAlone = 512 << 10

// storedWithoutOwners says whether a live object was stored without the owners of its
// fields because of its size.
func storedWithoutOwners(live *unstructured.Unstructured) bool {
	if len(live.GetManagedFields()) > 0 {
		return false
	}
	data, err := json.Marshal(live.Object)
	return err == nil && len(data) >= storedAlone
}

// writeLarge writes an object whole after an apply of it was refused for its size.
// predicted is what the dry run of the apply came to.
func (a *Applier) writeLarge(ctx context.Context, c Change, w write, predicted *unstructured.Unstructured, refusal error) (Change, error) {
	t := c.execution.t
	var err error
	switch {
	case w.verb == createObject:
		c.Result, err = a.post(ctx, t, c.Desired, asWrite)
	case predicted == nil || c.Live == nil:
		return c, refusal // nobody knows what it would come to
	default:
		body := shallowCopy(predicted)
		unstructured.RemoveNestedField(body.Object, "metadata", "managedFields")
		body.SetUID(w.precondition.uid)
		if body.SetResourceVersion(c.Live.GetResourceVersion()); w.precondition.resourceVersion != "" {
			body.SetResourceVersion(w.precondition.resourceVersion)
		}
		c.Result, err = a.put(ctx, t, body, asWrite)
	}
	if verify.TooLarge(err) {
		err = refusal
	}
	c.Warning = tooLargeForOwners
	return c, err
}
