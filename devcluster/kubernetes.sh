#!/bin/sh
# Builds the control plane of another version of Kubernetes for the development cluster, from the
# Go modules of that version: kubernetes.sh VERSION OUTPUT, with a version such as v1.31.4.
#
# The simulated nodes, etcd and all else stay devcluster's own: a module has one version of each
# library, and simulated nodes need newer ones than old control planes compile with.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$1
output=$2
case $output in /*) ;; *) output=$PWD/$output ;; esac

fail() { printf 'devcluster: %s\n' "$1" >&2; exit 1; }

minor=$(printf '%s' "$version" | sed -n 's/^v1\.\([0-9]*\)\.[0-9]*$/\1/p')
[ -n "$minor" ] || fail "KUBERNETES=$version is not a version such as v1.31.4"
key=$({ echo "$version"; go env GOVERSION GOOS GOARCH; cat "$here"/kubernetes.sh "$here"/controlplane/*.go "$here"/controlplane/kubernetes/*.go; } | cksum)
if [ -x "$output" ] && [ "$(cat "$output.built-from" 2>/dev/null || true)" = "$key" ]; then
	exit 0
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cp -R "$here/controlplane" "$dir"
cd "$dir"
mod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
[ -n "$mod" ] || fail "k8s.io/kubernetes $version could not be downloaded: GOPROXY has to name a reachable module proxy"
# Kubernetes' own go.mod names its parts by directories of its repository; as modules they
# have the version v0.MINOR.PATCH.
{
	printf 'module deployer/devcluster\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n' "$version"
	sed -n "s,^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*,replace \1 => \1 v0.${version#v1.},p" "$mod"
} >go.mod
echo "building the control plane of Kubernetes $version: the first time takes some minutes" >&2
go mod tidy 2>tidy.log || { cat tidy.log >&2; fail "the modules of Kubernetes $version could not be had"; }
pkg=k8s.io/component-base/version
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$output" \
	-ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$minor" ./controlplane/kubernetes
printf '%s\n' "$key" >"$output.built-from"
