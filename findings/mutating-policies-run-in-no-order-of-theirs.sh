#!/bin/sh
# Kubernetes 1.37.2. Eight MutatingAdmissionPolicies each append their letter to an annotation. The guess: they run by name, as webhook configurations
# do. They run in another order, which stays the same from one request to the next and may be another one after any policy has changed.
. "$(dirname "$0")/lib/apiserver.sh"
for letter in h g f e d c b a; do
	apply m <<-Y
		apiVersion: admissionregistration.k8s.io/v1
		kind: MutatingAdmissionPolicy
		metadata: {name: $letter.example.com}
		spec:
		  reinvocationPolicy: Never
		  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
		  mutations:
		  - patchType: JSONPatch
		    jsonPatch: {expression: '[JSONPatch{op: "replace", path: "/data/letters", value: object.data.letters + "$letter"}]'}
		---
		apiVersion: admissionregistration.k8s.io/v1
		kind: MutatingAdmissionPolicyBinding
		metadata: {name: $letter.example.com}
		spec: {policyName: $letter.example.com}
	Y
done
made() { kubectl create configmap "c$1" --from-literal letters= -o json | jq -r '.data.letters'; }
n=0
while [ "$(made $n | wc -c)" -ne 9 ] && [ $n -lt 60 ]; do n=$((n + 1)); sleep 1; done # until all of them work
sleep 2
first=$(made first)
same 'letters' "$(echo "$first" | fold -w 1 | sort | paste -s -d ' ')" 'a b c d e f g h'
same 'the same the next time' "$([ "$(made second)" = "$first" ] && echo yes || echo no)" yes
same 'by name' "$([ "$first" = abcdefgh ] && echo yes || echo no)" no
