#!/bin/sh
# Helm 3.22.0 and 4.3.1. One template sets a value for the others (set .Values), and is called 00-first.yaml so that it is rendered first. The
# guess: by name, as everywhere. Templates are rendered from the last name to the first: only those see the value whose names come
# before it.
. "$(dirname "$0")/lib/helm.sh"
rm -r p/charts
echo '{{ $_ := set .Values "x" "set" }}' >p/templates/05-setter.yaml
for name in 00-before 10-after; do
	echo "'$name': '{{ .Values.x }}'" >"p/templates/$name.yaml"
done
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm")" "'00-before': 'set' '10-after': ''"
done
