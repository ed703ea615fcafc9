#!/bin/sh
# Runs the tests on real pods with the command that it is given: make test-node.
#
# They need Linux, root and some programs, which are installed from Debian where
# they are missing. Without Linux or root the tests are skipped; where root may
# not run containers they fail, as nobody would notice otherwise.
set -eu
cd "$(dirname "$0")/.."

skip() { echo "test-node: skipped: $1" >&2; exit 0; }
[ "$(uname -s)" = Linux ] || skip 'containers need Linux'
[ "$(id -u)" = 0 ] || skip 'containers need root; to run the tests: sudo make test-node'

missing=
need() { # PACKAGE COMMAND…
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
need containerd sh -c 'command -v containerd && command -v ctr'
need runc sh -c 'command -v runc'
need containernetworking-plugins sh -c 'ls /usr/lib/cni/bridge || ls /opt/cni/bin/bridge'
need iproute2 sh -c 'command -v ip'
need busybox-static sh -c 'command -v busybox && ! LC_ALL=C ldd "$(command -v busybox)"'
if [ -n "$missing" ] && command -v apt-get >/dev/null; then
	echo "test-node: installing$missing" >&2
	# shellcheck disable=SC2086 # a list of words
	sh scripts/install.sh $missing
fi # else realnode.sh says what is missing

# The tests mostly wait: for kubelets, back-offs and probes.
exec bin/devcluster run --nodes 0 -- sh scripts/realnode.sh "$@" -count=1 -timeout 10m -parallel 16
