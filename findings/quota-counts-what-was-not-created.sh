#!/bin/sh
# Kubernetes 1.37.2. A ConfigMap that exists is created again and again in a namespace whose quota has room for two more. The guess: each attempt fails as
# AlreadyExists and uses nothing. Each attempt is charged to the quota, until it is full of what was never created, and from then on
# the error is Forbidden, so that who creates and updates if the object is there gives up.
CONTROLLERS=resourcequota-controller
. "$(dirname "$0")/lib/apiserver.sh"
kubectl create configmap c >/dev/null
kubectl create quota q --hard count/configmaps=3 >/dev/null
used() { field quota q .status.used; }
counted() { [ "$(used)" = '{"count/configmaps":"1"}' ]; }
eventually counted
for attempt in first second third; do
	error=$(kubectl create configmap c 2>&1 | grep -oE 'already exists|is forbidden: exceeded quota') || true
	same "$attempt attempt" "$error" "$([ $attempt = third ] && echo 'is forbidden: exceeded quota' || echo 'already exists')"
done
same 'used' "$(used)" '{"count/configmaps":"3"}'
same 'there are' "$(kubectl get configmaps -o json | jq '.items | length')" 1
