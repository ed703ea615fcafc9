#!/bin/sh
# Helm 3.22.0 and 4.3.1. A subchart has a condition, s.enabled, whose value is the text "false" (--set-string, or a quoted value), the number 0, or null.
# The guess: what isn't true doesn't enable, or it is an error. Only the boolean false disables; with everything else Helm warns and
# the subchart is installed.
. "$(dirname "$0")/lib/helm.sh"
echo '{apiVersion: v2, name: p, version: 1.0.0, dependencies: [{name: s, version: 1.0.0, repository: "", condition: s.enabled}]}' >p/Chart.yaml
echo 'sub: here' >p/charts/s/templates/a.yaml
for helm in helm3 helm4; do
	same "$helm, false" "$(rendered "$helm" --set s.enabled=false)" ''
	for value in '--set-string s.enabled=false' '--set s.enabled=0' '--set s.enabled=null'; do
		# shellcheck disable=SC2086 # two words
		same "$helm, $value" "$(rendered "$helm" $value | grep -o 'non-bool value\|sub: here' | paste -s -d ';')" 'non-bool value;sub: here'
	done
done
