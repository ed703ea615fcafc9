# Sourced by the findings about Helm: the commands helm3 and helm4, built from their modules (needs Go 1.26; the first time takes
# some minutes), in a temporary folder (that of apiserver.sh, where that is sourced before) with an empty chart p that has a chart s in it.
set -eu
[ -n "${KUBERNETES:-}" ] || {
	T=$(mktemp -d)
	trap 'rm -rf "$T"' EXIT
	cd "$T"
}
# built PROGRAM: where the command go keeps a program, which it tells once it has built and run it
built() {
	path=
	until [ -x "$path" ]; do path=$(go run -exec echo "$1"); done
	echo "$path"
}
helm3=$(built helm.sh/helm/v3/cmd/helm@v3.22.0)
helm4=$(built helm.sh/helm/v4/cmd/helm@v4.3.1)
helm3() { "$helm3" "$@"; }
helm4() { "$helm4" "$@"; }
mkdir -p p/templates p/charts/s/templates
echo '{apiVersion: v2, name: p, version: 1.0.0}' >p/Chart.yaml
echo '{apiVersion: v2, name: s, version: 1.0.0}' >p/charts/s/Chart.yaml

# rendered HELM ARGUMENT…: the values that templates print, or the error, in one line
rendered() {
	helm=$1
	shift
	"$helm" template r p "$@" 2>&1 | sed -n '/^---/d; /^# Source/d; s/^ *//; /./p' | paste -s -d ' '
}
# same WHAT GOT WANT
same() {
	[ "$2" = "$3" ] || { printf '%s is %s, and was %s: the behaviour has changed\n' "$1" "$2" "$3" >&2; exit 1; }
	printf '%s: %s\n' "$1" "$2"
}
