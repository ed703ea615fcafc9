#!/bin/sh
# The story of the incorrect update: a release renames its containers and fails;
# the next one succeeds. With Helm 3 the containers of the failed release stay
# in the Deployment for ever. `make demo` plays it on a cluster of its own.
#
# It builds nothing, and ends with 1 as soon as something isn't as described.
set -u
cd "$(dirname "$0")/.." || exit 1
PATH=$PWD/bin:$PATH
chart=testcharts/rename

tell() { printf '\n# %s\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# show COMMAND…: print a command as in a session, then run it.
# Braces are quoted, so that the line can be pasted into bash.
show() { printf '$'; for word; do case $word in *[{}]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac; done; echo; "$@"; }

# expect CODE COMMAND…: the command has to end with this exit code.
expect() {
	want=$1; shift
	show "$@"
	got=$?
	[ "$got" = "$want" ] || fail "exit code $got, expected $want: $*"
}

# containers NAME…: the live Deployment has exactly these, in this order.
containers() {
	printf '$ kubectl get deployment app -o jsonpath=…containers[*].name\n'
	got=$(devcluster kubectl get deployment app -o 'jsonpath={.spec.template.spec.containers[*].name}') ||
		fail 'the Deployment could not be read'
	printf '%s\n' "$got"
	[ "$got" = "$*" ] || fail "the containers are \"$got\", expected \"$*\""
}

# revisions STATUS…: these are the statuses of the release's revisions.
revisions() {
	show deployer history app
	got=$(devcluster kubectl get secret -l owner=helm,name=app --sort-by=.metadata.creationTimestamp \
		-o 'jsonpath={.items[*].metadata.labels.status}') || fail 'the records could not be read'
	[ "$got" = "$*" ] || fail "the revisions are \"$got\", expected \"$*\""
}

for tool in deployer devcluster; do
	command -v "$tool" >/dev/null || fail "bin/$tool is missing: run make demo"
done
[ -n "${KUBECONFIG:-}" ] || fail 'KUBECONFIG names no cluster: run make demo'

tell 'Release 1 has the container main.'
expect 0 deployer install app $chart
containers main

tell 'Release 2 renames it to backend and frontend. What will that do?'
expect 0 deployer plan app $chart --set 'containers={backend,frontend}' --set hook.fail=true

tell 'Its migration fails after the Deployment was changed.'
expect 1 deployer upgrade app $chart --set 'containers={backend,frontend}' --set hook.fail=true
containers backend frontend
revisions deployed failed

tell 'Release 3 has app and proxy. Nothing of the failed release may stay.'
expect 0 deployer upgrade app $chart --set 'containers={app,proxy}' --set hook.fail=false
containers app proxy
revisions superseded failed deployed

tell 'And back to release 1.'
expect 0 deployer rollback app 1
containers main
revisions superseded failed superseded deployed

cat <<'END'

# What you have seen:
#   - the plan named every field that would change, before anything changed
#   - the failed release ended with its cause, and exit code 1
#   - the next release removed all that the failed one had added
#   - the rollback brought back exactly the container of revision 1
# With Helm 3, backend and frontend would still be in the Deployment.

END
