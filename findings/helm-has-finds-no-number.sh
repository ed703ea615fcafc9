#!/bin/sh
# Helm 3.22.0 and 4.3.1. A template asks whether 80 is in a list of the values that has it: `has 80 .Values.ports`. The guess: true. It is false, without an error,
# as the list's 80 is a float64, or an int64 with --set, and a template's an int; `without` takes nothing out either. With a conversion
# of the right kind it is true, for one of the two ways to set the value.
. "$(dirname "$0")/lib/helm.sh"
echo 'ports: [80]' >p/values.yaml
printf '%s\n' 'has: {{ has 80 .Values.ports }}' 'without: {{ without .Values.ports 80 | toJson }}' 'float64: {{ has (float64 80) .Values.ports }}' 'int64: {{ has (int64 80) .Values.ports }}' >p/templates/a.yaml
for helm in helm3 helm4; do
	same "$helm, values.yaml" "$(rendered "$helm")" 'has: false without: [80] float64: true int64: false'
	same "$helm, --set" "$(rendered "$helm" --set 'ports={80}')" 'has: false without: [80] float64: false int64: true'
done
