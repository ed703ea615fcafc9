#!/bin/sh
# Helm 3.22.0 and 4.3.1. The function merge gives precedence to its first argument. The guess: what the first one has stays, whatever it is. What is false,
# 0, an empty text, an empty list or null in it counts as missing and is taken from the second; mergeOverwrite, the other way round,
# overwrites with all of them.
. "$(dirname "$0")/lib/helm.sh"
rm -r p/charts
empty='(dict "b" false "n" 0 "s" "" "l" list "z" nil)' full='(dict "b" true "n" 5 "s" "t" "l" (list 1) "z" 1)'
echo "merge: {{ merge $empty $full | toJson }}" >p/templates/b.yaml
echo "overwrite: {{ mergeOverwrite $full $empty | toJson }}" >p/templates/c.yaml
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm")" 'merge: {"b":true,"l":[1],"n":5,"s":"t","z":1} overwrite: {"b":false,"l":[],"n":0,"s":"","z":null}'
done
