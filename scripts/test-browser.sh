#!/bin/sh
# Runs the tests that look at plans with other people's programs, with the command that it is
# given: make test-browser.
#
# They need a browser and Graphviz, which are installed from Debian where they are
# missing and may be installed. Elsewhere the tests say so and are skipped, unless
# CI is set: nobody would notice otherwise.
set -eu
cd "$(dirname "$0")/.."

missing=
command -v chromium >/dev/null || missing="$missing chromium"
command -v dot >/dev/null || missing="$missing graphviz"
if [ -n "$missing" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "test-browser: installing$missing" >&2
	# shellcheck disable=SC2086 # a list of words
	sh scripts/install.sh $missing
fi
[ -z "${CI:-}" ] || export DEPLOYER_TEST_REQUIRE_BROWSER=1

exec "$@" -count=1 -timeout 10m -run '^TestBrowser|^TestGraphviz$'
