#!/bin/sh
# Kubernetes 1.37.2. Two managers apply one and the same manifest, one after the other. The guess: they share the fields, as the documentation has it for equal
# values. The second one gets a conflict where what is stored isn't what was written: a quantity in another spelling than the
# canonical one, an atomic list whose items get defaults, and what the server moves elsewhere. The first one may repeat its apply.
. "$(dirname "$0")/lib/apiserver.sh"
workload='selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i'
# second MANIFEST: the fields that the second manager's apply conflicts on
second() {
	echo "$1" | apply one
	echo "$1" | apply one
	echo "$1" | apply two 2>&1 | grep -oE '(- |": )\.[].a-zA-Z"=[]+' | sed 's/^[-":]* //' | paste -s -d ' '
}
deployment() { echo "{apiVersion: apps/v1, kind: Deployment, metadata: {name: $1}, spec: {replicas: 0, $workload, resources: {limits: {cpu: \"$2\"}}}]}}}}"; }
same 'cpu: 1' "$(second "$(deployment canonical 1)")" ''
same 'cpu: 1000m' "$(second "$(deployment milli 1000m)")" '.spec.template.spec.containers[name="c"].resources.limits.cpu'
policy() { echo "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: $1}, spec: {podSelector: {}, ingress: [{ports: [{port: 80$2}]}]}}"; }
same 'port with a protocol' "$(second "$(policy full ', protocol: TCP')")" ''
same 'port without one' "$(second "$(policy short '')")" .spec.ingress
same 'claim templates' "$(second "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 0, serviceName: s, $workload}]}}, volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}")" .spec.volumeClaimTemplates
same 'stringData' "$(second '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: text}}')" .stringData.k
