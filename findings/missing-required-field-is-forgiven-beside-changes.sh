#!/bin/sh
# Kubernetes 1.37.2. A definition comes to require a field in a structure, and to limit the length of another, after an object was made. What is
# wrong already may stay while it isn't touched (ratcheting). The guess: it is judged by structure, so a change inside the structure that
# lacks the field is refused, like a change of the text that is too long. Only the latter is: the structure may be changed in
# every other way, without the field that it requires.
. "$(dirname "$0")/lib/apiserver.sh"
definition Thing 'v1={type: object, properties: {s: {type: object, properties: {must: {type: string}, text: {type: string}, more: {type: string}}}}}'
echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: t}, spec: {s: {text: too long}}}' | apply m
definition Thing 'v1={type: object, properties: {s: {type: object, required: [must], properties: {must: {type: string}, text: {type: string, maxLength: 3}, more: {type: string}}}}}'
patch() { kubectl patch thing t --type merge -p "{\"spec\":{\"s\":$1}}" >/dev/null 2>&1 && echo allowed || echo refused; }
same 'another field added' "$(patch '{"more":"x"}')" allowed
same 'the text changed, still too long' "$(patch '{"text":"still too long"}')" refused
same 'the text removed' "$(patch '{"text":null}')" allowed
same 'a new object without the field' "$(echo '{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: new}, spec: {s: {more: x}}}' | kubectl create -f - >/dev/null 2>&1 && echo allowed || echo refused)" refused
