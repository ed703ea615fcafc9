#!/bin/sh
# Helm 3.22.0 and 4.3.1 on Kubernetes 1.37.2. An object of a chart becomes a pre-upgrade hook. The guess: the upgrade makes it anew as the hook, and it is
# there for what needs it. The upgrade makes it, and then deletes it as an object that the chart no longer has, and ends as deployed. The
# next upgrade of the same chart makes it again and leaves it.
lib=$(cd "$(dirname "$0")/lib" && pwd)
. "$lib/apiserver.sh"
. "$lib/helm.sh"
map() { printf '%s\n' 'apiVersion: v1' 'kind: ConfigMap' "metadata: {name: \"{{ .Release.Name }}\"$1}" >p/templates/a.yaml; }
there() { kubectl get configmap "$1" >/dev/null 2>&1 && echo there || echo gone; }
for helm in helm3 helm4; do
	map '' && "$helm" install $helm p >/dev/null
	map ', annotations: {helm.sh/hook: pre-upgrade}'
	same "$helm, first upgrade" "$("$helm" upgrade $helm p | grep STATUS), $(there $helm)" 'STATUS: deployed, gone'
	same "$helm, second upgrade" "$("$helm" upgrade $helm p | grep STATUS), $(there $helm)" 'STATUS: deployed, there'
done
