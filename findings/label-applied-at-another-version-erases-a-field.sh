#!/bin/sh
# Kubernetes 1.37.2. A definition with two versions and no conversion; the stored one has a field that the other lacks. A manager applies the
# object at the stored version, another one applies a label at the other version. The guess: an apply touches what it states, and if it
# could lose another's field it would be a conflict. The field is erased without a word, and its owner stays on record as
# owning it.
. "$(dirname "$0")/lib/apiserver.sh"
definition Thing 'v1={type: object, properties: {a: {type: string}, b: {type: string}}}' 'v2={type: object, properties: {a: {type: string}}}'
echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: t}, spec: {a: x, b: x}}' | apply one
same 'before' "$(field things.v1.finding.example.com t .spec)" '{"a":"x","b":"x"}'
echo '{apiVersion: finding.example.com/v2, kind: Thing, metadata: {name: t, labels: {l: v}}}' | apply other
same 'after' "$(field things.v1.finding.example.com t .spec)" '{"a":"x"}'
same 'owned' "$(owned things.v1.finding.example.com t)" '{"one":{"f:spec":{"f:a":{},"f:b":{}}},"other":{"f:metadata":{"f:labels":{"f:l":{}}}}}'
