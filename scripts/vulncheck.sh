#!/bin/sh
# Looks for known vulnerabilities in what the program calls, with the tool of the Go
# project. Without its database it says that nothing was checked, and succeeds: a lint
# must run offline too. VULNCHECK=require makes that a failure, for CI with a network.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
database=${GOVULNDB:-https://vuln.go.dev}
unchecked() {
	echo "govulncheck: NOT CHECKED for known vulnerabilities: $1" >&2
	[ "${VULNCHECK:-}" != require ] || exit 1
	exit 0
}
case $database in
file://*) [ -r "${database#file://}/index/db.json" ] || unchecked "there is no database in $database" ;;
*)
	command -v curl >/dev/null || unchecked "there is no curl to ask for the database $database"
	curl -fsS --max-time 20 -o /dev/null "$database/index/db.json" 2>/dev/null || unchecked "the database $database can't be reached"
	;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! $GO tool govulncheck -version >"$log" 2>&1; then
	unchecked "the tool can't be had: $(tail -n 1 "$log")"
fi
code=0
$GO tool govulncheck -db "$database" ./... 2>"$log" || code=$?
cat "$log" >&2
case $code in
0 | 3) exit "$code" ;; # 3: vulnerabilities, https://pkg.go.dev/golang.org/x/vuln/cmd/govulncheck
*) unchecked "govulncheck failed: $(tail -n 1 "$log")" ;;
esac
