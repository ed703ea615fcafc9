#!/bin/sh
# Kubernetes 1.37.2. Two Services are created by a server-side dry run, then one of them for good. The guess: a dry run shows an address and a port that
# are free at that moment. It always shows the first address of the range, which no Service ever gets, and ports that lie behind
# the end of theirs (30000-32767), the same for each Service.
. "$(dirname "$0")/lib/apiserver.sh"
create() { kubectl create service loadbalancer "$@" -o json | jq -c '[.spec.clusterIP, (.spec.ports[].nodePort | . >= 30000 and . <= 32767)]'; }
eventually kubectl get service kubernetes
for name in a b; do
	shown=$(create "$name" --tcp=80 --tcp=443 --dry-run=server)
	same "dry run of $name" "$shown" '["10.0.0.0",false,false]'
done
same 'created: in the range' "$(create a --tcp=80 --tcp=443 | jq -c '[.[0] != "10.0.0.0", .[1], .[2]]')" '[true,true,true]'
