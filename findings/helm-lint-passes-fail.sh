#!/bin/sh
# Helm 3.22.0 and 4.3.1. A chart's template calls fail, or required of a value that the chart doesn't have. The guess: helm lint reports what helm template
# and helm install refuse. It passes, also with --strict: while a chart is linted, fail and required only write a line of information.
. "$(dirname "$0")/lib/helm.sh"
rm -r p/charts
result() { "$@" >out 2>&1 && echo passes || echo fails; }
for helm in helm3 helm4; do
	for call in 'fail "no"' 'required "must" .Values.none'; do
		echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: {{ $call | quote }}}}" >p/templates/a.yaml
		same "$helm, $call" "$(result "$helm" lint p), strictly $(result "$helm" lint --strict p), rendering $(result "$helm" template p)" 'passes, strictly passes, rendering fails'
	done
done
