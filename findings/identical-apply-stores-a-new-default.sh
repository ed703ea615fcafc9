#!/bin/sh
# Kubernetes 1.37.2. A definition gets a field with a default after an object was made. Reading the object shows the default at once. The same apply
# is made again. The guess: it changes nothing, as the object that is read is the one that would be written. It writes, once, though no
# manager, no field and no generation differ from what was read before.
. "$(dirname "$0")/lib/apiserver.sh"
again() { echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: t}, spec: {a: x}}' | apply m; }
definition Thing 'v1={type: object, properties: {a: {type: string}}}'
again
definition Thing 'v1={type: object, properties: {a: {type: string}, d: {type: string, default: later}}}'
before=$(field thing t '[.spec, .metadata.generation, .metadata.managedFields[].fieldsV1]') first=$(field thing t .metadata.resourceVersion)
same 'read before' "$before" '[{"a":"x","d":"later"},1,{"f:spec":{"f:a":{}}}]'
again
second=$(field thing t .metadata.resourceVersion)
again
same 'read after' "$(field thing t '[.spec, .metadata.generation, .metadata.managedFields[].fieldsV1]')" "$before"
same 'written by the first and the second repetition' "$([ "$first" = "$second" ] && echo no || echo yes), $([ "$(field thing t .metadata.resourceVersion)" = "$second" ] && echo no || echo yes)" 'yes, no'
