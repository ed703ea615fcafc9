#!/bin/sh
# Kubernetes 1.37.2. A custom resource has a field in version v2 that the storage version v1 lacks. The same apply is made four times. The
# guess: from the second on it changes nothing, as server-side apply of an identical object does. Each one writes: the field is lost when
# the object is stored, so the next apply sees a change again, and even metadata.generation goes up.
. "$(dirname "$0")/lib/apiserver.sh"
definition Thing 'v1={type: object, properties: {a: {type: string}}}' 'v2={type: object, properties: {a: {type: string}, b: {type: string}}}'
versions=
for _ in 1 2 3 4; do
	echo '{apiVersion: finding.example.com/v2, kind: Thing, metadata: {name: t}, spec: {a: x, b: y1}}' | apply m
	versions="$versions $(field thing t .metadata.resourceVersion)"
done
same 'different resource versions' "$(printf '%s\n' $versions | sort -u | wc -l | tr -d ' ')" 4
same 'generation' "$(field thing t .metadata.generation)" 4
same 'spec at v2' "$(field things.v2.finding.example.com t .spec)" '{"a":"x"}'
same 'owned' "$(owned things.v2.finding.example.com t)" '{"m":{"f:spec":{"f:a":{},"f:b":{}}}}'
