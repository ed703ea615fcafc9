#!/bin/sh
# Helm 3.22.0 and 4.3.1. A chart's values have a key n, and a user sets n as well. The guess: they are the same value. The key in values.yaml is read as the boolean
# of YAML 1.1 and named false (y and on are named true, one on top of the other), and --set makes a second key n: the template
# that reads .Values.n sees nothing until the user sets it, and who sets it doesn't replace the default.
. "$(dirname "$0")/lib/helm.sh"
rm -r p/charts
printf 'n: 3\ny: 4\n' >p/values.yaml
echo "values: {{ .Values | toJson }}" >p/templates/t.yaml
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm")" 'values: {"false":3,"true":4}'
	same "$helm --set n=5" "$(rendered "$helm" --set n=5)" 'values: {"false":3,"n":5,"true":4}'
done
