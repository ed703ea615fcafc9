#!/bin/sh
# Helm 3.22.0 and 4.3.1. A chart has a schema that allows exactly the values it has ("additionalProperties": false). It is linted and installed
# without complaint. The guess: it also works as a dependency. There it refuses its own defaults, because Helm adds a value to each
# subchart that nobody has stated: global.
. "$(dirname "$0")/lib/helm.sh"
echo 'a: 1' >p/charts/s/values.yaml
echo 'a: {{ .Values.a }}' >p/charts/s/templates/a.yaml
echo '{"type": "object", "additionalProperties": false, "properties": {"a": {}}}' >p/charts/s/values.schema.json
for helm in helm3 helm4; do
	same "$helm, alone" "$("$helm" template r p/charts/s | sed -n 's/^a/a/p')" 'a: 1'
	same "$helm, as a dependency" "$(rendered "$helm" | grep -o "additional properties 'global' not allowed")" "additional properties 'global' not allowed"
done
