#!/bin/sh
# Writes the manual pages into a directory: what --help-all says of each command of docs/commands.md.
#   scripts/man.sh DIR [PROGRAM]    without PROGRAM it is built
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/man.sh DIR [PROGRAM]}
program=${2:-}
mkdir -p "$out"
if [ -z "$program" ]; then
	built=$(mktemp -d)
	trap 'rm -r "$built"' EXIT
	program=$built/deployer
	CGO_ENABLED=0 go build -tags urfave_cli_no_docs -o "$program" ./cmd/deployer
fi
sed -n 's/^##* deployer //p' docs/commands.md | while read -r command; do
	name=deployer-$(echo "$command" | tr ' ' -)
	# shellcheck disable=SC2086
	"$program" $command --help-all </dev/null | awk -v name="$name" '
function escaped(line) {
	gsub(/\\/, "\\e", line)
	gsub(/-/, "\\-", line)
	if (line ~ /^[.\047]/) line = "\\&" line
	return line
}
NR == 1 { printf ".TH \"%s\" 1 \"\" \"deployer\" \"deployer\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", toupper(name), escaped(name), escaped($0); next }
{ print escaped($0) }
END { print ".fi" }' >"$out/$name.1"
done
