#!/bin/sh
# Writes the manual pages into a directory: one for each command of docs/commands.md, which
# is what --help says.
#   scripts/man.sh DIR
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/man.sh DIR}
mkdir -p "$out"
awk -v out="$out" '
function escaped(line) {
	gsub(/\\/, "\\e", line)
	gsub(/-/, "\\-", line)
	if (line ~ /^[.\047]/) line = "\\&" line
	return line
}
/^##+ deployer / {
	sub(/^#+ /, "")
	name = $0
	gsub(/ /, "-", name)
	file = out "/" name ".1"
	next
}
/^##+ / { file = "" }
/^```$/ && file != "" {
	inside = !inside
	if (inside) first = 1
	else { print ".fi" > file; close(file) }
	next
}
inside && first {
	printf ".TH \"%s\" 1 \"\" \"deployer\" \"deployer\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", toupper(name), escaped(name), escaped($0) > file
	first = 0
	next
}
inside { print escaped($0) > file }
' docs/commands.md
