#!/bin/sh
# Helm 3.22.0 and 4.3.1 on Kubernetes 1.37.2. A chart states no strategy of its Deployment, then `Recreate`; another one names a volume without a source, then
# gives it one. The guess: both upgrades work, as server-side apply replaces what goes by what comes. In Helm 4 they fail: the
# default that the API server had filled in (`rollingUpdate`, `emptyDir`) belongs to nobody, stays, and excludes what is stated now.
lib=$(cd "$(dirname "$0")/lib" && pwd)
. "$lib/apiserver.sh"
. "$lib/helm.sh"
deployment() { printf '%s\n' 'apiVersion: apps/v1' 'kind: Deployment' 'metadata: {name: "{{ .Release.Name }}"}' "spec: {replicas: 0, $1 selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {volumes: [{name: v$2}], containers: [{name: c, image: i}]}}}" >p/templates/a.yaml; }
for helm in helm3 helm4; do
	for change in strategy volume; do
		deployment '' '' && "$helm" install $helm-$change p >/dev/null
		[ $change = strategy ] && deployment 'strategy: {type: Recreate},' '' || deployment '' ', configMap: {name: c}'
		refusal=$(if [ $change = strategy ]; then echo 'spec.strategy.rollingUpdate: Forbidden'; else echo 'spec.template.spec.volumes[0].configMap: Forbidden'; fi)
		same "$helm, $change" "$("$helm" upgrade $helm-$change p 2>&1 | grep -oE 'STATUS: deployed|spec[^ :]*: Forbidden' | uniq)" "$([ $helm = helm3 ] && echo 'STATUS: deployed' || echo "$refusal")"
	done
done
