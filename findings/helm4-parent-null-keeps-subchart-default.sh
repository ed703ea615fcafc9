#!/bin/sh
# Helm 3.22.0 and 4.3.1. The values.yaml of a chart sets a value of its subchart to null, which is how charts remove a subchart's default.
# The guess: it is removed by both. Helm 3 removes it; in Helm 4 the default stays, because nulls in a chart's own values.yaml are
# dropped before the subchart's defaults are added. The same null in the user's values removes it in both.
. "$(dirname "$0")/lib/helm.sh"
echo 'a: from the subchart' >p/charts/s/values.yaml
echo 'a: {{ .Values.a }}' >p/charts/s/templates/a.yaml
echo 's: {a: null}' >p/values.yaml
same 'Helm 3, null in the chart' "$(rendered helm3)" 'a:'
same 'Helm 4, null in the chart' "$(rendered helm4)" 'a: from the subchart'
echo '{}' >p/values.yaml
same 'Helm 3, null of the user' "$(rendered helm3 --set s.a=null)" 'a:'
same 'Helm 4, null of the user' "$(rendered helm4 --set s.a=null)" 'a:'
