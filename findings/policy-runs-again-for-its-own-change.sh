#!/bin/sh
# Kubernetes 1.37.2. The only MutatingAdmissionPolicy of a cluster appends a letter and has the reinvocation policy IfNeeded. The guess: it runs once, as
# reinvocation is for what others changed after it. Its own change counts too, so it runs twice in each request; and because its result is
# stored, an apply that states the same each time makes the object grow by two letters each time.
. "$(dirname "$0")/lib/apiserver.sh"
apply m <<'Y'
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: appends.example.com}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  matchConditions: [{name: ours, expression: '"letters" in object.data'}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{data: {"letters": object.data.letters + "x"}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: appends.example.com}
spec: {policyName: appends.example.com}
Y
n=0
while [ "$(kubectl create configmap "c$n" --from-literal letters= -o json | jq -r .data.letters)" = '' ] && [ $n -lt 60 ]; do n=$((n + 1)); sleep 1; done
sleep 1
kubectl create configmap c --from-literal letters= >/dev/null
same 'letters after one request' "$(field configmap c .data.letters)" '"xx"'
for _ in 1 2; do
	echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b}}}' | apply m
done
same 'letters after two applies of one label' "$(field configmap c .data.letters)" '"xxxxxx"'
