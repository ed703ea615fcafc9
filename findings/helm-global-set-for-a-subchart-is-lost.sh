#!/bin/sh
# Helm 3.22.0 and 4.3.1. A chart has a default for a global value, and the user sets another one for one subchart. The guess: the user's word counts
# there, as it does for every other value of the subchart. The chart's default wins, without a warning; where the chart has
# no such default the user's value counts.
. "$(dirname "$0")/lib/helm.sh"
printf '%s\n' 'global: {{ toJson .Values.global }}' 'port: {{ .Values.port }}' >p/charts/s/templates/a.yaml
printf '%s\n' 'global: {registry: chart}' 's: {port: 80}' >p/values.yaml
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm" --set s.global.registry=user,s.global.tier=user,s.port=8080)" 'global: {"registry":"chart","tier":"user"} port: 8080'
done
