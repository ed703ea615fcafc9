#!/bin/sh
# Helm 3.22.0 and 4.3.1 on Kubernetes 1.37.2. A chart drops a key from the stringData of a Secret. The guess: the upgrade removes the key, as it does
# with data. It stays, in both, and nobody owns it: the API server moves stringData into data when it is written, so Helm 3's patch
# removes what isn't there, and Helm 4's apply gives up a field that the Secret doesn't have.
lib=$(cd "$(dirname "$0")/lib" && pwd)
. "$lib/apiserver.sh"
. "$lib/helm.sh"
secret() { printf '%s\n' 'apiVersion: v1' 'kind: Secret' 'metadata: {name: "{{ .Release.Name }}"}' "$1" >p/templates/secret.yaml; }
# after HELM RELEASE BEFORE AFTER: the keys of the Secret
after() {
	secret "$3" && "$1" install "$2" p >/dev/null
	secret "$4" && "$1" upgrade "$2" p >/dev/null
	field secret "$2" '.data | keys'
}
for helm in helm3 helm4; do
	same "$helm, data" "$(after $helm $helm-data 'data: {a: QQ==, b: Qg==}' 'data: {a: QQ==}')" '["a"]'
	same "$helm, stringData" "$(after $helm $helm-string-data 'stringData: {a: A, b: B}' 'stringData: {a: A}')" '["a","b"]'
done
same 'owned' "$(field secret helm4-string-data '[.metadata.managedFields[].fieldsV1 | keys - ["f:metadata"] | .[]] + [.metadata.managedFields[].fieldsV1."f:stringData"]')" '["f:stringData",{"f:a":{}}]'
