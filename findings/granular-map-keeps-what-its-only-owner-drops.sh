#!/bin/sh
# Kubernetes 1.37.2. A definition declares a map atomic, later no longer. Its only manager had applied two keys and now applies one. The guess:
# the other is removed, as it would have been before the change and would be after it. It stays, and belongs to nobody: the
# record says that the manager owns the map as a whole, and from that no key of it follows any more.
. "$(dirname "$0")/lib/apiserver.sh"
definition Thing 'v1={type: object, properties: {m: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}}}'
echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: t}, spec: {m: {a: x, b: x}}}' | apply m
definition Thing 'v1={type: object, properties: {m: {type: object, additionalProperties: {type: string}}}}'
echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: t}, spec: {m: {a: x}}}' | apply m
same 'map' "$(field thing t .spec.m)" '{"a":"x","b":"x"}'
same 'owned' "$(owned thing t)" '{"m":{"f:spec":{"f:m":{"f:a":{}}}}}'
