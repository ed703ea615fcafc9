#!/bin/sh
# A development cluster in the background, to try things on: scripts/cluster.sh up [--nodes N], scripts/cluster.sh down
set -eu
program=$(dirname "$0")/../bin/devcluster
case $(uname) in Darwin) cache=$HOME/Library/Caches ;; *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;; esac
dir=${DEVCLUSTER_DIR:-$cache/deployer/devcluster}
pid=$(cat "$dir/pid" 2>/dev/null || true)
command -v ps >/dev/null || { echo 'ps is missing; on Debian it is in the package procps' >&2; exit 1; }

# alive: the process hasn't ended; a zombie has. runs: it is the cluster; after a crash its number may be another's.
alive() { case $(ps -o stat= -p "$pid") in '' | Z*) false ;; esac }
runs() { [ -n "$pid" ] && case "$(ps -ww -o args= -p "$pid") " in *" run --dir $dir "*) ;; *) false ;; esac }

case ${1-} in
up)
	shift
	if ! runs; then
		mkdir -p "$dir"
		: >"$dir/run.log"
		# A session of its own, where there is setsid: Ctrl-C of a script that calls this one doesn't reach the cluster.
		$(command -v setsid) nohup "$program" run --dir "$dir" "$@" >"$dir/run.log" 2>&1 &
		pid=$!
		echo $pid >"$dir/pid"
		trap 'kill $pid; exit 130' INT TERM
	fi
	until grep -q ready, "$dir/run.log"; do
		alive || { cat "$dir/run.log" >&2; exit 1; }
		sleep 0.2
	done
	printf '\nexport KUBECONFIG=%s\nbin/deployer install web testcharts/web\nstop it with: scripts/cluster.sh down\n' "$dir/kubeconfig"
	;;
down)
	if runs; then
		kill "$pid"
		tenths=0
		while alive; do
			[ $((tenths += 1)) -ne 100 ] || kill -9 "$pid" || true
			sleep 0.1
		done
	fi
	rm -f "$dir/pid"
	;;
*)
	sed -n 's/^# //p' "$0" | head -n 1 >&2
	exit 2
	;;
esac
