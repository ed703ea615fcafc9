# Sourced by the findings about Kubernetes: starts etcd and kube-apiserver, as released, from their Go modules in a temporary folder, and
# kube-controller-manager with the controllers named in CONTROLLERS. Needs Go 1.26, openssl and jq. The first build takes ten minutes on two
# cores and 3 GB of disk; Go's cache keeps what it builds, so that the next one takes half a minute.
set -eu
KUBERNETES=1.37.2 ETCD=3.7.0
T=$(mktemp -d)
servers=
trap 'kill -KILL $servers 2>/dev/null || true; wait; rm -rf "$T"' EXIT
cd "$T"
go mod init finding 2>go.log
# Kubernetes' own go.mod names its parts by directories of its repository; as modules they have the version v0.MINOR.PATCH.
mod=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | jq -r .GoMod)
for module in $(sed -n 's|^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*|\1|p' "$mod"); do
	go mod edit -replace "$module=$module@v0.${KUBERNETES#1.}"
done
go get "k8s.io/kubernetes/cmd/...@v$KUBERNETES" "go.etcd.io/etcd/server/v3@v$ETCD" 2>>go.log || { tail go.log >&2; exit 1; }
# An API server must know its version. The command go tells where it keeps a program once it has built and run it.
for program in k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl ${CONTROLLERS:+k8s.io/kubernetes/cmd/kube-controller-manager} go.etcd.io/etcd/server/v3; do
	built=
	until [ -x "$built" ]; do
		built=$(CGO_ENABLED=0 go run -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$KUBERNETES" -exec echo "$program" 2>>go.log) || { tail go.log >&2; exit 1; }
	done
	mkdir -p bin && ln -s "$built" "bin/$(basename "${program%/v3}")"
done
PATH=$T/bin:$PATH
port=$((20000 + $$ % 10000)) # as good as any
server --data-dir etcd --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls http://127.0.0.1:0 --logger zap >etcd.log 2>&1 &
servers=$!
openssl genrsa -out sa.key 2048 2>/dev/null
echo finding,admin,admin,system:masters >tokens
kube-apiserver --etcd-servers "http://127.0.0.1:$port" --secure-port $((port + 10000)) --bind-address 127.0.0.1 --cert-dir certs --token-auth-file tokens --authorization-mode RBAC \
	--service-account-key-file sa.key --service-account-signing-key-file sa.key --service-account-issuer https://finding.example \
	--disable-admission-plugins ServiceAccount >apiserver.log 2>&1 &
servers="$servers $!"
export KUBECONFIG=$T/kubeconfig
kubectl config set-cluster c --server "https://127.0.0.1:$((port + 10000))" --insecure-skip-tls-verify >/dev/null
kubectl config set-credentials u --token finding >/dev/null
kubectl config set-context c --cluster c --user u >/dev/null && kubectl config use-context c >/dev/null

# eventually COMMAND…: until it succeeds, for two minutes at most
eventually() {
	for _ in $(seq 240); do "$@" >/dev/null 2>&1 && return; sleep 0.5; done
	echo "never came true: $*" >&2
	exit 1
}
eventually kubectl get --raw /readyz
eventually kubectl get namespace default
if [ -n "${CONTROLLERS:-}" ]; then
	kube-controller-manager --kubeconfig "$KUBECONFIG" --service-account-private-key-file sa.key \
	--secure-port 0 --leader-elect=false --controllers "$CONTROLLERS" >controllers.log 2>&1 &
	servers="$servers $!"
fi
echo "Kubernetes $(kubectl get --raw /version | jq -r .gitVersion)"

# same WHAT GOT WANT
same() {
	[ "$2" = "$3" ] || { printf '%s is %s, and was %s: the behaviour has changed\n' "$1" "$2" "$3" >&2; exit 1; }
	printf '%s: %s\n' "$1" "$2"
}
# apply MANAGER: standard input, server-side
apply() { kubectl apply --server-side --field-manager "$1" -f - >/dev/null; }
# field RESOURCE NAME JQ: of an object in the namespace default
field() { kubectl get "$1" "$2" --show-managed-fields -o json | jq -c "$3"; }
# owned RESOURCE NAME: manager and fields of each entry
owned() { field "$1" "$2" '[.metadata.managedFields[] | {(.manager): .fieldsV1}] | add'; }
# definition KIND VERSION=SCHEMA…: of the field spec, of things of the group finding.example.com; the first version is stored
definition() {
	kind=$1 storage=true versions=
	shift
	for version; do
		versions="$versions{name: ${version%%=*}, served: true, storage: $storage, schema: {openAPIV3Schema: {type: object, properties: {spec: ${version#*=}}}}},"
		storage=false
	done
	plural=$(echo "${kind}s" | tr '[:upper:]' '[:lower:]')
	apply definer <<-Y
		apiVersion: apiextensions.k8s.io/v1
		kind: CustomResourceDefinition
		metadata: {name: $plural.finding.example.com}
		spec: {group: finding.example.com, scope: Namespaced, names: {kind: $kind, plural: $plural}, versions: [$versions]}
	Y
	kubectl wait --for=condition=established "crd/$plural.finding.example.com" >/dev/null
	eventually kubectl get "$plural.finding.example.com"
	sleep 3 # a changed schema is used a moment later
}
