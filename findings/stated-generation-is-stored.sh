#!/bin/sh
# Kubernetes 1.37.2. A ConfigMap is applied with metadata.generation, metadata.creationTimestamp and metadata.selfLink in its manifest, as they stand in
# what was copied from a cluster. The guess: the server's own fields are ignored. Generation is stored as stated in kinds that don't count it,
# in a Deployment it isn't; nobody owns it, so that no apply without it removes it. Time and link are ignored.
. "$(dirname "$0")/lib/apiserver.sh"
stated='generation: 7, creationTimestamp: "2020-01-01T00:00:00Z", selfLink: /x'
echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, $stated}, data: {a: b}}" | apply m
echo "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, $stated}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}" | apply m
same 'ConfigMap' "$(field configmap c '[.metadata.generation, .metadata.selfLink, (.metadata.creationTimestamp | startswith("2020"))]')" '[7,null,false]'
same 'Deployment' "$(field deployment d '[.metadata.generation, .metadata.selfLink, (.metadata.creationTimestamp | startswith("2020"))]')" '[1,null,false]'
same 'owned' "$(owned configmap c)" '{"m":{"f:data":{"f:a":{}}}}'
echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}' | apply m
same 'after an apply without it' "$(field configmap c .metadata.generation)" 7
