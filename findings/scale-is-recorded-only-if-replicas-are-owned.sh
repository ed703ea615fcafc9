#!/bin/sh
# Kubernetes 1.37.2. Two Deployments are scaled by `kubectl scale`: one whose manifest has replicas, and one that leaves them to the default. The guess:
# both name kubectl, of the subresource scale, as the manager of replicas. Only the first does: where nobody owned replicas
# before, nobody owns them after, and nothing on the object tells that it was scaled.
. "$(dirname "$0")/lib/apiserver.sh"
for replicas in '' 'replicas: 1,'; do
	apply m <<-Y
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: d}
		spec: {$replicas selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
	Y
	kubectl scale deployment d --replicas 3 >/dev/null
	owners=$(field deployment d '[.spec.replicas, (.metadata.managedFields[] | select(.fieldsV1["f:spec"] | has("f:replicas")) | .manager, .operation, .subresource)]')
	same "scaled, '$replicas' in the manifest" "$owners" "$(if [ "$replicas" ]; then echo '[3,"kubectl","Update","scale"]'; else echo '[3]'; fi)"
	kubectl delete deployment d >/dev/null
done
