#!/bin/sh
# Kubernetes 1.37.2. One manager applies the environment variables A, C, B in this order, another one X, and then X before A. X, A, C, B would be as both want
# it. The guess: that is the outcome, or at least the first manager's order stays, since $(A) in C needs it. A goes behind both: C, B, X, A.
# The first manager's next apply, which is the same as before, changes the object again: then the order is X, A, C, B.
. "$(dirname "$0")/lib/apiserver.sh"
# variables MANAGER NAME…: applies them, and prints the order that is there then
variables() {
	manager=$1
	shift
	apply "$manager" <<-Y
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: d}
		spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, env: [$(printf '{name: %s, value: v},' "$@")]}]}}}
	Y
	field deployment d '[.metadata.generation, .spec.template.spec.containers[0].env[].name]'
}
same 'one' "$(variables one A B)" '[1,"A","B"]'
same 'other' "$(variables other X)" '[2,"A","B","X"]'
same 'one' "$(variables one A C B)" '[3,"A","C","B","X"]'
same 'other, X before A' "$(variables other X A)" '[4,"C","B","X","A"]'
same 'one, as before' "$(variables one A C B)" '[5,"X","A","C","B"]'
same 'other, as before' "$(variables other X A)" '[5,"X","A","C","B"]'
