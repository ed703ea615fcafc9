#!/bin/sh
# Builds the development cluster, unless it is up to date: build.sh [OUTPUT]
#
# Go's cache decides what has to be compiled; the stamp beside the output only
# spares the half minute that linking takes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/../bin/devcluster}
case $output in /*) ;; *) output=$PWD/$output ;; esac
cd "$here"
stamp=$output.built-from

fail() { printf 'devcluster: %s\n' "$1" >&2; exit 1; }

command -v go >/dev/null 2>&1 ||
	fail 'the Go toolchain is missing: install Go 1.26 or newer from https://go.dev/dl/ and put it on PATH'
go=$(go env GOVERSION 2>/dev/null || true)
minor=$(printf '%s' "$go" | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
if [ -n "$minor" ] && [ "$minor" -lt 26 ]; then
	fail "Go 1.26 or newer is needed, this is $go ($(command -v go)): install it from https://go.dev/dl/"
fi

key=$({ go env GOVERSION GOOS GOARCH; cat go.mod go.sum build.sh ./*.go ./controlplane/*.go ./*.yaml; } | cksum)
if [ -x "$output" ] && [ "$(cat "$stamp" 2>/dev/null || true)" = "$key" ]; then
	exit 0
fi

mkdir -p "$(dirname "$output")" "$(go env GOCACHE)" "$(go env GOMODCACHE)"
for dir in "$(go env GOCACHE)" "$(go env GOMODCACHE)" "$(dirname "$output")"; do
	free=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge 3145728 ] ||
		fail "only $((free / 1024)) MiB are free on the disk of $dir, building needs 3 GiB: free some, or set GOCACHE and GOMODCACHE to another disk"
done

# Without its version the API server calls itself "v0.0.0-master+$Format:%H$",
# which clients refuse.
kubernetes=$(sed -n 's,^[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\).*,\1,p' go.mod)
rest=${kubernetes#v}
pkg=k8s.io/component-base/version
flags="-s -w -X $pkg.gitVersion=$kubernetes -X $pkg.gitMajor=${rest%%.*}"
rest=${rest#*.}
flags="$flags -X $pkg.gitMinor=${rest%%.*}"

cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
echo "building devcluster (Kubernetes $kubernetes): the first time takes about $((8 / cpus + 1)) minutes on $cpus processors, later less than one" >&2
began=$(date +%s)
new=$output.new
# No cgo: the result needs no C compiler and runs on any distribution.
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$new" . &
build=$!
trap 'kill "$build" 2>/dev/null || true; rm -f "$new"' EXIT
trap 'exit 130' INT TERM
while kill -0 "$build" 2>/dev/null; do
	sleep 1
	elapsed=$(($(date +%s) - began))
	if [ -t 2 ]; then
		printf '\rbuilding devcluster … %d s ' "$elapsed" >&2
	elif [ $((elapsed % 30)) -eq 0 ]; then
		echo "building devcluster … $elapsed s" >&2
	fi
done
[ ! -t 2 ] || printf '\r\033[K' >&2
wait "$build" || fail 'the build failed, see above; if modules could not be downloaded: GOPROXY has to name a reachable module proxy'
# Moved, not overwritten: a cluster that runs keeps its program.
mv "$new" "$output"
printf '%s\n' "$key" >"$stamp"
echo "built devcluster in $(($(date +%s) - began)) s" >&2
