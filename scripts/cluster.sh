#!/bin/sh
# A development cluster in the background, to try things on: scripts/cluster.sh up [--nodes N], scripts/cluster.sh down
set -eu
program=$(dirname "$0")/../bin/devcluster
case $(uname) in Darwin) cache=$HOME/Library/Caches ;; *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;; esac
dir=${DEVCLUSTER_DIR:-$cache/deployer/devcluster}
pid=$(cat "$dir/pid" 2>/dev/null || true)
runs() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }

case ${1-} in
up)
	shift
	if ! runs; then
		mkdir -p "$dir"
		nohup "$program" run --dir "$dir" "$@" >"$dir/run.log" 2>&1 &
		pid=$!
		echo $pid >"$dir/pid"
		trap 'kill $pid; exit 130' INT TERM
		until grep -q ready, "$dir/run.log"; do
			runs || { cat "$dir/run.log" >&2; exit 1; }
			sleep 0.2
		done
	fi
	printf '\nexport KUBECONFIG=%s\nbin/deployer install web testcharts/web\nstop it with: scripts/cluster.sh down\n' "$dir/kubeconfig"
	;;
down)
	! runs || kill "$pid"
	while runs; do sleep 0.1; done
	;;
*)
	sed -n 's/^# //p' "$0" >&2
	exit 2
	;;
esac
