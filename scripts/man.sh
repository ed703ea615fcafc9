#!/bin/sh
# Writes the manual pages into a directory: what --help-all says of each command of docs/commands.md.
#   scripts/man.sh DIR [PROGRAM]    without PROGRAM it is built
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/man.sh DIR [PROGRAM]}
program=${2:-}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
if [ -z "$program" ]; then
	program=$work/deployer
	CGO_ENABLED=0 go build -tags urfave_cli_no_docs -o "$program" ./cmd/deployer
fi
# Their names without arguments; through files, not pipes: of a pipe only the last program's failure counts.
sed -n 's/^##* deployer \([a-z ]*[a-z]\)\( .*\)\{0,1\}$/\1/p' docs/commands.md >"$work/commands"
while read -r command; do
	name=deployer-$(echo "$command" | tr ' ' -)
	# shellcheck disable=SC2086
	"$program" $command --help-all </dev/null >"$work/help"
	awk -v name="$name" '
function escaped(line) {
	gsub(/\\/, "\\e", line)
	gsub(/-/, "\\-", line)
	if (line ~ /^[.\047]/) line = "\\&" line
	return line
}
NR == 1 { printf ".TH \"%s\" 1 \"\" \"deployer\" \"deployer\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", toupper(name), escaped(name), escaped($0); next }
{ print escaped($0) }
END { print ".fi" }' <"$work/help" >"$out/$name.1"
done <"$work/commands"
