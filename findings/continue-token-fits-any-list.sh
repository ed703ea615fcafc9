#!/bin/sh
# Kubernetes 1.37.2. A list of two pages by label. Its continue token is given with another selector, and in another namespace. The guess: the server refuses
# it, as it says where one certain list goes on. It goes on behind the same name in whatever is asked now, without an error: the rest
# of a list whose beginning nobody has seen.
. "$(dirname "$0")/lib/apiserver.sh"
kubectl create namespace other >/dev/null
for name in a b c d e f; do
	for namespace in default other; do
		echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: $name, labels: {odd: \"$(echo $name | grep -q '[ace]' && echo yes || echo no)\"}}}" | kubectl create -n $namespace -f - >/dev/null
	done
done
# page NAMESPACE QUERY: what of the list is asked
page() { kubectl get --raw "/api/v1/namespaces/$1/configmaps?$2"; }
names() { jq -c '[.items[].metadata.name] - ["kube-root-ca.crt"]'; }
token=$(page default 'labelSelector=odd%3Dyes&limit=1' | jq -r .metadata.continue)
same 'the list that goes on' "$(page default "labelSelector=odd%3Dyes&continue=$token" | names)" '["c","e"]'
same 'with another selector' "$(page default "labelSelector=odd%3Dno&continue=$token" | names)" '["b","d","f"]'
same 'in another namespace, without a selector' "$(page other "continue=$token" | names)" '["b","c","d","e","f"]'
