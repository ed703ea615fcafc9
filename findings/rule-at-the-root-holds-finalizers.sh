#!/bin/sh
# Kubernetes 1.37.2. A definition gets a rule (CEL) that an object which is already there breaks. The rule reads only `spec`, and stands in one definition
# at `spec` and in the other at the root of the schema. The guess: both let pass what doesn't touch `spec`, as validation is ratcheting.
# With the rule at the root every write is refused, of a label and of the status too, and the finalizer can't be taken away, so that
# the object can't be deleted until its spec is repaired.
. "$(dirname "$0")/lib/apiserver.sh"
# things PLURAL KIND RULE-AT-ROOT RULE-AT-SPEC
things() {
	apply definer <<-Y
		apiVersion: apiextensions.k8s.io/v1
		kind: CustomResourceDefinition
		metadata: {name: $1.finding.example.com}
		spec:
		  {group: finding.example.com, scope: Namespaced, names: {kind: $2, plural: $1}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
		  schema: {openAPIV3Schema: {type: object, $3 properties: {spec: {type: object, $4 properties: {a: {type: integer}}}, status: {type: object, properties: {s: {type: string}}}}}}}]}
	Y
	kubectl wait --for=condition=established "crd/$1.finding.example.com" >/dev/null
	eventually kubectl get "$1.finding.example.com"
}
things roots Root '' ''
things specs Spec '' ''
for kind in Root Spec; do echo "{apiVersion: finding.example.com/v1, kind: $kind, metadata: {name: o, finalizers: [finding.example.com/f]}, spec: {a: 1}}" | eventually apply m; done
things roots Root "x-kubernetes-validations: [{rule: 'self.spec.a > 5'}]," ''
things specs Spec '' "x-kubernetes-validations: [{rule: 'self.a > 5'}],"
refused() { ! kubectl create --dry-run=server -f - <<-Y
	{apiVersion: finding.example.com/v1, kind: $1, metadata: {name: new}, spec: {a: 1}}
	Y
}
eventually refused Root
eventually refused Spec
done_or_not() { "$@" >/dev/null 2>&1 && echo done || echo refused; }
for kind in root spec; do
	same "rule at the $kind: label" "$(done_or_not kubectl label $kind o l=v)" "$([ $kind = spec ] && echo done || echo refused)"
	same "rule at the $kind: status" "$(done_or_not kubectl patch $kind o --subresource status --type merge -p '{"status":{"s":"t"}}')" "$([ $kind = spec ] && echo done || echo refused)"
	kubectl delete $kind o --wait=false >/dev/null
	same "rule at the $kind: end of the finalizer" "$(done_or_not kubectl patch $kind o --type merge -p '{"metadata":{"finalizers":null}}')" "$([ $kind = spec ] && echo done || echo refused)"
	same "rule at the $kind: objects left" "$(kubectl get $kind -o json | jq '.items | length')" "$([ $kind = spec ] && echo 0 || echo 1)"
done
