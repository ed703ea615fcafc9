#!/bin/sh
# Kubernetes 1.37.2. A Deployment states the permissions of an emptyDir (mode), a field whose feature gate is off unless the cluster switches it on.
# The guess: an error, a warning, or at least that nothing remains of it. The API server drops the value without a word, even
# with strict validation, and records the applier as its owner: managedFields name a field that the object doesn't have.
. "$(dirname "$0")/lib/apiserver.sh"
said=$(kubectl apply --server-side --field-manager m --validate=strict -f - 2>&1 <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {mode: 448, medium: Memory}}]}}
Y
)
same 'kubectl says' "$said" 'deployment.apps/d serverside-applied'
same 'emptyDir' "$(field deployment d '.spec.template.spec.volumes[0].emptyDir')" '{"medium":"Memory"}'
same 'owned' "$(owned deployment d | jq -c '.m["f:spec"]["f:template"]["f:spec"]["f:volumes"][]["f:emptyDir"]')" '{"f:medium":{},"f:mode":{}}'
