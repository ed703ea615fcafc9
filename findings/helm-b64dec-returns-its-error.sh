#!/bin/sh
# Helm 3.22.0 and 4.3.1. A template decodes a text that is no base64 (it was given as plain text). The guess: the rendering fails. The error is the result: the
# password is then "illegal base64 data at input byte 2", in a Secret that is as good as any other.
. "$(dirname "$0")/lib/helm.sh"
echo 'password: my-password' >p/values.yaml
printf '%s\n' 'apiVersion: v1' 'kind: Secret' 'metadata: {name: s}' 'stringData: {password: "{{ b64dec .Values.password }}"}' >p/templates/a.yaml
for helm in helm3 helm4; do
	same "$helm" "$(rendered "$helm" | grep -o 'stringData.*')" 'stringData: {password: "illegal base64 data at input byte 2"}'
done
