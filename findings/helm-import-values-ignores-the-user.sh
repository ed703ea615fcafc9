#!/bin/sh
# Helm 3.22.0 and 4.3.1. A chart imports a value of its subchart (import-values), and the user sets that value for the subchart. The guess:
# parent and subchart see the same, what the user has said. The subchart has the user's value and the parent the subchart's default, so
# that one release has two values of one setting.
. "$(dirname "$0")/lib/helm.sh"
echo '{apiVersion: v2, name: p, version: 1.0.0, dependencies: [{name: s, version: 1.0.0, repository: "", import-values: [{child: port, parent: port}]}]}' >p/Chart.yaml
echo 'port: {number: 80}' >p/charts/s/values.yaml
echo 'sub: {{ .Values.port.number }}' >p/charts/s/templates/a.yaml
echo 'parent: {{ .Values.port.number }}' >p/templates/a.yaml
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm" --set s.port.number=8080 | tr ' ' '\n' | paste -s -d ' ')" 'sub: 8080 parent: 80'
done
