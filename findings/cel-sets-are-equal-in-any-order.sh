#!/bin/sh
# Kubernetes 1.37.2. A rule of a definition compares a list with a literal list: self == ['a', 'b']. The guess: lists are equal if their elements
# are, one after the other. So it is for an ordinary list. If the list is declared a set, the same rule holds in any order, because
# equality goes by what the schema says of one side.
. "$(dirname "$0")/lib/apiserver.sh"
list='type: array, maxItems: 5, items: {type: string, maxLength: 9}, x-kubernetes-validations: [{rule: "self == ['"'a', 'b'"']"}]'
definition Thing "v1={type: object, properties: {plain: {$list}, set: {$list, x-kubernetes-list-type: set}}}"
made() { echo "{apiVersion: finding.example.com/v1, kind: Thing, metadata: {name: $1}, spec: {$2}}" | kubectl create -f - >/dev/null 2>&1 && echo allowed || echo refused; }
same 'plain list, in order' "$(made one 'plain: [a, b]')" allowed
same 'plain list, other order' "$(made two 'plain: [b, a]')" refused
same 'set, other order' "$(made three 'set: [b, a]')" allowed
same 'set, one more' "$(made four 'set: [b, a, c]')" refused
