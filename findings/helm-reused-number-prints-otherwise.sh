#!/bin/sh
# Helm 3.22.0 and 4.3.1 on Kubernetes 1.37.2. A release is installed with `--set number=1000000` and upgraded with --reuse-values, with the same chart.
# The guess: nothing changes. `{{ .Values.number }}` was 1000000 and is 1e+06: the value was an integer on the command line, and comes back
# from the record of the release as a float, as it does with --reset-then-reuse-values.
lib=$(cd "$(dirname "$0")/lib" && pwd)
. "$lib/apiserver.sh"
. "$lib/helm.sh"
printf '%s\n' 'apiVersion: v1' 'kind: ConfigMap' 'metadata: {name: "{{ .Release.Name }}"}' 'data: {kind: "{{ kindOf .Values.number }}", number: "{{ .Values.number }}"}' >p/templates/a.yaml
for helm in helm3 helm4; do
	for reuse in reuse reset-then-reuse; do
		"$helm" install $helm-$reuse p --set number=1000000 >/dev/null
		same "$helm, installed" "$(field configmap $helm-$reuse .data)" '{"kind":"int64","number":"1000000"}'
		"$helm" upgrade $helm-$reuse p --$reuse-values >/dev/null
		same "$helm, upgraded with --$reuse-values" "$(field configmap $helm-$reuse .data)" '{"kind":"float64","number":"1e+06"}'
	done
done
