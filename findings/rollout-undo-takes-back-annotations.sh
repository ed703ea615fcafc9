#!/bin/sh
# Kubernetes 1.37.2. A Deployment gets another image, another value of an annotation of its own, and a new annotation. `kubectl rollout undo` is to take back the
# image. The guess: it changes the pod template only. It also takes back the Deployment's own annotations to what they were when the
# old ReplicaSet was the new one: the new annotation is gone, and kubectl owns the old one instead of who applied them.
CONTROLLERS=deployment-controller,replicaset-controller
. "$(dirname "$0")/lib/apiserver.sh"
deployment() {
	apply m <<-Y
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: d, annotations: {$1}}
		spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: $2}]}}}
	Y
	eventually revision "$3"
}
revision() { [ "$(field deployment d '[.metadata.annotations["deployment.kubernetes.io/revision"], .status.observedGeneration == .metadata.generation]')" = "[\"$1\",true]" ] && kubectl get replicaset -o json | jq -e ".items[] | select(.metadata.annotations[\"deployment.kubernetes.io/revision\"] == \"$1\")"; }
deployment 'changed: before' one 1
deployment 'changed: after, new: here' two 2
kubectl rollout undo deployment d >/dev/null
same 'image' "$(field deployment d '.spec.template.spec.containers[0].image')" '"one"'
same 'annotations' "$(field deployment d '.metadata.annotations | del(.["deployment.kubernetes.io/revision"])')" '{"changed":"before"}'
same 'their owner' "$(field deployment d '[.metadata.managedFields[] | select(.fieldsV1["f:metadata"]["f:annotations"] | has("f:changed")?) | .manager, .operation]')" '["kubectl","Update"]'
