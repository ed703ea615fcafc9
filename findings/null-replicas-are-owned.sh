#!/bin/sh
# Kubernetes 1.37.2. A manifest says `replicas:` with nothing behind it, as a template without a value does. The guess: null is the same as not stated, so that
# who scales the Deployment has it for himself. The applier owns the field: another's value is a conflict, also that of `kubectl scale`,
# and an apply by force resets it to the default of 1.
. "$(dirname "$0")/lib/apiserver.sh"
deployment() { echo "{apiVersion: apps/v1, kind: Deployment, metadata: {name: $1}, spec: {$2 selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"; }
conflict() { apply "$1" 2>&1 | grep -o 'conflict with [^:]*' || echo none; }
for replicas in '' 'replicas: null,'; do
	name=$([ "$replicas" ] && echo empty || echo absent)
	deployment "$name" "$replicas" | apply m
	kubectl scale deployment "$name" --replicas 5 >/dev/null
	same "$name, conflict of the same apply after kubectl scale" "$(deployment "$name" "$replicas" | conflict m)" "$([ "$replicas" ] && echo 'conflict with "kubectl" with subresource "scale" using apps/v1' || echo none)"
	deployment "$name" "$replicas" | kubectl apply --server-side --force-conflicts --field-manager m -f - >/dev/null
	same "$name, replicas after the same apply by force" "$(field deployment "$name" .spec.replicas)" "$([ "$replicas" ] && echo 1 || echo 5)"
done
