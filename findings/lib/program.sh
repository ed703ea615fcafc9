# Sourced by the findings about Go libraries: needs Go 1.26.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
go mod init finding 2>go.log

# program MODULE@VERSION…: builds and runs the main package on standard input with these modules
program() {
	cat >main.go
	go get "$@" 2>>go.log && go mod tidy 2>>go.log || { tail go.log >&2; exit 1; }
	for module; do # tidy must not have chosen another version
		go list -m "${module%@*}" | grep -qx "${module%@*} ${module##*@}" || { echo "not $module: $(go list -m "${module%@*}")" >&2; exit 1; }
		echo "$module"
	done
	go run . >out 2>err || { cat err >&2; exit 1; }
}

# expect: the output of the program is standard input
expect() {
	cat >want
	diff want out || { echo 'the behaviour has changed: < it was, > it is' >&2; exit 1; }
	cat out
}
