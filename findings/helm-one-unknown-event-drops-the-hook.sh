#!/bin/sh
# Helm 3.22.0 and 4.3.1. A hook names two events, of which Helm knows one. The guess: it runs at that one, or the chart is refused. The object is left out of the
# release altogether, neither hook nor object, and all that tells is a line of the log; the exit code is 0. So it goes with every
# event that has another spelling.
. "$(dirname "$0")/lib/helm.sh"
# objects HELM EVENTS: how many the chart has whose only object is such a hook
objects() {
	printf '%s\n' 'apiVersion: v1' 'kind: ConfigMap' "metadata: {name: c, annotations: {helm.sh/hook: '$2'}}" >p/templates/a.yaml
	"$1" template r p >out 2>err && grep -c '^kind: ' out
}
for helm in helm3 helm4; do
	same "$helm, pre-install,pre-upgrade" "$(objects "$helm" 'pre-install,pre-upgrade')" 1
	same "$helm, pre-install,pre-apply" "$(objects "$helm" 'pre-install,pre-apply' || true)" 0
	same "$helm, log" "$(grep -o 'skipping unknown hook' err)" 'skipping unknown hook'
done
