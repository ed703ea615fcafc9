#!/bin/sh
# Helm 3.22.0 and 4.3.1 on Kubernetes 1.37.2. A chart asks `.Capabilities.APIVersions.Has "apps/v1/Deployment"`, as the documentation has it. The guess: true, as the
# default capabilities have apps/v1. `helm template` says false for each kind, `helm install` true, so that what is reviewed, or applied
# by a tool that renders with `helm template`, isn't what Helm would install. Against a cluster (--dry-run=server) only Helm 4 says true.
lib=$(cd "$(dirname "$0")/lib" && pwd)
. "$lib/apiserver.sh"
. "$lib/helm.sh"
printf '%s\n' 'apiVersion: v1' 'kind: ConfigMap' 'metadata: {name: "{{ .Release.Name }}"}' 'data: {version: "{{ .Capabilities.APIVersions.Has "apps/v1" }}", kind: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"}' >p/templates/a.yaml
has() { grep -o '{version.*'; }
for helm in helm3 helm4; do
	same "$helm template" "$("$helm" template $helm p | has)" '{version: "true", kind: "false"}'
	same "$helm template --dry-run=server" "$("$helm" template $helm p --dry-run=server | has)" "{version: \"true\", kind: \"$([ $helm = helm4 ] && echo true || echo false)\"}"
	"$helm" install $helm p >/dev/null
	same "$helm install" "$(field configmap $helm .data)" '{"kind":"true","version":"true"}'
done
